// A call of two, from browser to browser.

import { drawControls } from './bar.js';
import { beginChat, endChat, receive, refreshChat } from './chat.js';
import {
  cameraConstraints, chosenSource, microphoneConstraints, pictureSize, retriesMax, returnWith, startsWith,
} from './form.js';
import { Call } from './nagare-call.js';
import { openPattern } from './pattern.js';
import { showPeople } from './people.js';
import { begin, dropTile, notice, play, relayout, session, showOwn, tileOf, warn } from './stage.js';
import { complain, presence, say, ui } from './ui.js';
import { levelOf, markOf } from './warnings.js';
import { failureText, mediaWords, t } from './words.js';

export async function joinCall(name) {
  const source = chosenSource();
  const pattern = source === 'synthetic' ? openPattern(pictureSize()) : null;
  const room = {
    kind: 'call', name, pattern, tiles: new Map(), retries: 0, clickedAt: Date.now(), local: {}, screen: null,
    close() {
      room.call?.leave();
      pattern?.close();
      for (const track of [...Object.values(room.local), room.screen]) track?.stop();
      endChat();
    },
    draw: () => drawCall(room),
    toggle: (kind) => muteCall(room, kind),
    toggleScreen: () => (room.screen ? stopScreen(room) : startScreen(room)),
    quality: () => qualityOf(room),
    mark: (tile, warning) => (room.call?.status === 'connected' ? markOf(tile, warning) : undefined),
    switchTo: (kind, device) => switchTo(room, kind, device),
    parts: (tile) => (tile.key === 'self' ? room.call?.peerConnection?.getSenders().filter((one) => one.track) ?? []
      : room.call?.peerConnection?.getReceivers().filter((one) => room.call.stream?.getTracks().includes(one.track)) ?? []),
  };
  begin(room);
  beginChat(async (text) => room.call?.sendMessage(text));
  ui.mute.hidden = ui['camera-off'].hidden = false;
  ui.screen.hidden = !navigator.mediaDevices?.getDisplayMedia;
  ui.role.hidden = ui.hand.hidden = true;
  drawCall(room);
  if (source === 'camera') {
    try {
      const stream = await openDevices();
      if (session !== room) { for (const one of stream.getTracks()) one.stop(); return; }
      for (const one of stream.getTracks()) adopt(room, one.kind, one);
    } catch (error) {
      if (session === room) complain(`${mediaWords(error)} ${t('call.otherUnseen')}`);
    }
  } else {
    for (const one of pattern?.tracks ?? []) room.local[one.kind] = one;
  }
  if (session !== room) return;
  const call = room.call = new Call({ room: name, token: ui.token.value.trim() || undefined, displayName: ui.name.value.trim(),
    tracks: Object.values(room.local).filter(Boolean) });
  call.addEventListener('status', ({ detail: { status, reason, text } }) => {
    if (session !== room) return;
    if (status === 'disconnected') room.retries += 1;
    if (status === 'connected' || status === 'waiting') room.retries = 0;
    const isGivenUp = room.retries > retriesMax;
    if ((status === 'ended' && text) || isGivenUp) {
      returnWith({ reason, text }, { isGivenUp });
      return;
    }
    if (status === 'connected') {
      complain();
      say(t(`call.connected.${call.media}`));
      room.connectedAt ??= Date.now();
    }
    if (status === 'waiting') { complain(); say(''); }
    if (status === 'disconnected') complain(failureText({ reason, text }));
    drawCall(room);
  });
  for (const type of ['stream', 'other']) call.addEventListener(type, () => { if (session === room) drawCall(room); });
  call.addEventListener('message', ({ detail: { text } }) => { if (session === room) receive('other', otherName(room), text); });
  drawCall(room);
}

async function openDevices() {
  if (!navigator.mediaDevices?.getUserMedia) throw new DOMException('', 'SecurityError');
  const open = (video, audio) => navigator.mediaDevices.getUserMedia({ ...(video && { video }), ...(audio && { audio }) });
  const starts = startsWith();
  const video = starts.video && cameraConstraints(ui.camera.value);
  const audio = starts.audio && microphoneConstraints(ui.microphone.value);
  if (!video || !audio) return open(video, audio);
  return open(video, audio).catch((error) => {
    if (error.name === 'NotAllowedError') throw error;
    return open(video).catch(() => open(null, audio)).catch(() => { throw error; });
  });
}

const otherName = (room) => room.call?.other?.name || t('call.other');

function drawCall(room) {
  const name = ui.name.value.trim();
  const owner = name || t('call.you');
  const track = room.isCameraOff ? null : room.local.video;
  const isSilent = !room.local.audio?.enabled;
  showOwn(tileOf('self', { title: name ? t('call.youNamed', { name }) : t('call.you'), owner, own: true }), track ?? null,
    { isSilent, isMirrored: Boolean(track) && !room.pattern });
  if (room.screen) {
    showOwn(tileOf('self-screen', { title: t('call.yourScreen'), owner, own: true, isScreen: true }), room.screen);
  } else {
    dropTile('self-screen');
  }
  drawControls({ isSilent, isCameraOff: !track, isSharing: Boolean(room.screen) });
  room.call?.setState({ audioMuted: isSilent, videoMuted: !track && !room.screen, isScreen: Boolean(room.screen) });
  drawOther(room);
  ui.empty.hidden = true;
  const { status = 'connecting', media = 'direct' } = room.call ?? {};
  const texts = { connected: t(`call.two.${media}`), waiting: t('call.waiting') };
  presence(status in texts ? 'open' : 'trying', status in texts ? `${room.name} · ${texts[status]}` : t('state.connecting'));
  const isThere = Boolean(room.call?.stream);
  showPeople([{ key: 'self', name: name ? t('call.youNamed', { name }) : t('call.you'), face: owner, isOwn: true },
    ...(isThere ? [{ key: 'other', name: otherName(room), note: room.call.other?.isScreen ? t('people.sharesScreen') : '' }] : [])]);
  refreshChat({ isConnected: status === 'connected' && isThere, isAvailable: room.call?.canSendMessages,
    unavailable: t('chat.otherCannot') });
  warn();
}

function drawOther(room) {
  const { stream, other, status } = room.call ?? {};
  const name = otherName(room);
  if (other && !room.hasTold) notice(t('notice.joined', { name }));
  if (!stream && room.hasTold) notice(t('notice.left', { name: room.hasTold }));
  room.hasTold = stream ? (other ? name : room.hasTold) : null;
  if (!stream) { dropTile('other'); return; }
  const isScreen = Boolean(other?.isScreen);
  const tile = tileOf('other', { title: isScreen ? t('call.screenOf', { name }) : name, owner: name });
  if (tile.isScreen !== isScreen) {
    tile.becomeScreen(isScreen);
    relayout();
  }
  tile.show(stream);
  const [picture] = stream.getVideoTracks();
  const draw = () => tile.follow({ hasPicture: Boolean(picture) && !picture.muted && !other?.videoMuted,
    isSilent: Boolean(other?.audioMuted), isFaded: status === 'disconnected' });
  if (picture) picture.onmute = picture.onunmute = () => { if (session === room) drawOther(room); };
  draw();
  if (tile.video.paused || tile.playsTracks !== stream.getTracks().length) play(tile);
  tile.playsTracks = stream.getTracks().length;
}

/** How many seconds in a row the network has to be bad before that is said. */
const badSecondsMin = 4;

/** The levels of the network, from the numbers of both pictures: the server is not on the way. */
function qualityOf(room) {
  if (room.call?.status !== 'connected') return {};
  room.levels ??= { self: [], other: [] };
  for (const [key, levels] of Object.entries(room.levels)) {
    const { at, loss, rtt, packets } = room.tiles.get(key)?.numbers ?? {};
    if (!at || at === levels.at) continue;
    levels.at = at;
    levels.push(packets ? levelOf(loss, rtt) : 0);
    if (levels.length > badSecondsMin) levels.shift();
  }
  const steady = (levels) => (levels.length < badSecondsMin ? 0 : Math.min(...levels));
  return { uplink: steady(room.levels.self), downlink: steady(room.levels.other) };
}

async function openTrack(kind, constraints) {
  return (await navigator.mediaDevices.getUserMedia({ [kind]: constraints })).getTracks()[0];
}

/** What the other is sent as the picture. */
const sentPicture = (room) => room.screen ?? (room.isCameraOff ? null : room.local.video) ?? null;

/** Opens a device while the call lasts; `null` if it ended meanwhile. */
async function openFor(room, kind, constraints) {
  const track = await openTrack(kind, constraints);
  if (session === room) return track;
  track.stop();
  return null;
}

async function muteCall(room, kind) {
  const track = room.local[kind];
  if (kind === 'audio') {
    if (track) {
      track.enabled = !track.enabled;
      return;
    }
    adopt(room, 'audio', await openFor(room, 'audio', microphoneConstraints(ui['call-microphone'].value || ui.microphone.value)));
    await room.call?.replaceTrack('audio', room.local.audio);
    return;
  }
  if (!room.isCameraOff && track) {
    room.isCameraOff = true;
    if (!room.pattern) { track.stop(); room.local.video = null; }
  } else {
    adopt(room, 'video', room.pattern ? track
      : await openFor(room, 'video', cameraConstraints(ui['call-camera'].value || ui.camera.value)));
    room.isCameraOff = false;
  }
  await room.call?.replaceTrack('video', sentPicture(room));
}

/** Takes a device that was opened. One that was opened meanwhile does not stay on behind it. */
function adopt(room, kind, track) {
  if (room.local[kind] !== track) room.local[kind]?.stop();
  room.local[kind] = track;
}

async function switchTo(room, kind, device) {
  room.local[kind]?.stop();
  const fresh = await openFor(room, kind, device);
  if (!fresh) return;
  fresh.enabled = room.local[kind]?.enabled ?? true;
  adopt(room, kind, fresh);
  if (kind === 'video') room.isCameraOff = false;
  await room.call?.replaceTrack(kind, kind === 'video' ? sentPicture(room) : fresh);
}

/** The screen takes the place of the camera. */
async function startScreen(room) {
  let stream;
  try {
    stream = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 30 } } });
  } catch (error) {
    if (error.name === 'NotAllowedError') return;
    throw error;
  }
  const [track] = stream.getVideoTracks();
  if (session !== room || room.screen) { track.stop(); return; }
  room.screen = track;
  track.contentHint ||= 'detail';
  track.onended = () => stopScreen(room);
  await room.call?.replaceTrack('video', track);
}

async function stopScreen(room) {
  const { screen } = room;
  if (!screen) return;
  room.screen = null;
  screen.onended = null;
  screen.stop();
  if (session !== room) return;
  await room.call?.replaceTrack('video', sentPicture(room));
  drawCall(room);
}
