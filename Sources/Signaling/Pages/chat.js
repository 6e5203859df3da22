// The chat beside the pictures. What others write is shown as text, whatever it is; only addresses of the web become links.

import { setBadge } from './controls.js';
import { ui } from './ui.js';
import { errorText, locale, t } from './words.js';

const messagesMax = 300;
const charactersMax = 2_000;
/** Messages are drawn together, so that many at once do not stop the page. */
const drawMilliseconds = 100;

/** `send(text)` of the running channel; `null` in a call and while the form is shown. */
let send = null;
let waiting = [];
let timer = null;
let unread = 0;
/** The latest messages by user, text and time, so that those of a server's history are shown once. */
let latest = [];

const { chat: button, 'chat-panel': panel, 'chat-log': log, 'chat-text': input, 'chat-note': note } = ui;
const sendButton = ui['chat-send'];

// ---- opening and closing --------------------------------------------------------------------------------------------

/** Shows the button of the chat. `deliver(text)` sends a message to the others; `user` is the own user. */
export function beginChat(deliver, user = null) {
  endChat();
  send = deliver;
  ownUser = user;
  button.hidden = false;
}

export function endChat() {
  clearTimeout(timer);
  [send, waiting, timer, unread, latest] = [null, [], null, 0, []];
  log.replaceChildren();
  input.value = '';
  tell('');
  panel.hidden = button.hidden = true;
  drawButton();
}

/** Says whether messages can be sent, and why not. */
export function refreshChat({ isConnected, isAvailable, unavailable = t('chat.unavailable') }) {
  const reason = !isConnected ? t('chat.notConnected') : isAvailable ? '' : unavailable;
  // A sentence about a message stays while messages can be sent.
  if (reason || sendButton.disabled) tell(reason);
  sendButton.disabled = Boolean(reason);
}

const isOpen = () => !panel.hidden;

function open() {
  panel.hidden = false;
  unread = 0;
  drawButton();
  log.scrollTop = log.scrollHeight;
  // On a phone the keyboard would cover the messages.
  (matchMedia('(pointer: coarse)').matches ? log : input).focus();
}

function close() {
  panel.hidden = true;
  drawButton();
  button.focus();
}

function drawButton() {
  setBadge(ui['chat-count'], unread);
  button.setAttribute('aria-label', unread ? t('chat.unread', { count: unread }) : t('chat.title'));
  button.setAttribute('aria-expanded', String(isOpen()));
}

button.addEventListener('click', () => (isOpen() ? close() : open()));
ui['chat-close'].addEventListener('click', close);
panel.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  event.preventDefault();
  close();
});

function tell(sentence) {
  if (note.textContent !== sentence) note.textContent = sentence;
  note.hidden = !sentence;
}

// ---- messages -------------------------------------------------------------------------------------------------------

/** A message of another member, `user`. */
export function receive(user, name, text) {
  const shown = shortened(text);
  if (!shown.text) return;
  if (!isOpen()) unread += 1;
  remember(user, shown.text, Date.now());
  add({ name, ...shown });
  drawButton();
}

/** The clocks of the server and of this device may differ by so much. */
const sameMilliseconds = 15_000;

function remember(user, text, at) {
  latest.push({ user, text, at });
  if (latest.length > messagesMax) latest.shift();
}

/**
 * What was written before this browser joined, or while it was away: `{ user, name, text, sentAt }`, oldest first.
 */
export function receiveEarlier(messages) {
  const known = [...latest];
  for (const { user, name, text, sentAt } of messages.slice(-messagesMax)) {
    const at = sentAt * 1000;
    const shown = shortened(String(text));
    if (!shown.text || !Number.isFinite(at)) continue;
    const place = known.findIndex((one) =>
      one.user === user && one.text === shown.text && Math.abs(one.at - at) < sameMilliseconds);
    if (place >= 0) {
      // Somebody may write the same twice.
      known.splice(place, 1);
      continue;
    }
    remember(user, shown.text, at);
    const isOwn = user === ownUser;
    if (!isOpen() && !isOwn) unread += 1;
    add({ name: isOwn ? t('call.you') : name, ...shown, isOwn, at: new Date(at) });
  }
  drawButton();
}

/** The own user in the history of the server; none where there is none. */
let ownUser = null;
function own(text) {
  remember(ownUser, shortened(text).text, Date.now());
  add({ name: t('call.you'), text, isOwn: true });
}

/** One line of at most `charactersMax` characters. */
function shortened(text) {
  // Marks of direction would show an address as another one.
  const line = text.slice(0, 4 * charactersMax).replace(/[\u200E\u200F\u061C\u202A-\u202E\u2066-\u2069]/gu, '')
    .replace(/[\p{Cc}\s]+/gu, ' ').trim();
  const characters = [...line];
  const isCut = text.length > 4 * charactersMax || characters.length > charactersMax;
  return { text: isCut ? `${characters.slice(0, charactersMax).join('')} …` : line, isCut };
}

function add(message) {
  waiting.push({ at: new Date(), ...message });
  if (waiting.length > messagesMax) waiting.shift();
  timer ??= setTimeout(draw, drawMilliseconds);
}

function draw() {
  timer = null;
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.append(...waiting.map(entry));
  waiting = [];
  while (log.childElementCount > messagesMax) log.firstElementChild.remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

const make = (tag, className, textContent) => Object.assign(document.createElement(tag), { className, textContent });

function entry({ name, text, at, isCut = false, isOwn = false }) {
  const item = make('article', isOwn ? 'said own' : 'said', '');
  const from = make('p', 'from', '');
  const time = make('time', '', timeOf(at));
  time.dateTime = at.toISOString();
  from.append(make('bdi', 'author', name), time);
  const body = make('p', 'text', '');
  body.dir = 'auto';
  body.append(...linked(text));
  item.append(from, body);
  if (isCut) item.append(make('p', 'note', t('chat.cut')));
  return item;
}

function timeOf(at) {
  const clock = { hour: '2-digit', minute: '2-digit' };
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString(locale, clock)
    : at.toLocaleString(locale, { month: 'short', day: 'numeric', ...clock });
}

/** What may be an address. It ends before what ends a sentence. */
const addressPattern = /https?:\/\/[^\s<>"'“”「」（）、。]+/giu;

/** A text with its addresses of the web as links. What is seen is what is opened: nothing is hidden behind a name. */
function linked(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(addressPattern)) {
    let address = found[0].replace(/[.,;:!?]+$/, '');
    if (address.endsWith(')') && !address.includes('(')) address = address.slice(0, -1);
    if (!isSafe(address)) continue;
    const link = make('a', '', address);
    Object.assign(link, { href: address, target: '_blank', rel: 'noopener noreferrer nofollow', dir: 'ltr' });
    parts.push(text.slice(end, found.index), link);
    end = found.index + address.length;
  }
  parts.push(text.slice(end));
  return parts.filter((one) => one !== '');
}

/** Only http and https, and no user name, which makes `https://bank.example@evil.example` look like the bank's. */
function isSafe(address) {
  try {
    const { protocol, username, password, hostname } = new URL(address);
    return ['http:', 'https:'].includes(protocol) && !username && !password && Boolean(hostname);
  } catch {
    return false;
  }
}

const tooLong = (text) => {
  const count = [...text].length;
  if (count <= charactersMax) return '';
  return t('chat.tooLong', { most: charactersMax, found: count });
};

input.addEventListener('input', () => { if (!sendButton.disabled) tell(tooLong(input.value.trim())); });

ui['chat-form'].addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = input.value.trim();
  const deliver = send;
  if (!text || !deliver || sendButton.disabled) return;
  const sentence = tooLong(text);
  if (sentence) { tell(sentence); return; }
  input.value = '';
  try {
    await deliver(text);
    if (send === deliver) own(text);
  } catch (error) {
    if (send !== deliver) return;
    // What was written since comes behind it.
    input.value = `${text} ${input.value}`.trim();
    tell(errorText(error));
  }
});
