// The form: where to join, how, and what to send.

import { Nagare } from './nagare.js';
import { session } from './stage.js';
import { remembered, ui } from './ui.js';
import { words } from './words.js';

/** The ways to join that the form has: each value of “How” as options of the module. */
export const ways = {
  member: { sends: true, options: {} },
  watch: { sends: false, options: { canPublish: false } },
  host: { sends: true, options: { profile: 'interactive', role: 'host' } },
  audience: { sends: false, options: { profile: 'interactive', role: 'audience' } },
  call: { sends: true, options: {} },
};
const notes = {
  host: 'Everybody sees the hosts. The audience only watches.',
  audience: 'You watch the hosts, and can come on stage later.',
  call: 'Two people, picture and sound both ways. The server only brings them together.',
};

export const chosenSource = () => ui['join-form'].elements.source.value;
export const pictureSize = () => ui.size.value.split('x').map(Number);
/** The maximum bit rate of the selected size, in kbit/s. */
export const bitRateMax = () => ({ 1920: 4_500, 1280: 2_500 })[pictureSize()[0]] ?? 1_200;

export const cameraConstraints = (deviceId) => {
  const [width, height] = pictureSize();
  return { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 },
    ...(deviceId ? { deviceId: { exact: deviceId } } : {}) };
};
export const microphoneConstraints = (deviceId) => (deviceId ? { deviceId: { exact: deviceId } } : true);

export const linkTo = (channel) => {
  const address = new URL(location.pathname, location.href);
  address.searchParams.set('channel', channel);
  if (ui.how.value === 'call') address.searchParams.set('how', 'call');
  return address;
};

function chooseSource(value, note = '') {
  for (const radio of ui['join-form'].elements.source) radio.checked = radio.value === value;
  ui['source-note'].textContent = note;
  ui['source-note'].hidden = !note;
}

function refreshForm() {
  const way = ways[ui.how.value];
  ui.sending.hidden = !way.sends;
  ui['how-note'].textContent = notes[ui.how.value] ?? '';
  ui['how-note'].hidden = !notes[ui.how.value];
  const channel = encodeURIComponent(ui.channel.value.trim() || 'CHANNEL');
  ui.whip.value = `${location.origin}/whip/${channel}`;
  ui.whep.value = `${location.origin}/whep/${channel}`;
}

// ---- devices and codecs ---------------------------------------------------------------------------------------------

function fill(select, devices, noun) {
  const former = select.value;
  const options = devices.map(({ deviceId, label }, index) => new Option(label || `${noun} ${index + 1}`, deviceId));
  select.replaceChildren(...(devices.some((one) => one.deviceId === '' || one.deviceId === 'default') ? []
    : [new Option(`Default ${noun.toLowerCase()}`, '')]), ...options);
  if ([...select.options].some((one) => one.value === former)) select.value = former;
}

export async function refreshDevices() {
  const devices = await Nagare.devices().catch(() => ({ cameras: [], microphones: [], speakers: [] }));
  for (const id of ['camera', 'call-camera']) fill(ui[id], devices.cameras, 'Camera');
  for (const id of ['microphone', 'call-microphone']) fill(ui[id], devices.microphones, 'Microphone');
  fill(ui.speaker, devices.speakers, 'Speaker');
  ui['speaker-field'].hidden = !('setSinkId' in HTMLMediaElement.prototype) || !devices.speakers.length;
  return devices;
}

async function proposeSource() {
  if (!navigator.mediaDevices?.enumerateDevices) {
    chooseSource('synthetic', `${words.insecure} The test pattern works everywhere.`);
    return;
  }
  const { cameras } = await refreshDevices();
  if (!cameras.length && !session) chooseSource('synthetic', 'No camera was found. The test pattern is selected.');
}

function markUnknownCodecs() {
  const capabilities = globalThis.RTCRtpSender?.getCapabilities?.('video')?.codecs ?? [];
  for (const option of ui.codec.options) {
    const isKnown = capabilities.some((one) => one.mimeType.toLowerCase() === `video/${option.value.toLowerCase()}`);
    if (option.value && capabilities.length && !isKnown) {
      option.disabled = true;
      option.textContent += ' (not in this browser)';
    }
  }
}

/** Fills the form in from the page's address and from what was chosen last. */
export function prepareForm() {
  markUnknownCodecs();
  for (const key of ['name', 'codec', 'size', 'how']) {
    const saved = remembered.get(key);
    const offered = [...(ui[key].options ?? [])].filter((one) => !one.disabled).map((one) => one.value);
    if (saved && (!ui[key].options || offered.includes(saved))) ui[key].value = saved;
    ui[key].addEventListener('change', () => remembered.set(key, ui[key].value));
  }
  const query = new URLSearchParams(location.search);
  ui.channel.value = query.get('channel')?.trim() || remembered.get('channel') || 'lobby';
  if (query.get('how') in ways) ui.how.value = query.get('how');
  ui.channel.addEventListener('input', refreshForm);
  ui.how.addEventListener('change', refreshForm);
  for (const input of [ui.whip, ui.whep]) input.addEventListener('focus', () => input.select());
  navigator.mediaDevices?.addEventListener?.('devicechange', refreshDevices);
  refreshForm();
  proposeSource();
  if (query.has('channel')) ui.join.focus({ preventScroll: true });
}
