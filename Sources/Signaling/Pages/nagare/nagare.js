/*
 * Joins channels of a Nagare node from a browser, over Sora signaling with the node's extension `nagare`. Plain modules: no
 * build step, no dependency. The documentation is the article “BrowserModule”, the types are in nagare.d.ts.
 *
 * This file is the one that applications import. Its parts: nagare-channel.js (a channel) on nagare-link.js (one connection),
 * nagare-reconnect.js (the next one), nagare-users.js (other users), nagare-tracks.js and nagare-devices.js (camera and
 * microphone), nagare-screen.js, nagare-messages.js, nagare-options.js (join options and tokens) and nagare-errors.js.
 */
import { Channel } from './nagare-channel.js';
import { devices } from './nagare-devices.js';

export { Channel } from './nagare-channel.js';
export { NagareError } from './nagare-errors.js';
export { backoffSeconds } from './nagare-reconnect.js';
export { RemoteConnection, User } from './nagare-users.js';

export const Nagare = Object.freeze({
  /** Joins a channel with a token or with options; see `Channel.join`. */
  join: (options) => {
    try {
      return new Channel(options).join();
    } catch (error) {
      return Promise.reject(error);
    }
  },

  /** A channel that is not joined yet, to listen to its events first. */
  channel: (options) => new Channel(options),

  devices,
});

export default Nagare;
