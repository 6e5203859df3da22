// A call of two, from browser to browser.

import { cameraConstraints, chosenSource, microphoneConstraints, pictureSize } from './form.js';
import { Call } from './nagare-call.js';
import { openPattern } from './pattern.js';
import { begin, dropTile, end, play, session, showOwn, tileOf } from './stage.js';
import { complain, presence, press, say, showPeople, ui } from './ui.js';
import { mediaWords } from './words.js';

export async function joinCall(name) {
  const source = chosenSource();
  const pattern = source === 'synthetic' ? openPattern(pictureSize()) : null;
  const room = {
    kind: 'call', name, pattern, tiles: new Map(), clickedAt: Date.now(), local: {}, why: () => '',
    close() {
      room.call?.leave();
      pattern?.close();
      for (const track of Object.values(room.local)) track?.stop();
    },
    draw: () => drawCall(room),
    toggle: (kind) => muteCall(room, kind),
    switchTo: (kind, device) => switchTo(room, kind, device),
    parts: (tile) => (tile.key === 'self' ? room.call?.peerConnection?.getSenders().filter((one) => one.track) ?? []
      : room.call?.peerConnection?.getReceivers().filter((one) => room.call.stream?.getTracks().includes(one.track)) ?? []),
  };
  begin(room);
  ui.mute.hidden = ui['camera-off'].hidden = false;
  ui.screen.hidden = ui.role.hidden = true;
  for (const button of [ui.mute, ui['camera-off']]) button.disabled = false;
  drawCall(room);
  if (source === 'camera') {
    try {
      const stream = await openDevices();
      if (session !== room) { for (const one of stream.getTracks()) one.stop(); return; }
      for (const one of stream.getTracks()) room.local[one.kind] = one;
    } catch (error) {
      if (session === room) complain(`${mediaWords(error)} The other does not see and hear you.`);
    }
  } else {
    for (const one of pattern?.tracks ?? []) room.local[one.kind] = one;
  }
  if (session !== room) return;
  const call = room.call = new Call({ room: name, token: ui.token.value.trim() || undefined,
    tracks: Object.values(room.local).filter(Boolean) });
  call.addEventListener('status', ({ detail: { status, text } }) => {
    if (session !== room) return;
    if (status === 'ended' && text) { end(text); return; }
    if (status === 'connected') {
      complain();
      say(`You are connected to the other, ${path(room)}.`);
      room.connectedAt ??= Date.now();
    }
    if (status === 'waiting') { complain(); say(''); }
    if (status === 'disconnected') complain(text);
    drawCall(room);
  });
  call.addEventListener('stream', () => { if (session === room) drawCall(room); });
  drawCall(room);
}

async function openDevices() {
  if (!navigator.mediaDevices?.getUserMedia) throw new DOMException('', 'SecurityError');
  const open = (video, audio) => navigator.mediaDevices.getUserMedia({ ...(video && { video }), ...(audio && { audio }) });
  const [video, audio] = [cameraConstraints(ui.camera.value), microphoneConstraints(ui.microphone.value)];
  return open(video, audio).catch((error) => {
    if (error.name === 'NotAllowedError') throw error;
    return open(video).catch(() => open(null, audio)).catch(() => { throw error; });
  });
}

function drawCall(room) {
  const name = ui.name.value.trim();
  const { video, audio } = room.local;
  const track = room.isCameraOff ? null : video;
  const isSilent = !audio || !audio.enabled;
  showOwn(tileOf('self', { title: name ? `${name} (you)` : 'You', owner: name || 'You', own: true }), track,
    { isSilent, isMirrored: Boolean(track) && !room.pattern });
  press(ui.mute, isSilent);
  press(ui['camera-off'], !track);
  const stream = room.call?.stream;
  if (stream) {
    const tile = tileOf('other', { title: 'The other', owner: 'The other' });
    tile.show(stream);
    const picture = stream.getVideoTracks()[0];
    const draw = () => tile.follow({ hasPicture: Boolean(picture) && !picture.muted,
      veil: room.call?.status === 'disconnected' ? 'Disconnected' : '' });
    if (picture) picture.onmute = picture.onunmute = draw;
    draw();
    play(tile);
  } else {
    dropTile('other');
  }
  ui.empty.hidden = true;
  const state = room.call?.status ?? 'connecting';
  presence({ connected: 'open', waiting: 'open' }[state] ?? 'trying', { connected: `${room.name} · 2 people, ${path(room)}`,
    waiting: `${room.name} · waiting for the other` }[state] ?? 'Connecting …');
  showPeople('People', [name ? `${name} (you)` : 'You', ...(stream ? ['The other'] : [])]);
}

const path = (room) => room.call?.media === 'server' ? 'through the server' : 'directly';

async function openTrack(kind, constraints) {
  return (await navigator.mediaDevices.getUserMedia({ [kind]: constraints })).getTracks()[0];
}

async function muteCall(room, kind) {
  const track = room.local[kind];
  if (kind === 'audio') {
    if (track) track.enabled = !track.enabled;
  } else if (!room.isCameraOff && track) {
    room.isCameraOff = true;
    await room.call?.replaceTrack('video', null);
    if (!room.pattern) { track.stop(); room.local.video = null; }
  } else {
    const fresh = room.pattern ? track : await openTrack('video', cameraConstraints(ui.camera.value));
    room.isCameraOff = false;
    room.local.video = fresh;
    await room.call?.replaceTrack('video', fresh);
  }
}

async function switchTo(room, kind, device) {
  const fresh = await openTrack(kind, device);
  room.local[kind]?.stop();
  room.local[kind] = fresh;
  await room.call?.replaceTrack(kind, fresh);
}
