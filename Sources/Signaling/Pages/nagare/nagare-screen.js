// The screen, which is shared over a connection of its own.

import { NagareError, leftByItself, mediaError } from './nagare-errors.js';
import { Link } from './nagare-link.js';
import { Runner } from './nagare-reconnect.js';

/** Asks the user which screen, window or tab to share. */
async function askForScreen(audio) {
  if (!navigator.mediaDevices?.getDisplayMedia) {
    throw new NagareError('SCREEN-UNSUPPORTED', 'This browser cannot share the screen.');
  }
  try {
    return await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 30 } }, audio });
  } catch (error) {
    if (error.name === 'NotAllowedError') throw new NagareError('SCREEN-REFUSED', 'The screen was not shared.');
    throw mediaError(error);
  }
}

/** The shared screen of a channel. */
export class ScreenShare {
  #owner;
  #current = null;

  /**
   * `message(nagare, rest)` makes the `connect` message, `role()` is the role for it, and `emit(type, detail)` tells the
   * application.
   */
  constructor({ addresses, message, role, emit }) {
    this.#owner = { addresses, message, role, emit };
  }

  get track() { return this.#current?.tracks.find((one) => one.kind === 'video') ?? null; }
  get peerConnection() { return this.#current?.runner?.link?.peer ?? null; }

  async start({ stream, audio = true, codec, bitRate }) {
    if (this.#current) return;
    const tracks = (stream ?? await askForScreen(audio)).getTracks();
    const find = (kind) => tracks.find((one) => one.kind === kind) ?? null;
    const screen = this.#current = { tracks, resume: null };
    const video = find('video');
    if (video) {
      if (!video.contentHint) video.contentHint = 'detail';
      // The browser's own button ends the track.
      video.onended = () => this.stop();
    }
    const media = {
      role: 'sendonly', audio: Boolean(find('audio')),
      video: codec || bitRate ? { codec_type: codec, bit_rate: bitRate } : Boolean(video),
    };
    screen.runner = new Runner({
      open: () => new Link({
        url: this.#owner.addresses.current,
        addresses: this.#owner.addresses.all,
        connect: this.#owner.message({ source: 'screen', role: this.#owner.role(), resume: screen.resume ?? undefined }, media),
        track: find,
        notify: (message) => { if (message.event_type === 'channel.joined') screen.resume = message.resume_token; },
      }),
      ready: () => {},
      changed: () => {},
      // Of other failures the channel's own link tells.
      ended: ({ next }) => { if (next) this.#owner.addresses.use(next); },
    });
    this.#owner.emit('localTrackChanged', { kind: 'video', source: 'screen', track: video, muted: false });
    screen.runner.run().then((failure) => {
      if (this.#current === screen) this.stop();
      if (failure === leftByItself || failure.bye) return;
      const text = `The screen is not shared: ${failure.text}`;
      this.#owner.emit('error', { error: new NagareError(failure.reason, text, failure.code) });
    });
  }

  stop() {
    const screen = this.#current;
    if (!screen) return;
    this.#current = null;
    screen.runner.stop();
    for (const track of screen.tracks) { track.onended = null; track.stop(); }
    this.#owner.emit('localTrackChanged', { kind: 'video', source: 'screen', track: null, muted: true });
  }
}
