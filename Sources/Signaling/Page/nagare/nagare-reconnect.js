// Reconnection: when to connect again, and when not.

import { leftByItself } from './nagare-errors.js';

const backoffSecondsMin = 0.3;
const backoffSecondsMax = 15;
/** The pause before try number `attempt` (from 1), in seconds: exponential, bounded, with jitter. */
export const backoffSeconds = (attempt) =>
  Math.min(backoffSecondsMax, backoffSecondsMin * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);

/** Opens links until one ends for good. `changed(status, failure, retrySeconds)` is told what happens. */
export class Runner {
  #wake = () => {};

  constructor({ open, ready, changed }) {
    Object.assign(this, { open, ready, changed, link: null, isStopped: false, wasReady: false });
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
      const pause = backoffSeconds(attempt);
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
