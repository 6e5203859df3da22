// A channel: joining and leaving, requests to the server, and what it announces.

import { NagareError, badParameter, leftByItself } from './nagare-errors.js';
import { Link } from './nagare-link.js';
import { chatLabel } from './nagare-messages.js';
import { credentialOf, normalized } from './nagare-options.js';
import { Runner } from './nagare-reconnect.js';
import { ScreenShare } from './nagare-screen.js';
import { LocalTracks } from './nagare-tracks.js';
import { User, UserList } from './nagare-users.js';

/** A node without the extension is known by its silence after the media is connected. */
const extensionMilliseconds = 300;

const idOf = (user) => user?.id ?? user;
const earlierMessage = ({ user_id: user, display_name: name = '', text, sent_at: sentAt }) => ({ user, name, text, sentAt });

const asHand = ([user, name]) => ({ user_id: user, display_name: name });

/** One user's place in a channel. Events are `CustomEvent`s with their members in `detail`. */
export class Channel extends EventTarget {
  #options;
  #local;
  #screen;
  #others;
  #main;
  #resume = null;
  #mayModerate = false;
  /** Whether the user asked to speak since its last change of role. */
  #hasAsked = false;
  #settling = null;

  constructor(options) {
    super();
    this.#options = normalized(options);
    this.status = 'init';
    this.statusText = '';
    this.role = this.#options.role ?? (this.#options.canPublish ? 'host' : 'audience');
    this.profile = this.#options.profile ?? 'communication';
    this.networkQuality = { uplink: 0, downlink: 0 };
    this.hands = new Map();
    const emit = (type, detail) => this.#emit(type, detail);
    this.#local = new LocalTracks({
      defaults: this.#options,
      requirePublishing: () => this.#requirePublishing(),
      sender: (kind) => this.#main?.link?.senders[kind],
      signalMuted: (kind) => this.#signalMuted(kind),
      emit,
    });
    this.#screen = new ScreenShare({
      addresses: this.#options.addresses,
      message: (nagare, rest) => this.#message(nagare, rest),
      role: () => (this.profile === 'interactive' ? 'host' : undefined),
      emit,
    });
    this.#others = new UserList({ self: this.user, connectionId: () => this.connectionId, emit });
  }

  /** The channel's name. */
  get name() { return this.#options.channel; }
  get user() { return this.#options.user; }
  get displayName() { return this.#options.displayName ?? ''; }
  /** The other users. */
  get users() { return this.#others.all; }
  get isExtended() { return this.#others.isExtended === true; }
  get connectionId() { return this.#main?.link?.id ?? null; }
  /** For `getStats`; `null` while there is none. */
  get peerConnection() { return this.#main?.link?.peer ?? null; }
  get screenPeerConnection() { return this.#screen.peerConnection; }
  get cameraTrack() { return this.#local.track('video'); }
  get microphoneTrack() { return this.#local.track('audio'); }
  get screenTrack() { return this.#screen.track; }
  /** The labels of messages that the server passes on; empty without a connection. */
  get messageLabels() { return this.#main?.link?.messages.labels ?? []; }
  /** Whether this connection can ever publish. */
  get isPublisher() { return this.#options.canPublish; }
  /** Whether this user may do something to others: while it is a host. */
  get isModerator() { return this.#mayModerate && this.role === 'host'; }

  get handIsRaised() { return this.hands.has(this.user); }
  isMuted(kind) { return this.#local.isMuted(kind); }

  #emit(type, detail = {}) { this.dispatchEvent(new CustomEvent(type, { detail })); }

  #become(status, failure, retrySeconds) {
    const { reason = '', text = '' } = failure ?? {};
    if (status === this.status && reason === this.statusReason) return;
    Object.assign(this, { status, statusReason: reason, statusText: text });
    this.#emit('connectionStatus', { status, reason, text, retrySeconds });
  }

  // -- joining and leaving

  /** Joins. Resolves when the media is connected. Rejects when the server refuses, or after `joinTimeout` seconds. */
  join() {
    if (this.#main) {
      return Promise.reject(new NagareError('ALREADY-JOINED', 'This channel object was joined already.', 16843521));
    }
    this.#main = new Runner({
      open: () => this.#openMain(),
      ready: () => this.#settle(),
      changed: (status, failure, seconds) => this.#become(status, failure, seconds),
      ended: (failure, wasReady) => this.#options.addresses.failed(failure, wasReady),
    });
    this.onpagehide = () => this.leave();
    addEventListener('pagehide', this.onpagehide);
    return new Promise((resolve, reject) => {
      const { joinTimeout, autoPublish } = this.#options;
      const timer = joinTimeout < Infinity && setTimeout(() => {
        reject(new NagareError('JOIN-TIMEOUT', this.statusText || 'The server did not answer in time.', 16908804));
        this.leave();
      }, joinTimeout * 1000);
      this.addEventListener('joined', () => { clearTimeout(timer); resolve(this); }, { once: true });
      this.#main.run().then((failure) => {
        clearTimeout(timer);
        this.#finish(failure);
        reject(new NagareError(failure.reason, failure.text || 'The channel was left.', failure.code));
      });
      if (autoPublish && this.#options.canPublish && this.role === 'host') {
        this.publish().catch((error) => {
          if (error.reason !== 'LEFT') setTimeout(() => this.#emit('error', { error }), 0);
        });
      }
    });
  }

  #message(nagare, rest) {
    const { channel, user, accessToken, displayName, metadata } = this.#options;
    return {
      type: 'connect', channel_id: channel, client_id: user, bundle_id: user, sora_client: 'Nagare JavaScript module 1',
      environment: navigator.userAgent,
      metadata: accessToken ? { ...metadata, access_token: accessToken } : metadata,
      signaling_notify_metadata: displayName ? { name: displayName } : undefined,
      nagare: { profile: this.#options.profile, ...nagare }, ...rest,
    };
  }

  #openMain() {
    const { canPublish, autoSubscribe, codec, bitRate, simulcast, messages } = this.#options;
    const role = this.#options.role || this.profile === 'interactive' ? this.role : undefined;
    const subscribe = autoSubscribe ? undefined : 'manual';
    this.#others.restart();
    const link = new Link({
      url: this.#options.addresses.current,
      addresses: this.#options.addresses.all,
      connect: this.#message({ role, source: 'camera', subscribe, resume: this.#resume ?? undefined, messages }, {
        role: canPublish ? 'sendrecv' : 'recvonly', audio: true, simulcast: simulcast || undefined,
        video: codec || bitRate ? { codec_type: codec, bit_rate: bitRate } : true,
      }),
      track: (kind) => this.#local.sentTrack(kind),
      notify: (message) => { if (link === this.#main.link) this.#notified(message); },
      push: (data) => this.#emit('push', { data }),
      message: (message) => { if (link === this.#main.link) this.#messaged(message); },
      remote: (found) => { if (link === this.#main.link) this.#others.received(found); },
      faltering: (failure) => {
        if (link.isReady && link === this.#main.link) this.#become(failure ? 'disconnected' : 'connected', failure);
      },
    });
    return link;
  }

  /** Waits a moment for the list of users of the extension. */
  #settle() {
    clearTimeout(this.#settling);
    if (this.isExtended) return;
    this.#settling = setTimeout(() => {
      if (this.isExtended) return;
      this.#others.joinedPlainly();
      this.#joined();
    }, extensionMilliseconds);
  }

  #joinedExtended(message) {
    clearTimeout(this.#settling);
    this.#resume = message.resume_token ?? null;
    this.profile = message.profile ?? this.profile;
    this.#mayModerate = message.moderator === true;
    this.#others.joined(message.users ?? []);
    if (message.role && message.role !== this.role && this.profile === 'interactive') this.#becomeRole(message.role, 'self');
    // The server may have forgotten the own hand with the connection.
    const own = this.handIsRaised ? [{ user_id: this.user, display_name: this.displayName }] : [];
    this.#keepHands([...message.hands ?? [], ...own]);
    this.#joined();
    if (own.length) this.raiseHand().catch(() => this.#handChanged({ user_id: this.user, raised: false }));
  }

  #joined() {
    this.#emit('joined', { channel: this });
    // The place may have been kept, and the other state with it.
    for (const kind of this.#options.canPublish ? ['audio', 'video'] : []) {
      this.#signalMuted(kind).catch(() => this.mute(kind, true));
    }
  }

  /** Leaves the channel, and releases camera, microphone and screen. */
  leave() {
    this.#main?.stop();
    this.#releaseAll();
  }

  #releaseAll() {
    this.unpublishScreen();
    this.#local.release();
  }

  #finish(failure) {
    removeEventListener('pagehide', this.onpagehide);
    clearTimeout(this.#settling);
    // The server refuses the token of a place that an operator ended, and a later join is a new one.
    this.#resume = null;
    this.#releaseAll();
    this.#others.clear();
    this.#become(failure === leftByItself || failure.bye ? 'disconnected' : 'failed', failure);
    if (failure.bye) this.#emit('bye', { reason: failure.bye, text: failure.text });
    if (failure.expired) this.#emit('authInfoExpired', { text: failure.text });
  }

  // -- local media

  #requirePublishing() {
    const refuse = (reason, message) => { throw new NagareError(reason, message, 16843782); };
    if (!this.#options.canPublish) refuse('NOT-A-PUBLISHER', 'This channel was joined to watch only.');
    if (this.role !== 'host') refuse('NOT-A-HOST', 'The audience cannot publish. Become a host first.');
  }

  /**
   * Publishes the camera and the microphone; each may be `true`, `false`, a device identifier, constraints, or a track.
   * Resolves with what could be opened.
   */
  async publish(what = {}) { return this.#local.publish(what); }

  /** Stops publishing: `'camera'`, `'microphone'`, or both. */
  async unpublish(which) { return this.#local.unpublish(which); }

  /**
   * Mutes or unmutes. A muted camera is released, and its light goes off; a muted microphone stays open, and is silent. Rejects
   * with `MUTED-BY-OPERATOR`, and stays muted, while an operator's mute lasts.
   */
  async mute(kind, muted = true) { return this.#local.mute(kind, muted); }

  /** Rejects when the server refuses. Without a connection, the server is told after the return. */
  async #signalMuted(kind) {
    if (!this.isExtended) return;
    try {
      await this.#main.link?.request('setMuted', { kind, muted: this.isMuted(kind) });
    } catch (error) {
      if (error.reason === 'MUTED-BY-OPERATOR') throw error;
    }
  }

  /** Switches to another camera (`'video'`) or microphone (`'audio'`) without a new connection. */
  async switchDevice(kind, device) { return this.#local.switchDevice(kind, device); }

  /** Shares the screen, as a second connection of the same user. `stream` replaces the browser's question. */
  async publishScreen(what = {}) {
    this.#requirePublishing();
    return this.#screen.start(what);
  }

  unpublishScreen() { this.#screen.stop(); }

  // -- requests

  async #request(method, params, unsupported) {
    if (this.#others.isExtended === false) throw new NagareError('UNSUPPORTED', unsupported);
    const link = this.#main?.link;
    if (!link) throw new NagareError('NOT-CONNECTED', 'There is no connection to the server now.');
    return link.request(method, params);
  }

  /** Becomes a host or a member of the audience. */
  async setRole(role) {
    if (!['host', 'audience'].includes(role)) throw badParameter('The role must be “host” or “audience”.');
    if (role === this.role) return;
    await this.#request('setRole', { role }, 'This server knows no roles.');
    await this.#becomeRole(role, 'self');
  }

  async #becomeRole(role, by) {
    if (role === this.role) return;
    const isOwnWish = by === 'self' || this.#hasAsked;
    this.#hasAsked = false;
    this.role = role;
    this.#handChanged({ user_id: this.user, display_name: this.displayName, raised: false });
    this.#emit('roleChanged', { role, by });
    this.#forgetHands();
    if (role === 'audience') {
      this.unpublishScreen();
      await this.unpublish();
    } else if (this.#options.autoPublish && isOwnWish) {
      // Whom others make host, without having asked, opens its devices itself.
      await this.publish().catch((error) => this.#emit('error', { error }));
    }
  }

  /** Raises the hand, or lowers it: hosts and moderators are told. The server lowers it when the role changes. */
  async raiseHand(raised = true) {
    await this.#request('raiseHand', { raised }, 'This server knows no raised hands.');
    this.#hasAsked = raised;
    this.#handChanged({ user_id: this.user, display_name: this.displayName, raised });
  }

  #handChanged({ user_id: user, display_name: name = '', raised }) {
    if (this.hands.has(user) === raised) return;
    if (raised) this.hands.set(user, name);
    else this.hands.delete(user);
    this.#emit('handChanged', { user, name, raised });
  }

  /** The hands of the audience are for moderators. The server tells who becomes one of them. */
  #forgetHands() {
    if (!this.isModerator) this.#keepHands([...this.hands].filter(([user]) => this.#others.user(user)).map(asHand));
  }

  /** Takes over the list of raised hands. */
  #keepHands(hands) {
    const listed = new Set(hands.map((one) => one.user_id));
    for (const [user, name] of this.hands) if (!listed.has(user)) this.#handChanged({ user_id: user, display_name: name, raised: false });
    for (const one of hands) this.#handChanged({ ...one, raised: true });
  }

  // -- moderators: `user` is a `User` or its identifier

  /** Makes another user host or audience. */
  async setUserRole(user, role) {
    if (!['host', 'audience'].includes(role)) throw badParameter('The role must be “host” or “audience”.');
    await this.#moderate('setRole', { user_id: idOf(user), role });
  }

  /** Mutes another user, who can unmute itself. */
  muteUser(user, kind) { return this.#moderate('setMuted', { user_id: idOf(user), kind, muted: true }); }

  /** Mutes all other users. */
  muteOthers(kind) { return this.#moderate('muteOthers', { kind }); }

  /** Removes another user from the channel. */
  removeUser(user) { return this.#moderate('removeUser', { user_id: idOf(user) }); }

  async #moderate(method, params) { await this.#request(method, params, 'This server has no moderators.'); }

  /** Receives a user's media; `user` absent: everybody's. `kind` and `source` restrict it. */
  subscribe(what = {}) { return this.#subscription('subscribe', what); }
  unsubscribe(what = {}) { return this.#subscription('unsubscribe', what); }
  async #subscription(method, { user, kind, source } = {}) {
    await this.#request(method, { user_id: user, kind, source }, 'This server has no subscriptions.');
  }

  /** Sends text or bytes to all others in the channel that have the label. */
  async sendMessage(data, { label = chatLabel } = {}) {
    const link = this.#main?.link;
    if (!link?.isReady || link.isOver) {
      throw new NagareError('NOT-CONNECTED', 'There is no connection to the server now.');
    }
    await link.messages.send(label, data);
  }

  /** The server says who sent a message. It may be somebody who is not announced, as the audience. */
  #messaged({ label, user: id, name, connectionId, data, text }) {
    const user = this.#others.user(id) ?? Object.assign(new User(id), { name, role: 'audience' });
    this.#emit('message', { user, label, text, data, connectionId });
  }

  /** What the server sends to this client, and why not more. */
  statistics() { return this.#request('statistics', {}, 'This server gives no statistics.'); }

  /** Replaces the token before it expires; the media goes on. Returns the new expiry in seconds since 1970. */
  async refreshAuthInfo(token) {
    const options = { ...this.#options, ...(typeof token === 'string' ? { token, appId: undefined } : token) };
    const { accessToken, channel = this.name, user = this.user } = credentialOf(options);
    if (channel !== this.name || user !== this.user) throw badParameter('The token is for another channel or user.');
    if (!accessToken) throw badParameter('“token” is missing.');
    const { expires_at: expiresAt } = await this.#request('refreshToken', { access_token: accessToken },
      'This server cannot replace a token while it is in use.');
    this.#options.accessToken = accessToken;
    return expiresAt;
  }

  // -- events of the server

  #notified(message) {
    const handler = this.#handlers[message.event_type];
    handler?.(message);
    this.#emit('notify', { message });
  }

  #handlers = {
    'channel.joined': (message) => this.#joinedExtended(message),
    'connection.created': (message) => this.#others.connectionsCreated(message),
    'connection.destroyed': ({ connection_id: id }) => this.#others.connectionDestroyed(id),
    'user.online': (message) => this.#others.online(message),
    'user.offline': ({ user_id: id, reason }) => {
      this.#others.offline(id, reason);
      this.#handChanged({ user_id: id, display_name: this.hands.get(id), raised: false });
    },
    'user.interrupted': ({ user_id: id }) => this.#others.interrupt(id, true),
    'user.resumed': ({ user_id: id }) => this.#others.interrupt(id, false),
    'track.changed': (message) => this.#others.trackChanged(message),
    'role.changed': ({ role, by }) => { this.#becomeRole(role, by); },
    'hand.changed': (message) => this.#handChanged(message),
    'chat.history': ({ messages }) => this.#emit('history', { messages: messages.map(earlierMessage) }),
    'muted': ({ kind, muted, by }) => {
      this.#emit('muted', { kind, muted, by });
      if (muted) this.mute(kind, true).catch(() => {});
    },
    'network.quality': ({ uplink, downlink }) => {
      this.networkQuality = { uplink, downlink };
      this.#emit('networkQuality', { uplink, downlink });
    },
    'user.network_quality': (message) => this.#others.qualityChanged(message),
    'token.expiring': ({ expires_at: expiresAt }) => this.#emit('authInfoWillExpire', { expiresAt }),
    'codec.unsupported': (message) => this.#emit('codecUnsupported', { kind: message.kind, codec: message.codec_type,
      connection: this.#others.connection(message.source_connection_id), text: message.message }),
  };
}
