// Reconnection: when to connect again, and when not.

import { leftByItself } from './nagare-errors.js';

const backoffSecondsMin = 0.3;
const backoffSecondsMax = 15;
/** The pause before try number `attempt` (from 1), in seconds: exponential, bounded, with jitter. */
export const backoffSeconds = (attempt) =>
  Math.min(backoffSecondsMax, backoffSecondsMin * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);

/** The pause after a node refused because too many clients joined at once, in seconds: they are to return apart. */
const crowdSeconds = () => 0.5 + Math.random() * 4.5;

/** Failures that another node does not have. */
const failuresOfNode = new Set(['SERVER-SHUTDOWN', 'TRY-AGAIN-LATER', 'SIGNALING-SILENT']);

const reachMilliseconds = 1_500;
const reachedMax = 3;

/**
 * The first of the addresses where a server opens a WebSocket; `undefined` when none of the first three does so in time, as
 * when this device has no network.
 */
export const reachable = (urls) => new Promise((resolve) => {
  const sockets = [];
  const finish = (url) => {
    clearTimeout(timer);
    for (const socket of sockets) { socket.onopen = null; socket.close(); }
    resolve(url);
  };
  const timer = setTimeout(finish, reachMilliseconds);
  for (const url of urls.slice(0, reachedMax)) {
    try {
      const socket = new WebSocket(url);
      socket.onopen = () => finish(url);
      sockets.push(socket);
    } catch { /* The page may not connect there. */ }
  }
});

/** The addresses of the nodes that serve a channel, one of them in use. */
export class Addresses {
  #urls;
  #index = 0;

  constructor(urls) { this.#urls = urls; }

  get current() { return this.#urls[this.#index]; }
  /** All of them, the next one to try first and the current one last. */
  get all() { return [...this.#urls.slice(this.#index + 1), ...this.#urls.slice(0, this.#index + 1)]; }

  /**
   * A link to the present node ended. After one that worked, the first try is there again, where the client's place is, unless
   * the node is silent or stops. `failure.next` is a node that answers.
   */
  failed(failure, wasReady) {
    if (failure.next) this.use(failure.next);
    else if (!wasReady || failuresOfNode.has(failure.reason)) this.#index = (this.#index + 1) % this.#urls.length;
  }

  /** Makes one of them the current one. */
  use(url) { this.#index = Math.max(this.#urls.indexOf(url), 0); }
}

/**
 * Opens links until one ends for good. `changed(status, failure, retrySeconds)` is told what happens, and `ended(failure,
 * wasReady)` of each link that is opened again.
 */
export class Runner {
  #wake = () => {};

  constructor({ open, ready, changed, ended }) {
    Object.assign(this, { open, ready, changed, ended, link: null, isStopped: false, wasReady: false });
    const wake = () => this.wake();
    // This event also tells each new estimate of the network's speed.
    const network = globalThis.navigator?.connection;
    let { type } = network ?? {};
    const change = () => {
      if (network.type !== type) this.wake();
      else this.link?.probe().catch(() => {});
      ({ type } = network);
    };
    this.unlisten = () => {
      removeEventListener('online', wake);
      document.removeEventListener('visibilitychange', wake);
      network?.removeEventListener?.('change', change);
    };
    addEventListener('online', wake);
    document.addEventListener('visibilitychange', wake);
    network?.addEventListener?.('change', change);
  }

  async run() {
    let attempt = 0;
    for (;;) {
      this.changed(this.wasReady ? 'reconnecting' : 'connecting', null);
      const link = this.link = this.open();
      if (await link.ready) {
        attempt = 0;
        this.wasReady = true;
        this.ready(link);
        this.changed('connected', null);
      }
      const failure = await link.ended;
      if (this.isStopped || failure.final) {
        this.unlisten();
        return failure;
      }
      attempt += 1;
      const pause = failure.reason === 'TRY-AGAIN-LATER' ? crowdSeconds() : backoffSeconds(attempt);
      this.ended?.(failure, Boolean(link.isReady));
      this.changed('disconnected', failure, pause);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, pause * 1000);
        this.#wake = () => { clearTimeout(timer); resolve(); };
      });
      if (this.isStopped) {
        this.unlisten();
        return leftByItself;
      }
    }
  }

  /** The network changed, or the device woke up: tries at once, or checks whether the connection still works. */
  wake() {
    this.#wake();
    this.link?.probe().catch(() => {});
  }

  stop() {
    this.isStopped = true;
    this.link?.leave();
    this.#wake();
  }
}
