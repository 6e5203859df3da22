// What others are going to see and hear, before joining: the own picture, and how loud the microphone is.

import { captureEach } from './nagare-devices.js';
import { initialsOf } from './tiles.js';
import { remembered, ui } from './ui.js';
import { errorText, t } from './words.js';

const { preview, 'preview-video': video, 'preview-note': note, 'preview-start': start, meter } = ui;
const levelMilliseconds = 100;

/** What the user wants to send. */
const wants = { audio: remembered.get('microphone') !== 'off', video: remembered.get('camera') !== 'off' };
let tracks = [];
/** The latest opening; an earlier one that ends later is of no use. */
let opening = 0;
let isOpen = false;
/** Why there is nothing to show; empty without a reason. */
let trouble = '';
let sound = null;
let settings = null;

/** What to send when joining: of camera and microphone what the user did not turn off. */
export const wanted = () => ({ ...wants });

/** Tells how the preview opens devices: `constraints(kind)`, `isPattern()`, `opened()`. Turns it on if `isWelcome`. */
export async function preparePreview(given, isWelcome) {
  settings = given;
  draw();
  if (isWelcome || await isPermitted()) openPreview();
}

/** Whether the user gave the permission earlier, so that nothing is asked. */
async function isPermitted() {
  const states = await Promise.all(['camera', 'microphone'].map((name) =>
    navigator.permissions?.query({ name }).then(({ state }) => state, () => 'prompt')));
  return states.every((one) => one === 'granted');
}

/** Opens what the user wants to send, and what is open already once more, unless `isMore`. */
export async function openPreview({ isMore = false } = {}) {
  if (!isMore) closeDevices();
  isOpen = true;
  trouble = '';
  if (settings.isPattern() || preview.hidden) { draw(); return; }
  const kinds = ['audio', 'video'].filter((kind) => wants[kind] && !find(kind));
  const mine = opening += 1;
  draw();
  if (!kinds.length) return;
  start.hidden = true;
  tell(t('preview.opening'));
  try {
    const wish = Object.fromEntries(kinds.map((kind) => [kind, settings.constraints(kind)]));
    const found = await captureEach(wish, (error) => { trouble = errorText(error); });
    if (mine !== opening) { for (const one of found) one.stop(); return; }
    // Somebody may have switched one off while the browser asked.
    for (const one of found.filter(({ kind }) => !wants[kind])) one.stop();
    found.splice(0, found.length, ...found.filter(({ kind }) => wants[kind]));
    tracks.push(...found);
    for (const one of found) one.onended = () => { if (tracks.includes(one)) openPreview(); };
    if (!sound) listen();
  } catch (error) {
    if (mine !== opening) return;
    trouble = [errorText(error), error.name === 'NotAllowedError' ? t('preview.blocked') : ''].filter(Boolean).join(' ');
    isOpen = false;
  }
  draw();
  settings.opened();
}

/** Releases camera and microphone. The picture returns when the user asks for it. */
export function closePreview() {
  closeDevices();
  isOpen = false;
  trouble = '';
  draw();
}

function closeDevices() {
  opening += 1;
  for (const one of tracks) one.stop();
  tracks = [];
  sound?.close();
  sound = null;
}

/** After a change of the form: another device, another size, another source. */
export function refreshPreview() {
  if (isOpen) openPreview();
  else draw();
}

// ---- what is shown --------------------------------------------------------------------------------------------------

const find = (kind) => tracks.find((one) => one.kind === kind);

function tell(text) {
  if (note.textContent !== text) note.textContent = text;
  note.hidden = !text;
}

function draw() {
  const picture = find('video');
  const isPattern = settings?.isPattern();
  if (picture && video.srcObject?.getTracks()[0] !== picture) video.srcObject = new MediaStream([picture]);
  if (!picture) video.srcObject = null;
  video.hidden = !picture;
  if (picture) video.play().catch(() => {});
  const isAsked = isOpen && !isPattern;
  const initials = initialsOf(ui.name.value);
  ui['preview-initials'].textContent = initials;
  ui['preview-initials'].hidden = Boolean(picture) || !ui.name.value.trim();
  start.hidden = isOpen || isPattern;
  if (trouble) start.textContent = t('button.tryAgain');
  else start.textContent = t('preview.start');
  ui['preview-pattern'].hidden = !isPattern && !trouble;
  ui['preview-pattern'].textContent = t(isPattern ? 'preview.useCamera' : 'preview.usePattern');
  tell(isPattern ? t('preview.pattern') : trouble || (isOpen && !picture && !wants.video ? t('preview.off') : ''));
  ui['preview-buttons'].hidden = !isAsked;
  drawButton(ui['preview-microphone'], 'microphone', !wants.audio,
    wants.audio ? 'preview.microphoneOff' : 'preview.microphoneOn');
  drawButton(ui['preview-camera'], 'camera', !wants.video, wants.video ? 'preview.cameraOff' : 'preview.cameraOn');
  ui.loudness.hidden = !find('audio');
}

function drawButton(button, icon, isOff, key) {
  button.title = t(key);
  button.setAttribute('aria-label', t(key));
  button.querySelector('use').setAttribute('href', `#icon-${icon}${isOff ? '-off' : ''}`);
  button.classList.toggle('off', isOff);
}

function toggle(kind, name) {
  wants[kind] = !wants[kind];
  remembered.set(name, wants[kind] ? 'on' : 'off');
  if (!wants[kind]) {
    for (const one of tracks) if (one.kind === kind) one.stop();
    tracks = tracks.filter((one) => one.kind !== kind);
    if (kind === 'audio') { sound?.close(); sound = null; }
    draw();
  } else {
    openPreview({ isMore: true });
  }
}

ui['preview-microphone'].addEventListener('click', () => toggle('audio', 'microphone'));
ui['preview-camera'].addEventListener('click', () => toggle('video', 'camera'));
start.addEventListener('click', () => openPreview());
ui.name.addEventListener('input', draw);

// ---- the microphone -------------------------------------------------------------------------------------------------

/** Shows how loud the microphone is. Browsers start the measurement when the user has done anything on the page. */
function listen() {
  const track = find('audio');
  if (!track) return;
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const wake = () => { context.resume().catch(() => {}); };
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
    // From −60 dB, the noise of a quiet room, to 0.
    const level = Math.round(Math.min(100, Math.max(0, 100 + 10 * Math.log10(power + 1e-9) / 0.6)));
    meter.setAttribute('aria-valuenow', String(level));
    ui['meter-level'].style.width = `${level}%`;
  }, levelMilliseconds);
  for (const type of ['pointerdown', 'keydown']) addEventListener(type, wake);
  wake();
  sound = { close() {
    clearInterval(timer);
    for (const type of ['pointerdown', 'keydown']) removeEventListener(type, wake);
    context.close().catch(() => {});
  } };
}
