// A channel, joined with the browser module.

import { beginChat, endChat, receive, refreshChat } from './chat.js';
import {
  bitRateMax, cameraConstraints, chosenSource, microphoneConstraints, pictureSize, refreshDevices, ways,
} from './form.js';
import { Nagare } from './nagare.js';
import { openPattern } from './pattern.js';
import { begin, dropTile, end, play, session, showOwn, tileOf } from './stage.js';
import { complain, presence, press, say, showPeople, showQuality, ui } from './ui.js';
import { words } from './words.js';

const chatLabel = '#chat';

/** Joins as the form says. */
export function joinChannel(name) {
  const way = ways[ui.how.value];
  const source = way.sends ? chosenSource() : 'nothing';
  const [codec, displayName] = [ui.codec.value, ui.name.value.trim()];
  const pattern = source === 'synthetic' ? openPattern(pictureSize()) : null;
  const find = (kind) => pattern?.tracks.find((one) => one.kind === kind);
  const token = ui.token.value.trim();
  let channel;
  try {
    channel = Nagare.channel({
      channel: name, token: token || undefined, displayName: displayName || undefined, joinTimeout: Infinity,
      messages: [chatLabel], autoPublish: source !== 'nothing' || way === ways.audience, simulcast: ui.simulcast.checked,
      codec: codec || undefined, bitRate: bitRateMax(),
      camera: find('video') ?? cameraConstraints(ui.camera.value),
      microphone: find('audio') ?? microphoneConstraints(ui.microphone.value),
      ...way.options,
    });
  } catch (error) {
    pattern?.close();
    complain(error.message);
    return;
  }
  const room = {
    kind: 'channel', name, channel, pattern, tiles: new Map(), clickedAt: Date.now(), connections: 0, sent: null,
    close() { channel.leave(); room.pattern?.close(); endChat(); },
    draw: () => drawOwn(room),
    toggle: (kind) => channel.mute(kind, !channel.isMuted(kind)),
    switchTo: (kind, device) => channel.switchDevice(kind, device),
    why: (tile) => whyOf(room, tile),
    parts: (tile) => (tile.key === 'self' ? senders(channel.peerConnection) : tile.key === 'self-screen'
      ? senders(channel.screenPeerConnection) : Object.values(tile.connection?.receivers ?? {})),
  };
  begin(room);
  beginChat((text) => channel.sendMessage(text, { label: chatLabel }));
  listen(room);
  ui.mute.hidden = ui['camera-off'].hidden = ui.screen.hidden = !channel.isPublisher;
  drawOwn(room);
  refresh(room);
  channel.join().catch((error) => {
    if (session === room && error.reason !== 'LEFT') end(error.message);
  });
}

const senders = (peer) => peer?.getSenders().filter((one) => one.track) ?? [];
export const nameOf = (user) => user.name || (user.id.startsWith('guest-') ? `Guest ${user.id.slice(-4)}` : user.id);

/** A limit of the first seconds is the network's estimate on its way up. */
const limitedSecondsMin = 10;

function whyOf(room, tile) {
  const { channel } = room;
  const heldBack = isHeldBack(room, tile) ? words.sending(room.sent.sending) : '';
  if (tile.isStill && channel.status === 'connected') return heldBack || words.still;
  if (!tile.hasPicture) return '';
  const { uplink, downlink } = channel.networkQuality;
  if (!tile.own) return heldBack || words.badNetwork(downlink);
  const limit = tile.limitedFor > limitedSecondsMin ? words.ownLimit[tile.numbers.limit] : '';
  return limit || words.badNetwork(uplink);
}

/** Whether the server sends a lower layer of the picture than this browser wants, or none. */
function isHeldBack({ channel, sent }, tile) {
  const receiver = tile.connection?.receivers.video;
  const mid = receiver && channel.peerConnection?.getTransceivers().find((one) => one.receiver === receiver)?.mid;
  const { playing, wanted, target } = sent?.slots.find((one) => one.mid === mid) ?? {};
  if (!playing || !wanted) return false;
  return !target || target.rid !== wanted.rid || target.spatial_id < wanted.spatial_id || target.temporal_id < wanted.temporal_id;
}

// ---- what happens in the channel ------------------------------------------------------------------------------------

function listen(room) {
  const { channel } = room;
  const on = (types, act) => {
    for (const type of types.split(' ')) {
      channel.addEventListener(type, ({ detail }) => { if (session === room) act(detail); });
    }
  };
  on('connectionStatus', (detail) => follow(room, detail));
  on('joined', () => { refresh(room); refreshDevices(); });
  on('userOnline trackChanged trackAvailable userInterrupted userResumed networkQuality', () => refresh(room));
  on('userOffline', ({ user, reason }) => {
    if (words.offline[reason]) say(words.offline[reason](nameOf(user)));
    refresh(room);
  });
  on('localTrackChanged', () => { drawOwn(room); refresh(room); });
  on('roleChanged', ({ role, by }) => {
    const moved = role === 'host' ? 'An operator brought you on stage.' : 'An operator moved you to the audience.';
    if (by === 'operator') say(moved);
    drawOwn(room);
    refresh(room);
  });
  on('muted', ({ kind, muted }) => {
    const what = kind === 'audio' ? 'microphone' : 'camera';
    say(muted ? `An operator turned your ${what} off.` : `An operator allows your ${what} again.`);
  });
  on('message', ({ user, label, text }) => { if (label === chatLabel) receive(nameOf(user), text); });
  on('codecUnsupported', ({ connection, codec }) => {
    if (connection) connection.unplayable = codec;
    refresh(room);
  });
  on('authInfoWillExpire', ({ expiresAt }) => {
    const seconds = Math.max(0, Math.round(expiresAt - Date.now() / 1000));
    complain(`Your access token expires in ${seconds} s. Then you have to join again with a new one.`);
  });
  on('bye', ({ text }) => end(text));
  on('error', ({ error }) => failed(room, error));
}

/** A failure that does not end the channel. */
function failed(room, error) {
  if (!error.reason.startsWith('MEDIA-')) { say(error.message); return; }
  complain(`${error.message} Others do not see and hear you.`, {
    label: 'Send the test pattern instead',
    act: () => {
      if (session !== room) return;
      room.pattern ??= openPattern(pictureSize());
      const [camera, microphone] = ['video', 'audio'].map((kind) => room.pattern.tracks.find((one) => one.kind === kind));
      room.channel.publish({ camera, microphone }).catch((again) => say(again.message));
    },
  });
}

function follow(room, { status, text, retrySeconds }) {
  if (status === 'connected') {
    room.connections += 1;
    room.connectedAt ??= Date.now();
    say(`You are in “${room.name}”.`);
    // A problem of the devices stays.
    if (room.isTroubled) complain();
    room.isTroubled = false;
  } else if (status === 'disconnected' && text) {
    room.isTroubled = true;
    const again = retrySeconds === undefined ? '' : ` Trying again in ${Math.max(1, Math.round(retrySeconds))} s.`;
    say('');
    complain(text + again);
  } else if (status === 'failed') {
    end(text);
  }
  refresh(room);
}

// ---- what is shown --------------------------------------------------------------------------------------------------

/** The own tiles. The own camera's has the key `self`. */
function drawOwn(room) {
  const { channel } = room;
  const name = ui.name.value.trim();
  const owner = name || 'You';
  if (channel.isPublisher && channel.role === 'host') {
    const track = channel.isMuted('video') ? null : channel.cameraTrack;
    showOwn(tileOf('self', { title: name ? `${name} (you)` : 'You', owner, own: true }), track,
      { isSilent: channel.isMuted('audio'), isMirrored: Boolean(track) && !room.pattern });
  } else {
    dropTile('self');
  }
  const screen = channel.screenTrack;
  if (screen) showOwn(tileOf('self-screen', { title: 'Your screen', owner, own: true, isScreen: true }), screen);
  else dropTile('self-screen');
  press(ui.mute, channel.isMuted('audio'));
  press(ui['camera-off'], channel.isMuted('video'));
  press(ui.screen, Boolean(screen));
}

/** Whether a connection of another user has a tile: those who only watch have none. */
const isShown = (channel, user, connection) => connection.audio || connection.video
  || connection.receivers.audio || connection.receivers.video
  || (user.role === 'host' && !channel.isExtended);

function refresh(room) {
  if (session !== room) return;
  const { channel } = room;
  const wanted = new Set(['self', 'self-screen']);
  for (const user of channel.users) {
    for (const connection of user.connections) {
      if (!isShown(channel, user, connection)) continue;
      wanted.add(connection.id);
      drawConnection(room, user, connection);
    }
  }
  for (const key of [...room.tiles.keys()]) if (!wanted.has(key)) dropTile(key);
  const isOnStage = channel.role === 'host';
  ui.role.hidden = !(channel.isPublisher && channel.profile === 'interactive' && channel.isExtended);
  press(ui.role, isOnStage);
  for (const button of [ui.mute, ui['camera-off'], ui.screen]) button.disabled = !isOnStage;
  drawPeople(channel);
  refreshChat({ isConnected: channel.status === 'connected', isAvailable: channel.messageLabels.includes(chatLabel) });
  ui.empty.hidden = room.tiles.size > 0;
  ui.empty.textContent = channel.status === 'connected'
    ? `Nobody sends anything in “${room.name}” yet. Whoever does appears here.` : 'Connecting …';
  drawPresence(room);
}

function drawPresence({ name, channel }) {
  const { status } = channel;
  const state = { connected: 'open', failed: 'failed' }[status] ?? 'trying';
  const isNew = status === 'init' || status === 'connecting';
  presence(state, status === 'connected' ? `${name} · ${words.people(channel.users.length + 1)}`
    : isNew ? 'Connecting …' : 'Disconnected');
  // What was measured before the connection was lost says nothing about the network now.
  const quality = status === 'connected' ? channel.networkQuality : {};
  showQuality(quality, words.quality(quality));
}

function drawConnection(room, user, connection) {
  const name = nameOf(user);
  const isScreen = connection.source === 'screen';
  const tile = tileOf(connection.id, { title: isScreen ? `Screen of ${name}` : name, owner: name, isScreen });
  tile.connection = connection;
  tile.root.dataset.user = user.id;
  if (tile.video.srcObject !== connection.stream) {
    tile.show(connection.stream);
    connection.stream.addEventListener('addtrack', () => play(tile));
  }
  if (connection.stream.getTracks().length && tile.video.paused) play(tile);
  const codec = connection.unplayable;
  const veil = user.interrupted ? `The connection of ${name} is interrupted.`
    : room.channel.status === 'disconnected' ? 'Disconnected' : codec ? words.cannotPlay(codec) : '';
  const isSilent = connection.audio ? connection.audioMuted : !isScreen;
  tile.follow({ hasPicture: connection.hasPicture && !codec, isSilent, veil });
}

function drawPeople(channel) {
  const own = ui.name.value.trim();
  const hasRoles = channel.profile === 'interactive' && channel.isExtended;
  const role = (one) => (!hasRoles ? '' : one === 'host' ? ' · on stage' : ' · audience');
  const lines = [`${own || 'You'}${own ? ' (you)' : ''}${role(channel.role)}`,
    ...channel.users.map((user) => nameOf(user) + role(user.role) + (user.interrupted ? ' · interrupted' : ''))];
  showPeople(lines.length === 1 ? 'People' : `People (${lines.length})`, lines);
}
