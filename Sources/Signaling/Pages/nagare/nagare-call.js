/*
 * One-to-one calls between two browsers, over the node's relay of signaling (the Ayame protocol). The media goes from browser
 * to browser, or through the node. The types are in nagare-call.d.ts.
 */
import { NagareError } from './nagare-errors.js';
import { backoffSeconds } from './nagare-reconnect.js';

/** The data channel between the two browsers, for what they say of themselves and to each other. */
const dataLabel = 'nagare';
const dataBytesMax = 16 * 1024;
const nameMax = 128;
/** What may wait for the network before further messages are refused. */
const waitingBytesMax = 1024 * 1024;

const sentences = {
  full: 'Two people are in this call already.',
  InternalServerError: 'The server could not decide on the access.',
};
/** Closes after which a client must not return by itself. */
const ends = new RegExp('^(REPLACED|BANNED|STREAM-BLOCKED|KICKED|DISCONNECTED-API|CHANNEL-TERMINATED|TOKEN-EXPIRED'
  + '|LIFETIME-EXPIRED|INVALID)');
const accessReasons = /denied|unauthor|auth|token/i;

/**
 * A call of two. Its events are `CustomEvent`s: `status` {status, reason, text}, with status `connecting`, `waiting` (alone),
 * `connected`, `disconnected` and `ended`, and why for programs and for people; `stream` {stream}, the other's picture and
 * sound, or `null`; `other` {other}, what the other says of itself, or `null`; `message` {name, text}; and `authInfoWillExpire`
 * {expiresAt}, in seconds since 1970, 30 s before the token expires and the call ends.
 */
export class Call extends EventTarget {
  #options;
  #socket = null;
  #peer = null;
  #queue = Promise.resolve();
  #pending = [];
  #attempt = 0;
  #isOver = false;
  #timer;
  #refreshes = [];
  #data = null;
  #state = { audioMuted: false, videoMuted: false, isScreen: false };

  /**
   * `url`: the node's `/relay`; `room`; `token`; `displayName`; `tracks`: what to send; `media`: `server` to ask for media through
   * the node.
   */
  constructor({ url, room, token, displayName = '', tracks = [], media }) {
    super();
    if (!room) throw new NagareError('BAD-PARAMETER', '“room” is missing.');
    const address = new URL(url ?? '/relay', url ? globalThis.location?.href : import.meta.url);
    address.protocol = { 'http:': 'ws:', 'https:': 'wss:' }[address.protocol] ?? address.protocol;
    const clientId = crypto.getRandomValues(new Uint32Array(2)).join('-');
    this.#options = { url: address.href, room, token, displayName, tracks, media, clientId };
    this.status = 'init';
    this.stream = null;
    /** `{name, audioMuted, videoMuted, isScreen}` as the other says; `null` before it does. */
    this.other = null;
    /** `direct` from browser to browser, or through the `server`. */
    this.media = 'direct';
    this.#open();
  }

  get peerConnection() { return this.#peer; }

  #become(status, reason = '', text = '') {
    Object.assign(this, { status, statusReason: reason, statusText: text });
    this.dispatchEvent(new CustomEvent('status', { detail: { status, reason, text } }));
  }

  #open() {
    if (this.#isOver) return;
    this.#become('connecting');
    const { url, room, token, media, clientId } = this.#options;
    const socket = this.#socket = new WebSocket(url);
    let refusal = null;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.#send({ type: 'register', roomId: room, clientId, signalingKey: token || undefined,
        authnMetadata: token ? { access_token: token } : undefined, ayameClient: 'Nagare JavaScript module 1', media,
        refresh: true, environment: navigator.userAgent });
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === 'reject') refusal = message.reason;
      this.#queue = this.#queue.then(() => this.#received(message)).catch((error) => this.#restart(
        'BROWSER-REFUSED', `This browser rejected the other’s message: ${error.message}`));
    };
    socket.onclose = ({ reason }) => {
      if (socket !== this.#socket) return;
      if (refusal && refusal !== 'InternalServerError') {
        const isAccess = accessReasons.test(refusal);
        const text = sentences[refusal] ?? (isAccess
          ? `The server did not accept the access token${token ? '' : ': none was given'}.`
          : `The server refused the call: ${refusal}.`);
        this.#finish(refusal === 'full' ? 'CALL-FULL' : isAccess ? 'AUTHENTICATION-FAILURE' : refusal, text);
      } else if (ends.test(reason)) {
        this.#finish(reason, `The server ended the call: ${reason}.`);
      } else if (reason === 'BYE') {
        this.#restart('OTHER-LEFT', 'The other left.');
      } else if (this.status === 'connected' || this.status === 'waiting') {
        this.#restart('SIGNALING-LOST', 'The connection to the server was lost.');
      } else if (wasOpen) {
        this.#restart(reason, `The server closed the connection: ${reason}.`);
      } else {
        this.#restart('UNREACHABLE', `The server at ${new URL(url).host} does not answer.`);
      }
    };
  }

  #track(kind) { return this.#options.tracks.find((one) => one.kind === kind) ?? null; }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  async #received(message) {
    switch (message.type) {
      case 'accept':
        this.#attempt = 0;
        this.media = message.media ?? 'direct';
        this.#connect(message.iceServers ?? []);
        if (!(message.isExistClient ?? message.isExistUser)) return this.#become('waiting');
        // The node passes on picture and sound only.
        if (this.media === 'direct') this.#talk(this.#peer.createDataChannel(dataLabel));
        for (const kind of ['audio', 'video']) this.#peer.addTransceiver(this.#track(kind) ?? kind, { direction: 'sendrecv' });
        return this.#describe();
      case 'offer':
        await this.#peer?.setRemoteDescription({ type: 'offer', sdp: message.sdp });
        // Both always negotiate both directions, so that a track can come later without a new offer.
        for (const one of this.#peer?.getTransceivers() ?? []) {
          one.direction = 'sendrecv';
          await one.sender.replaceTrack(this.#track(one.receiver.track.kind));
        }
        await this.#describe();
        return this.#flush();
      case 'answer':
        await this.#peer?.setRemoteDescription({ type: 'answer', sdp: message.sdp });
        return this.#flush();
      case 'candidate':
        if (!message.ice?.candidate) return;
        this.#pending.push(message.ice);
        return this.#flush();
      case 'expiring':
        return void this.dispatchEvent(new CustomEvent('authInfoWillExpire', { detail: { expiresAt: message.expiresAt } }));
      case 'refreshed': return this.#refreshes.shift()?.(message);
      case 'ping': return this.#send({ type: 'pong' });
      default:
    }
  }

  /** Candidates wait for the description that they belong to. */
  async #flush() {
    if (!this.#peer?.remoteDescription) return;
    for (const one of this.#pending.splice(0)) await this.#peer.addIceCandidate(one).catch(() => {});
  }

  #connect(iceServers) {
    const peer = this.#peer = new RTCPeerConnection({ iceServers });
    const stream = new MediaStream();
    peer.ontrack = ({ track }) => {
      stream.addTrack(track);
      if (this.media === 'direct') return this.#show(stream);
      // The node is connected before the other is there.
      track.onunmute = () => {
        if (peer !== this.#peer) return;
        this.#show(stream);
        if (this.status === 'waiting') this.#become('connected');
      };
    };
    peer.ondatachannel = ({ channel }) => { if (channel.label === dataLabel) this.#talk(channel); };
    peer.onicecandidate = ({ candidate }) => {
      if (candidate) this.#send({ type: 'candidate', ice: candidate.toJSON() });
    };
    // The node answers further offers in place, so a change of the network needs no new call.
    peer.onnegotiationneeded = () => {
      if (peer === this.#peer && this.media === 'server' && peer.remoteDescription) this.#describe().catch(() => {});
    };
    peer.onconnectionstatechange = () => {
      if (peer !== this.#peer) return;
      clearTimeout(this.#timer);
      const { connectionState } = peer;
      if (connectionState === 'connected') this.#become(this.media === 'direct' || this.stream ? 'connected' : 'waiting');
      if (connectionState === 'failed') this.#restart('OTHER-UNREACHABLE', 'No network path to the other was found.');
      if (connectionState === 'disconnected') {
        this.#become('disconnected', 'OTHER-LOST', 'The connection to the other was lost.');
        if (this.media === 'server') peer.restartIce();
        this.#timer = setTimeout(() => this.#restart('OTHER-LOST', 'The connection to the other was lost.'), 4000);
      }
    };
  }

  async #describe() {
    const peer = this.#peer;
    await peer.setLocalDescription();
    const { type, sdp } = peer.localDescription;
    this.#send({ type, sdp });
  }

  #show(stream) {
    if (this.stream === stream) return;
    this.stream = stream;
    this.dispatchEvent(new CustomEvent('stream', { detail: { stream } }));
  }

  // -- what the two say to each other

  #talk(data) {
    this.#data = data;
    data.onopen = () => this.#tell();
    data.onmessage = ({ data: text }) => { if (data === this.#data) this.#heard(text); };
    data.onclose = () => { if (data === this.#data) { this.#data = null; this.#know(null); } };
    if (data.readyState === 'open') this.#tell();
  }

  #tell() {
    if (this.#data?.readyState !== 'open') return;
    this.#data.send(JSON.stringify({ type: 'state', name: this.#options.displayName, ...this.#state }));
  }

  /** The other may be any program: only what has the right form counts. */
  #heard(text) {
    if (typeof text !== 'string' || text.length > dataBytesMax) return;
    let message;
    try { message = JSON.parse(text); } catch { return; }
    if (message?.type === 'state') {
      const { name, audioMuted, videoMuted, isScreen } = message;
      this.#know({ name: typeof name === 'string' ? name.slice(0, nameMax) : '', audioMuted: audioMuted === true,
        videoMuted: videoMuted === true, isScreen: isScreen === true });
    } else if (message?.type === 'message' && typeof message.text === 'string') {
      this.dispatchEvent(new CustomEvent('message', { detail: { name: this.other?.name ?? '', text: message.text } }));
    }
  }

  #know(other) {
    if (other === this.other) return;
    this.other = other;
    this.dispatchEvent(new CustomEvent('other', { detail: { other } }));
  }

  /** Tells the other what is muted, and whether the picture is a screen. */
  setState({ audioMuted = false, videoMuted = false, isScreen = false } = {}) {
    const state = { audioMuted, videoMuted, isScreen };
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    this.#tell();
  }

  /** Whether the other takes messages: not before it said something of itself, and never through the node. */
  get canSendMessages() { return Boolean(this.other) && this.#data?.readyState === 'open'; }

  /** Sends text to the other. */
  sendMessage(text) {
    const message = JSON.stringify({ type: 'message', text: String(text) });
    if (!this.canSendMessages) throw new NagareError('NOT-CONNECTED', 'There is no connection for messages to the other now.');
    if (message.length > dataBytesMax) throw new NagareError('MESSAGE-TOO-LONG', 'The message is too long.');
    if (this.#data.bufferedAmount > waitingBytesMax) {
      throw new NagareError('MESSAGES-FULL', 'Your network is too slow for more messages now. Try again in a moment.');
    }
    this.#data.send(message);
  }

  /** Replaces or removes the track of a kind, as for a camera that is switched off. */
  async replaceTrack(kind, track) {
    this.#options.tracks = [...this.#options.tracks.filter((one) => one.kind !== kind), ...(track ? [track] : [])];
    const transceiver = this.#peer?.getTransceivers().find((one) => one.receiver.track.kind === kind);
    await transceiver?.sender.replaceTrack(track);
  }

  /** Presents a new token, so that the call goes on beyond the end of the first one. Its end, in seconds since 1970, or `null`. */
  async refreshAuthInfo(token) {
    if (this.status === 'ended' || this.#socket?.readyState !== WebSocket.OPEN) {
      throw new NagareError('NOT-CONNECTED', 'There is no connection to the server now.');
    }
    if (this.#refreshes.length > 0) throw new NagareError('REQUESTS-FULL', 'Another token is being checked; wait for its result.');
    const answered = new Promise((resolve) => { this.#refreshes.push(resolve); });
    this.#send({ type: 'refresh', signalingKey: token, authnMetadata: { access_token: token } });
    const { expiresAt = null, reason } = await answered;
    if (reason) throw new NagareError('TOKEN-INVALID', reason, 0x02010205);
    this.#options.token = token;
    return expiresAt;
  }

  #drop() {
    clearTimeout(this.#timer);
    for (const resolve of this.#refreshes.splice(0)) resolve({ reason: 'The connection was lost.' });
    const [socket, peer] = [this.#socket, this.#peer];
    this.#socket = this.#peer = this.#data = null;
    this.#pending = [];
    socket?.close();
    peer?.close();
    this.#show(null);
    this.#know(null);
  }

  #restart(reason, text) {
    if (this.#isOver) return;
    this.#drop();
    this.#attempt += 1;
    this.#become('disconnected', reason, text);
    this.#timer = setTimeout(() => this.#open(), backoffSeconds(this.#attempt) * 1000);
  }

  #finish(reason, text) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#drop();
    this.#become('ended', reason, text);
  }

  /** Ends the call. The tracks stay with their owner. */
  leave() { this.#finish('LEFT', ''); }
}
