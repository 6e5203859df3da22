// The form: who joins, where, how, and what is sent.

import { readAddress } from './invite.js';
import { Nagare } from './nagare.js';
import { openPreview, preparePreview, refreshPreview, wanted } from './preview.js';
import { end } from './stage.js';
import { readToken } from './token.js';
import { remembered, ui } from './ui.js';
import { failureText, isText, isTokenRefused, t, timeOfDay } from './words.js';

/** The ways to join that the form has: each kind of call as options of the module. */
export const ways = {
  member: { sends: true, options: {} },
  watch: { sends: false, options: { canPublish: false } },
  host: { sends: true, options: { profile: 'interactive', role: 'host' } },
  audience: { sends: false, options: { profile: 'interactive', role: 'audience' } },
  call: { sends: true, options: {} },
};
const joinLabels = { watch: 'form.joinWatch', audience: 'form.joinWatch', host: 'form.joinHost', call: 'form.joinCall' };

/** Whether the link that opened the page names the channel. */
let isInvited = false;

export const pictureSize = () => ui.size.value.split('x').map(Number);
/** The maximum bit rate of the selected size, in kbit/s. */
export const bitRateMax = () => ({ 1920: 4_500, 1280: 2_500 })[pictureSize()[0]] ?? 1_200;

export const cameraConstraints = (deviceId) => {
  const [width, height] = pictureSize();
  return { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 },
    ...(deviceId ? { deviceId: { exact: deviceId } } : {}) };
};
export const microphoneConstraints = (deviceId) => (deviceId ? { deviceId: { exact: deviceId } } : true);

const isPattern = () => ui['join-form'].elements.source.value === 'synthetic';
/** What is sent: `camera`, `synthetic`, or `nothing` where camera and microphone were turned off. */
export const chosenSource = () => (isPattern() ? 'synthetic' : wanted().audio || wanted().video ? 'camera' : 'nothing');
/** Which of camera and microphone are on at the start. */
export const startsWith = () => (isPattern() ? { audio: true, video: true } : wanted());

// ---- channels -------------------------------------------------------------------------------------------------------

const letters = 'abcdefghjkmnpqrstvwxyz23456789';
const groups = [4, 4, 4];
/** A name that nobody can guess, and that can be read to others: 30¹² of them. */
function newChannel() {
  // Numbers beyond the last multiple would make some letters likelier.
  const letter = () => {
    const [one] = crypto.getRandomValues(new Uint8Array(1));
    return one < 256 - 256 % letters.length ? letters[one % letters.length] : letter();
  };
  return groups.map((count) => Array.from({ length: count }, letter).join('')).join('-');
}

const channelBytesMax = 255;
/** What is wrong with the name of a channel; empty if nothing is. */
export function channelProblem(name) {
  if (!name) return t('form.channelMissing');
  if (name === '.' || name === '..') return t('form.channelDots');
  return new TextEncoder().encode(name).length > channelBytesMax ? t('form.channelLong') : '';
}

// ---- what is shown --------------------------------------------------------------------------------------------------

const isShown = (element) => !element.closest('details:not([open])');
/** Shows a field that is among the advanced ones otherwise, and puts the cursor there. */
export function askFor(input) {
  const field = input.closest('.field');
  if (!isShown(field)) ui.front.append(field);
  input.focus({ preventScroll: true });
}

/** The server asks for a token, or refused the one that it got. It will do so next time, too. */
export function askForToken() {
  remembered.set('token', 'needed');
  ui.token.placeholder = '';
  askFor(ui.token);
}

/** How often a view tries to connect again, with pauses of up to 15 s: for some five minutes. */
export const retriesMax = 24;

/** Back to the form: what was open could not be joined, ended, or was given up after too many tries. */
export function returnWith(failure, { isGivenUp = false } = {}) {
  const text = failureText(failure, ui.token.value.trim());
  end(isGivenUp ? t('failure.gaveUp', { text }) : text);
  if (isTokenRefused(failure.reason)) askForToken();
}

function refreshForm() {
  const how = ui.how.value;
  const { sends } = ways[how];
  const name = ui.channel.value.trim();
  ui.sending.hidden = ui.preview.hidden = !sends;
  ui['join-form'].classList.toggle('alone', !sends);
  ui['lobby-title'].textContent = !isInvited ? t('lobby.start')
    : t(how === 'audience' || how === 'watch' ? 'lobby.watch' : 'lobby.join', { channel: name });
  const { endsAt } = readToken(ui.token.value);
  const validity = endsAt > Date.now() ? t('lobby.invitedUntil', { time: timeOfDay(endsAt) }) : '';
  const note = isInvited ? validity : t('lobby.startNote');
  ui['lobby-note'].textContent = note;
  ui['lobby-note'].hidden = !note;
  const howNote = isText(`howNote.${how}`) ? t(`howNote.${how}`) : '';
  ui['how-note'].textContent = howNote;
  ui['how-note'].hidden = !howNote;
  ui.join.textContent = t(joinLabels[how] ?? 'form.join');
  const channel = encodeURIComponent(name || 'CHANNEL');
  ui.whip.value = `${location.origin}/whip/${channel}`;
  ui.whep.value = `${location.origin}/whep/${channel}`;
}

// ---- devices and codecs ---------------------------------------------------------------------------------------------

function fill(select, devices, noun) {
  const former = select.value;
  const options = devices.map(({ deviceId, label }, index) =>
    new Option(label || t(`device.${noun}`, { number: index + 1 }), deviceId));
  select.replaceChildren(...(devices.some((one) => one.deviceId === '' || one.deviceId === 'default') ? []
    : [new Option(t(`device.default${noun[0].toUpperCase()}${noun.slice(1)}`), '')]), ...options);
  if ([...select.options].some((one) => one.value === former)) select.value = former;
}

export async function refreshDevices() {
  const devices = await Nagare.devices().catch(() => ({ cameras: [], microphones: [], speakers: [] }));
  for (const id of ['camera', 'call-camera']) fill(ui[id], devices.cameras, 'camera');
  for (const id of ['microphone', 'call-microphone']) fill(ui[id], devices.microphones, 'microphone');
  fill(ui.speaker, devices.speakers, 'speaker');
  ui['speaker-field'].hidden = !('setSinkId' in HTMLMediaElement.prototype) || !devices.speakers.length;
  // Before a permission, browsers do not tell the devices apart.
  ui['preview-devices'].hidden = ![...devices.cameras, ...devices.microphones].some((one) => one.label);
  return devices;
}

function markUnknownCodecs() {
  const capabilities = globalThis.RTCRtpSender?.getCapabilities?.('video')?.codecs ?? [];
  for (const option of ui.codec.options) {
    const isKnown = capabilities.some((one) => one.mimeType.toLowerCase() === `video/${option.value.toLowerCase()}`);
    if (option.value && capabilities.length && !isKnown) {
      option.disabled = true;
      option.textContent = t('codec.missing', { codec: option.textContent });
    }
  }
}

function choosePattern(isChosen) {
  for (const radio of ui['join-form'].elements.source) radio.checked = radio.value === (isChosen ? 'synthetic' : 'camera');
  openPreview();
}

/** Fills the form in from the page's address and from what was chosen last. */
export function prepareForm() {
  markUnknownCodecs();
  for (const key of ['name', 'codec', 'size']) {
    const saved = remembered.get(key);
    const offered = [...(ui[key].options ?? [])].filter((one) => !one.disabled).map((one) => one.value);
    if (saved && (!ui[key].options || offered.includes(saved))) ui[key].value = saved;
    ui[key].addEventListener('input', () => remembered.set(key, ui[key].value));
  }
  takeAddress();
  // A link that differs in its fragment only loads no new page.
  addEventListener('hashchange', takeAddress);
  for (const input of [ui.channel, ui.token]) input.addEventListener('input', refreshForm);
  ui.how.addEventListener('change', () => { refreshForm(); refreshPreview(); });
  for (const select of [ui.camera, ui.microphone, ui.size]) select.addEventListener('change', refreshPreview);
  for (const radio of ui['join-form'].elements.source) radio.addEventListener('change', () => openPreview());
  ui['preview-pattern'].addEventListener('click', () => choosePattern(!isPattern()));
  for (const input of [ui.whip, ui.whep]) input.addEventListener('focus', () => input.select());
  navigator.mediaDevices?.addEventListener?.('devicechange', refreshDevices);
  refreshDevices();
  preparePreview({ isPattern, opened: refreshDevices, constraints: (kind) =>
    (kind === 'video' ? cameraConstraints(ui.camera.value) : microphoneConstraints(ui.microphone.value)) }, isInvited);
  focusForm();
}

function takeAddress() {
  const { channel, how, token } = readAddress();
  isInvited = Boolean(channel);
  ui.channel.value = channel || ui.channel.value || newChannel();
  if (Object.hasOwn(ways, how)) ui.how.value = how;
  if (token) ui.token.value = token;
  if (!isInvited) ui.front.append(ui['channel-field']);
  refreshForm();
}

/** Puts the cursor where something is missing. */
function focusForm() {
  if (isInvited && !ui.token.value && remembered.get('token') === 'needed') askForToken();
  else (ui.name.value ? ui.join : ui.name).focus({ preventScroll: true });
}
