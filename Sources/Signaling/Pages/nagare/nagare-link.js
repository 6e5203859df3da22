// One connection to the node: its WebSocket for signaling and its peer connection for media.

import { NagareError, failureOfClose, interrupted, leftByItself, silent, unreachableMedia } from './nagare-errors.js';
import { Messages } from './nagare-messages.js';
import { reachable } from './nagare-reconnect.js';

const connectMilliseconds = 15_000;
/** The same where another node can be tried. */
const connectMillisecondsOfSeveral = 4_000;
const mediaMilliseconds = 15_000;
const graceMilliseconds = 2_000;
const probeMilliseconds = 3_000;
const requestMilliseconds = 8_000;
/** How long the peer connection waits for the WebSocket's close. */
const closeMilliseconds = 1_000;
/** The server pings every 5 s unless configured otherwise: three missing pings are silence. */
const silenceMillisecondsMin = 15_000;
/** How often a link looks whether packets arrive, and how long the server may take to answer when they stop. */
const lookMilliseconds = 400;
const answerMilliseconds = 500;

const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/**
 * One WebSocket and one peer connection, from `connect` to the end of either. `ready` is resolved when the media is
 * connected, `ended` with the failure that ended it.
 */
export class Link {
  #socket;
  #queue = Promise.resolve();
  #requests = new Map();
  #requestCount = 0;
  #timers = {};
  #streams = new Map();
  #wasOpen = false;
  /** The address that redirected to the present one; `null` without. */
  #origin = null;
  #lastMessage = 0;
  #longestGap = 5_000;
  #resolve = {};

  /**
   * `addresses`: those of all nodes, the next one to try first. `track(kind)` is the local track; `notify`, `push`, `message`,
   * `remote` and `faltering` are told of events.
   */
  constructor({ url, addresses, connect, track, notify, push, message, remote, faltering }) {
    Object.assign(this, { url, addresses, connect, track, notify, push, remote, faltering });
    this.ready = new Promise((resolve) => { this.#resolve.ready = resolve; });
    this.ended = new Promise((resolve) => { this.#resolve.ended = resolve; });
    this.messages = new Messages((one) => message?.(one));
    this.peer = null;
    this.id = null;
    this.senders = {};
    this.#open();
  }

  /** The addresses of other nodes than the present one. */
  get #others() { return this.addresses.filter((one) => one !== this.url); }

  #open() {
    const { host } = new URL(this.url);
    const unreachable = { reason: 'UNREACHABLE', text: `The server at ${host} does not answer.` };
    try {
      this.#socket = new WebSocket(this.url);
    } catch {
      this.#fail(unreachable);
      return;
    }
    const milliseconds = this.#others.length > 0 ? connectMillisecondsOfSeveral : connectMilliseconds;
    this.#timers.connect = setTimeout(() => this.#fail(unreachable), milliseconds);
    this.#socket.onopen = () => {
      this.#wasOpen = true;
      this.#send(this.connect);
    };
    this.#socket.onmessage = ({ data }) => {
      this.#heard();
      this.#queue = this.#queue.then(() => this.#received(JSON.parse(data))).catch((error) => {
        this.finish({ reason: 'BROWSER-REFUSED', text: `This browser rejected the server’s message: ${error.message}` });
      });
    };
    this.#socket.onclose = (event) => {
      const hasToken = Boolean(this.connect.metadata?.access_token);
      const failure = failureOfClose(event, { host, wasOpen: this.#wasOpen, hasToken });
      this.#fail(failure);
    };
  }

  /** Another node of the cluster serves this client. */
  #redirected(location) {
    if (this.connect.redirect || !/^wss?:\/\/[^/]/.test(location)) return;
    this.#origin = this.url;
    this.#reopen(location);
  }

  #reopen(url) {
    clearTimeout(this.#timers.connect);
    const socket = this.#socket;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#wasOpen = false;
    this.url = url;
    // A node does not redirect a client that says so.
    this.connect = { ...this.connect, redirect: true };
    this.#open();
  }

  /** Ends the connection. A client that cannot reach the node that it was sent to stays at the one that sent it. */
  #fail(failure) {
    const origin = this.#origin;
    if (!origin || this.#wasOpen) {
      this.finish(failure);
      return;
    }
    this.#origin = null;
    this.#reopen(origin);
  }

  #send(message) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Watches for silence, once the server is known to ping. */
  #heard() {
    const now = performance.now();
    if (this.#lastMessage && this.isReady) this.#longestGap = Math.max(this.#longestGap, now - this.#lastMessage);
    this.#lastMessage = now;
    if (!this.hasPinged) return;
    clearTimeout(this.#timers.silence);
    this.#timers.silence = setTimeout(() => this.finish(silent), Math.max(silenceMillisecondsMin, 3 * this.#longestGap));
  }

  async #received(message) {
    switch (message.type) {
      case 'redirect': return this.#redirected(message.location);
      case 'offer': return this.#offered(message);
      case 're-offer': return this.#answer('re-answer', message.sdp);
      case 'update': return this.#answer('update', message.sdp);
      case 'ping': {
        this.hasPinged = true;
        const stats = message.stats && this.peer ? [...(await this.peer.getStats()).values()] : undefined;
        return this.#send(stats ? { type: 'pong', stats } : { type: 'pong' });
      }
      case 'notify':
        // The node says so when the media is connected. The list of members comes with it.
        if (message.event_type === 'connection.created' && message.connection_id === this.id) this.#becomeReady();
        // A server with the extension answers requests.
        if (message.event_type === 'channel.joined') this.#watch().catch(() => {});
        return this.notify?.(message);
      case 'push': return this.push?.(message.data);
      case 'response': return this.#responded(message);
      default:
    }
  }

  #becomeReady() {
    if (this.isReady) return;
    this.isReady = true;
    clearTimeout(this.#timers.media);
    this.#resolve.ready(true);
  }

  async #offered(offer) {
    clearTimeout(this.#timers.connect);
    this.id = offer.connection_id;
    const peer = this.peer = new RTCPeerConnection({ bundlePolicy: 'max-bundle', ...offer.config });
    peer.onconnectionstatechange = () => this.#follow(peer);
    this.messages.offered(offer.data_channels);
    peer.ondatachannel = ({ channel }) => this.messages.add(channel);
    peer.ontrack = ({ streams, transceiver }) => {
      const id = streams[0]?.id;
      if (id && id !== 'default' && id !== this.id) this.#streams.set(transceiver.mid, id);
    };
    this.#timers.media = setTimeout(() => this.finish(unreachableMedia(offer.sdp)), mediaMilliseconds);
    await this.#answer('answer', offer.sdp, async () => {
      for (const [kind, mid] of Object.entries(offer.mid ?? {})) {
        const transceiver = peer.getTransceivers().find((one) => one.mid === mid);
        if (!transceiver) continue;
        transceiver.direction = 'sendonly';
        this.senders[kind] = transceiver.sender;
        await transceiver.sender.replaceTrack(this.track(kind));
        if (kind === 'video' && offer.simulcast) await applyEncodings(transceiver.sender, offer.encodings);
      }
    });
  }

  async #answer(type, sdp, prepare) {
    const { peer } = this;
    await peer.setRemoteDescription({ type: 'offer', sdp });
    await prepare?.();
    if (this.isOver) return;
    await peer.setLocalDescription(await peer.createAnswer());
    this.#send({ type, sdp: peer.localDescription.sdp });
    this.#findRemote();
  }

  /** Tells the owner the received transceivers of each sender. */
  #findRemote() {
    const found = new Map();
    for (const transceiver of this.peer.getTransceivers()) {
      const id = this.#streams.get(transceiver.mid);
      if (!id || !['recvonly', 'sendrecv'].includes(transceiver.currentDirection)) continue;
      const one = found.get(id) ?? {};
      one[transceiver.receiver.track.kind] = transceiver.receiver;
      found.set(id, one);
    }
    this.remote?.(found);
  }

  #follow(peer) {
    if (this.isOver) return;
    clearTimeout(this.#timers.grace);
    const state = peer.connectionState;
    if (state === 'failed') this.finish(this.isReady ? interrupted : unreachableMedia(peer.remoteDescription?.sdp));
    if (state === 'closed') this.finish(interrupted);
    if (state === 'disconnected') {
      this.faltering?.(interrupted);
      this.#timers.grace = setTimeout(() => this.finish(interrupted), graceMilliseconds);
      this.#leaveIfSilent().catch(() => {});
    }
    if (state === 'connected') this.faltering?.(null);
  }

  /** The sum of these statistics of all network paths. */
  async #sum(...names) {
    return [...(await this.peer.getStats()).values()].filter((one) => one.type === 'candidate-pair')
      .reduce((sum, one) => names.reduce((all, name) => all + (one[name] ?? 0), sum), 0);
  }

  /** Looks for a server that hangs, where there are others: a flow of packets from it stops. */
  async #watch() {
    if (this.isWatching || this.#others.length === 0) return;
    this.isWatching = true;
    let [bytes, flow] = [0, 0];
    while (!this.isOver) {
      await sleep(lookMilliseconds);
      const before = bytes;
      bytes = await this.#sum('bytesReceived');
      if (bytes > before) {
        flow += 1;
      } else {
        if (flow > 1) await this.#leaveIfSilent();
        flow = 0;
      }
    }
  }

  /**
   * Ends the connection when the server sends nothing and does not answer, and another server can be reached: then it hangs,
   * and this device's network does not.
   */
  async #leaveIfSilent() {
    if (!this.isWatching || this.isOver) return;
    const bytes = await this.#sum('bytesReceived');
    const asked = performance.now();
    const isSilent = async () => !this.isOver && this.#lastMessage < asked && await this.#sum('bytesReceived') === bytes;
    // The answer itself does not matter, and an error is one, too.
    this.#send({ type: 'request', id: 'alive', method: 'statistics' });
    await sleep(answerMilliseconds);
    const next = await isSilent() && await reachable(this.#others);
    if (next && await isSilent()) this.finish({ ...silent, next });
  }

  /** After a change of the network: ends the connection if nothing arrives any more. */
  async probe() {
    if (!this.isReady || this.isOver || this.isProbing) return;
    this.isProbing = true;
    const arrived = () => this.#sum('responsesReceived', 'bytesReceived');
    const before = await arrived();
    await sleep(probeMilliseconds);
    this.isProbing = false;
    if (!this.isOver && await arrived() === before) this.finish(interrupted);
  }

  /** Sends a request of the extension. Rejects with a `NagareError`. */
  request(method, params) {
    return new Promise((resolve, reject) => {
      if (this.isOver || !this.isReady) throw new NagareError('NOT-CONNECTED', 'There is no connection to the server now.');
      const id = String(this.#requestCount += 1);
      const timer = setTimeout(() => {
        this.#requests.delete(id);
        reject(new NagareError('TIMEOUT', `The server did not answer the request “${method}”.`));
      }, requestMilliseconds);
      this.#requests.set(id, { resolve, reject, timer });
      this.#send({ type: 'request', id, method, params });
    });
  }

  #responded({ id, result, error }) {
    const request = this.#requests.get(id);
    if (!request) return;
    this.#requests.delete(id);
    clearTimeout(request.timer);
    if (error) request.reject(new NagareError(error.reason ?? 'REFUSED', error.message ?? 'The server refused.', error.code));
    else request.resolve(result ?? {});
  }

  /** Leaves: the server removes the member at once. */
  leave() {
    if (this.isOver) return;
    this.#send({ type: 'disconnect', reason: 'NO-ERROR' });
    this.finish(leftByItself);
  }

  /** Ends the connection without a farewell, so that the server keeps the member's place for a while. */
  finish(failure) {
    if (this.isOver) return;
    this.isOver = true;
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    for (const { reject, timer } of this.#requests.values()) {
      clearTimeout(timer);
      reject(new NagareError('NOT-CONNECTED', 'The connection ended before the server answered.'));
    }
    this.#requests.clear();
    this.messages.close();
    this.#close(Boolean(failure.final));
    this.#resolve.ready(false);
    this.#resolve.ended(failure);
  }

  /**
   * Closes the WebSocket, then the peer connection. The server takes the end of the media alone for a leave, so unless this
   * is one, the WebSocket has a moment to end first: a half-open one never confirms its close, and the server may notice the
   * end of a lost one later than the client.
   */
  #close(isFinal) {
    const { peer } = this;
    const socket = this.#socket;
    if (peer) peer.onconnectionstatechange = peer.ontrack = peer.ondatachannel = null;
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    if (!peer || isFinal || !socket) {
      peer?.close();
    } else {
      const timer = setTimeout(() => peer.close(), closeMilliseconds);
      socket.onclose = () => { clearTimeout(timer); peer.close(); };
    }
    socket?.close();
  }
}

/** Sets the simulcast layers that the server asks for. */
async function applyEncodings(sender, wanted) {
  const parameters = sender.getParameters();
  parameters.encodings = parameters.encodings?.length === wanted.length
    ? parameters.encodings.map((one, index) => ({ ...one, ...wanted[index] })) : wanted;
  await sender.setParameters(parameters);
}
