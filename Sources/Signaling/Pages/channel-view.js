// A channel, joined with the browser module.

import { act, drawControls } from './bar.js';
import { beginChat, endChat, receive, receiveEarlier, refreshChat } from './chat.js';
import { setControl } from './controls.js';
import {
  bitRateMax, cameraConstraints, chosenSource, microphoneConstraints, pictureSize, refreshDevices, retriesMax, returnWith,
  startsWith, ways,
} from './form.js';
import { Nagare } from './nagare.js';
import { openPattern } from './pattern.js';
import { Gathering } from './notices.js';
import { showPeople } from './people.js';
import { begin, dropTile, notice, play, session, showOwn, tileOf, warn } from './stage.js';
import { complain, presence, say, ui } from './ui.js';
import { markOf } from './warnings.js';
import { errorText, failureText, t, timeOfDay, words } from './words.js';

const chatLabel = '#chat';
/** How long a first join is tried. */
const joinSecondsMax = 60;

/** Joins as the form says. */
export function joinChannel(name) {
  const way = ways[ui.how.value];
  const source = way.sends ? chosenSource() : 'nothing';
  const starts = startsWith();
  const startsWithBoth = starts.audio && starts.video;
  const [codec, displayName] = [ui.codec.value, ui.name.value.trim()];
  const pattern = source === 'synthetic' ? openPattern(pictureSize()) : null;
  const find = (kind) => pattern?.tracks.find((one) => one.kind === kind);
  const token = ui.token.value.trim();
  let channel;
  try {
    channel = Nagare.channel({
      channel: name, token: token || undefined, displayName: displayName || undefined, joinTimeout: joinSecondsMax,
      messages: [chatLabel], autoPublish: (source !== 'nothing' && startsWithBoth) || way === ways.audience,
      // The server stops the sizes that nobody needs, so that the smaller ones are there when a third person joins.
      simulcast: ui.simulcast.checked,
      codec: codec || undefined, bitRate: bitRateMax(),
      camera: find('video') ?? cameraConstraints(ui.camera.value),
      microphone: find('audio') ?? microphoneConstraints(ui.microphone.value),
      ...way.options,
    });
  } catch (error) {
    pattern?.close();
    complain(errorText(error));
    return;
  }
  const room = {
    kind: 'channel', name, channel, pattern, tiles: new Map(), clickedAt: Date.now(), connections: 0, retries: 0, sent: null,
    close() { channel.leave(); room.pattern?.close(); endChat(); },
    draw: () => drawOwn(room),
    toggle: (kind) => channel.mute(kind, !channel.isMuted(kind)),
    switchTo: (kind, device) => channel.switchDevice(kind, device),
    toggleScreen: () => (channel.screenTrack ? channel.unpublishScreen() : channel.publishScreen()),
    // What was measured before the connection was lost says nothing about the network now.
    quality: () => (channel.status === 'connected' ? { ...channel.networkQuality, sending: room.sent?.sending } : {}),
    mark: (tile, warning) => markIn(room, tile, warning),
    parts: (tile) => (tile.key === 'self' ? senders(channel.peerConnection) : tile.key === 'self-screen'
      ? senders(channel.screenPeerConnection) : Object.values(tile.connection?.receivers ?? {})),
  };
  begin(room);
  beginChat((text) => channel.sendMessage(text, { label: chatLabel }), channel.user);
  listen(room);
  drawOwn(room);
  refresh(room);
  channel.join().catch((error) => {
    if (session !== room || error.reason === 'LEFT') return;
    const isTimeout = error.reason === 'JOIN-TIMEOUT' && channel.statusReason;
    returnWith(isTimeout ? { reason: channel.statusReason, text: channel.statusText }
      : { reason: error.reason, text: error.message });
  });
  if (source !== 'nothing' && !startsWithBoth) {
    channel.publish({ ...(!starts.video && { camera: false }), ...(!starts.audio && { microphone: false }) })
      .catch((error) => { if (session === room) failed(room, error); });
  }
}

const senders = (peer) => peer?.getSenders().filter((one) => one.track) ?? [];
const guestName = (id) => (id.startsWith('guest-') ? t('people.guest', { id: id.slice(-4) }) : id);
const nameOf = (user) => user.name || guestName(user.id);

function markIn(room, tile, warning) {
  if (room.channel.status !== 'connected') return undefined;
  const sending = isHeldBack(room, tile) ? room.sent.sending : null;
  const text = sending ? words.sending(sending) : '';
  const { uplink = 0 } = tile.connection?.networkQuality ?? {};
  return markOf(tile, warning, { heldBack: text ? { text, isNetwork: sending.limit === 'network' } : null, name: tile.owner,
    otherUplink: uplink });
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
  const tell = (text) => { if (session === room) notice(text); };
  const [joined, left] = [new Gathering('notice.joined', tell), new Gathering('notice.left', tell)];
  on('joined', () => { room.hasJoined = true; refresh(room); refreshDevices(); });
  on('trackChanged trackAvailable userInterrupted userResumed networkQuality', () => refresh(room));
  on('userOnline', ({ user }) => {
    // Those who are there already come before the end of joining.
    if (room.hasJoined) joined.add(nameOf(user));
    refresh(room);
  });
  on('userOffline', ({ user, reason }) => {
    if (words.offline[reason]) notice(words.offline[reason](nameOf(user)));
    else left.add(nameOf(user));
    refresh(room);
  });
  on('localTrackChanged', () => { drawOwn(room); refresh(room); });
  on('roleChanged', ({ role, by }) => {
    room.leftStage = role === 'audience' && by === 'self';
    if (by !== 'self') announce(t(`role.${role}.${by}`));
    drawOwn(room);
    refresh(room);
  });
  on('muted', ({ kind, muted, by }) => announce(t(`${muted ? 'muted' : 'unmuted'}.${kind}.${by}`)));
  on('handChanged', ({ user, name, raised }) => {
    if (raised && user !== channel.user && room.hasJoined) {
      const isOnStage = channel.users.some((one) => one.id === user);
      notice(t(isOnStage ? 'notice.hand' : 'notice.asks', { name: name || guestName(user) }));
    }
    drawOwn(room);
    refresh(room);
  });
  on('message', ({ user, label, text }) => { if (label === chatLabel) receive(user.id, nameOf(user), text); });
  on('history', ({ messages }) =>
    receiveEarlier(messages.map((one) => ({ ...one, name: one.name || guestName(one.user) }))));
  on('codecUnsupported', ({ connection, codec }) => {
    if (connection) connection.unplayable = codec;
    refresh(room);
  });
  on('authInfoWillExpire', ({ expiresAt }) => {
    complain(t('failure.expiring', { time: timeOfDay(expiresAt * 1000) }));
  });
  on('bye', ({ text }) => returnWith({ reason: channel.statusReason, text }));
  on('error', ({ error }) => failed(room, error));
}

const announcedMilliseconds = 20_000;
let announcedTimer;
/** Says what others did to the user. It is not true for ever. */
function announce(text) {
  notice('');
  say(text);
  clearTimeout(announcedTimer);
  announcedTimer = setTimeout(() => { if (ui.status.textContent === text) say(''); }, announcedMilliseconds);
}

/** A failure that does not end the channel. */
function failed(room, error) {
  if (!error.reason.startsWith('MEDIA-')) { say(errorText(error)); return; }
  complain(`${errorText(error)} ${t('failure.unseen')}`, {
    label: t('preview.usePattern'),
    act: () => {
      if (session !== room) return;
      room.pattern ??= openPattern(pictureSize());
      const [camera, microphone] = ['video', 'audio'].map((kind) => room.pattern.tracks.find((one) => one.kind === kind));
      room.channel.publish({ camera, microphone }).catch((again) => say(errorText(again)));
    },
  });
}

function follow(room, { status, reason, text, retrySeconds }) {
  if (status === 'connected') {
    room.connections += 1;
    room.retries = 0;
    room.connectedAt ??= Date.now();
    say(t('call.youAreIn', { channel: room.name }));
    // A problem of the devices stays.
    if (room.isTroubled) complain();
    room.isTroubled = false;
  } else if (status === 'disconnected' && text) {
    room.retries += 1;
    if (room.retries > retriesMax) { returnWith({ reason, text }, { isGivenUp: true }); return; }
    room.isTroubled = true;
    const count = Math.max(1, Math.round(retrySeconds ?? 0));
    say('');
    complain(failureText({ reason, text }, ui.token.value.trim())
      + (retrySeconds === undefined ? '' : ` ${t('failure.retry', { count })}`));
  } else if (status === 'failed') {
    returnWith({ reason, text });
  }
  refresh(room);
}

// ---- what is shown --------------------------------------------------------------------------------------------------

/** The own tiles. The own camera's has the key `self`. */
function drawOwn(room) {
  const { channel } = room;
  const name = ui.name.value.trim();
  const owner = name || t('call.you');
  const [isSilent, isCameraOff] = [channel.isMuted('audio'), channel.isMuted('video')];
  const isOnStage = channel.isPublisher && channel.role === 'host';
  if (isOnStage) {
    const track = isCameraOff ? null : channel.cameraTrack;
    showOwn(tileOf('self', { title: name ? t('call.youNamed', { name }) : t('call.you'), owner, own: true }), track,
      { isSilent, isMirrored: Boolean(track) && !room.pattern, hasHand: channel.handIsRaised });
  } else {
    dropTile('self');
  }
  const screen = channel.screenTrack;
  if (screen) showOwn(tileOf('self-screen', { title: t('call.yourScreen'), owner, own: true, isScreen: true }), screen);
  else dropTile('self-screen');
  drawControls({ isSilent, isCameraOff, isSharing: Boolean(screen) });
  drawRole(room, isOnStage);
}

/** The buttons that depend on the role. */
function drawRole({ channel, leftStage }, isOnStage) {
  const hasRoles = channel.isExtended && channel.profile === 'interactive' && channel.isPublisher;
  ui.mute.hidden = ui['camera-off'].hidden = ui.screen.hidden = !isOnStage;
  // Others ask to be let in.
  ui.role.hidden = !(hasRoles && (isOnStage || channel.isModerator || leftStage));
  setControl(ui.role, isOnStage ? { icon: 'stage-off', label: t('call.leaveStage') }
    : { icon: 'stage', label: t('call.goOnStage') });
  ui.hand.hidden = !(channel.isExtended && channel.isPublisher);
  const isAsking = hasRoles && !isOnStage;
  const label = channel.handIsRaised ? (isAsking ? 'call.dontAsk' : 'call.lowerHand')
    : isAsking ? 'call.askToSpeak' : 'call.raiseHand';
  setControl(ui.hand, { icon: 'hand', label: t(label), tone: channel.handIsRaised ? 'on' : '' });
  ui.hand.classList.toggle('is-main', isAsking);
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
  drawRole(room, channel.isPublisher && channel.role === 'host');
  drawPeople(room);
  refreshChat({ isConnected: channel.status === 'connected', isAvailable: channel.messageLabels.includes(chatLabel) });
  ui.empty.hidden = room.tiles.size > 0;
  const isWaiting = channel.profile === 'interactive' && channel.role === 'audience';
  ui.empty.textContent = channel.status !== 'connected' ? t('state.connecting')
    : t(isWaiting ? 'call.emptyStage' : 'call.empty', { channel: room.name });
  drawPresence(room);
  warn();
}

function drawPresence({ name, channel }) {
  const { status } = channel;
  const state = { connected: 'open', failed: 'failed' }[status] ?? 'trying';
  const isNew = status === 'init' || status === 'connecting';
  presence(state, status === 'connected' ? `${name} · ${words.people(channel.users.length + 1)}`
    : t(isNew ? 'state.connecting' : 'state.disconnected'));
}

function drawConnection(room, user, connection) {
  const { channel } = room;
  const name = nameOf(user);
  const isScreen = connection.source === 'screen';
  const tile = tileOf(connection.id, { title: isScreen ? t('call.screenOf', { name }) : name, owner: name, isScreen });
  tile.connection = connection;
  tile.root.dataset.user = user.id;
  if (tile.video.srcObject !== connection.stream) {
    tile.show(connection.stream);
    connection.stream.addEventListener('addtrack', () => play(tile));
  }
  if (connection.stream.getTracks().length && tile.video.paused) play(tile);
  const codec = connection.unplayable;
  tile.follow({
    hasPicture: connection.hasPicture && !codec, isSilent: connection.audio ? connection.audioMuted : !isScreen,
    veil: codec ? words.cannotPlay(codec) : '', happens: user.interrupted ? t('tile.interrupted') : '',
    hasHand: !isScreen && channel.hands.has(user.id), isFaded: channel.status === 'disconnected',
  });
}

// ---- the list of people ---------------------------------------------------------------------------------------------

function drawPeople({ channel }) {
  const own = ui.name.value.trim();
  const hasRoles = channel.profile === 'interactive' && channel.isExtended;
  const role = (one) => (hasRoles ? t(one === 'host' ? 'people.onStage' : 'people.audience') : '');
  const me = { key: channel.user, name: own ? t('call.youNamed', { name: own }) : t('call.you'),
    face: own || t('call.you'), isOwn: true, note: notes(role(channel.role), channel.isModerator ? t('people.moderator') : ''), hasHand: channel.handIsRaised };
  const others = channel.users.map((user) => ({ key: user.id, name: nameOf(user), hasHand: channel.hands.has(user.id),
    note: notes(role(user.role), user.interrupted ? t('people.interrupted') : ''), actions: actionsFor(channel, user, hasRoles) }));
  // The audience is announced to nobody until it asks.
  const outside = [...channel.hands].filter(([id]) => id !== channel.user && !channel.users.some((one) => one.id === id))
    .map(([id, given]) => {
      const name = given || guestName(id);
      return { key: id, name, note: t('people.audience'), hasHand: true, isOutside: true,
        actions: channel.isModerator ? [letIn(channel, id, name), remove(channel, id, name)] : [] };
    });
  showPeople([me, ...outside, ...others], channel.isModerator);
}

const notes = (...parts) => parts.filter(Boolean).join(' · ');

const letIn = (channel, user, name) => ({ key: 'let-in', text: t('people.letIn'), label: t('people.letInUser', { name }),
  act: () => act(() => channel.setUserRole(user, 'host')) });
const remove = (channel, user, name) => ({ key: 'remove', icon: 'remove', label: t('people.removeUser', { name }),
  confirm: t('people.removeConfirm'), act: () => act(() => channel.removeUser(user)) });

/** What a moderator can do with a user. */
function actionsFor(channel, user, hasRoles) {
  if (!channel.isModerator) return [];
  const name = nameOf(user);
  const sends = (kind) => user.connections.some((one) => one.source === 'camera' && one[kind] && !one[`${kind}Muted`]);
  const action = (key, icon, label, perform) => ({ key, icon, label: t(label, { name }), act: () => act(perform) });
  return [
    ...(hasRoles && user.role === 'audience' ? [letIn(channel, user.id, name)] : []),
    ...(sends('audio') ? [action('mute', 'microphone-off', 'people.muteUser', () => channel.muteUser(user, 'audio'))] : []),
    ...(sends('video') ? [action('camera', 'camera-off', 'people.cameraOffUser', () => channel.muteUser(user, 'video'))] : []),
    ...(hasRoles && user.role === 'host'
      ? [action('move-down', 'stage-off', 'people.moveDownUser', () => channel.setUserRole(user, 'audience'))] : []),
    remove(channel, user.id, name),
  ];
}
