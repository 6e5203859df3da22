// The chat beside the pictures. What others write is shown as text, whatever it is.

import { ui } from './ui.js';

const messagesMax = 300;
const charactersMax = 2_000;
/** Messages are drawn together, so that many at once do not stop the page. */
const drawMilliseconds = 100;

/** `send(text)` of the running channel; `null` in a call and while the form is shown. */
let send = null;
let waiting = [];
let timer = null;
let unread = 0;

const { chat: button, 'chat-panel': panel, 'chat-log': log, 'chat-text': input, 'chat-note': note } = ui;
const sendButton = ui['chat-send'];

// ---- opening and closing --------------------------------------------------------------------------------------------

/** Shows the button of the chat. `deliver(text)` sends a message to the others. */
export function beginChat(deliver) {
  endChat();
  send = deliver;
  button.hidden = false;
}

export function endChat() {
  clearTimeout(timer);
  [send, waiting, timer, unread] = [null, [], null, 0];
  log.replaceChildren();
  input.value = '';
  tell('');
  panel.hidden = button.hidden = true;
  drawButton();
}

/** Says whether messages can be sent, and why not. */
export function refreshChat({ isConnected, isAvailable }) {
  const reason = !isConnected ? 'You can send messages when you are connected.'
    : isAvailable ? '' : 'There is no chat here: this server passes no messages on.';
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
  const count = unread > 99 ? '99+' : unread;
  button.textContent = unread ? `Chat (${count})` : 'Chat';
  button.setAttribute('aria-label', unread ? `Chat (${count}), unread messages` : 'Chat');
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

/** A message of another member. */
export function receive(name, text) {
  const shown = shortened(text);
  if (!shown.text) return;
  if (!isOpen()) unread += 1;
  add({ name, ...shown });
  drawButton();
}

/** One line of at most `charactersMax` characters. */
function shortened(text) {
  const line = text.slice(0, 4 * charactersMax).replace(/[\p{Cc}\s]+/gu, ' ').trim();
  const characters = [...line];
  const isCut = text.length > 4 * charactersMax || characters.length > charactersMax;
  return { text: isCut ? `${characters.slice(0, charactersMax).join('')} …` : line, isCut };
}

function add(message) {
  waiting.push({ ...message, at: new Date() });
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
  const time = make('time', '', at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
  time.dateTime = at.toISOString();
  from.append(make('bdi', 'author', name), time);
  const body = make('p', 'text', text);
  body.dir = 'auto';
  item.append(from, body);
  if (isCut) item.append(make('p', 'note', 'This message was too long. Only its start is shown.'));
  return item;
}

const tooLong = (text) => {
  const count = [...text].length;
  if (count <= charactersMax) return '';
  const [most, found] = [charactersMax, count].map((one) => one.toLocaleString('en'));
  return `A message may have at most ${most} characters. This one has ${found}.`;
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
    if (send === deliver) add({ name: 'You', text, isOwn: true });
  } catch (error) {
    if (send !== deliver) return;
    // What was written since comes behind it.
    input.value = `${text} ${input.value}`.trim();
    tell(error.message);
  }
});
