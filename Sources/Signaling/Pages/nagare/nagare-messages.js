// Messages between the members of a channel, over data channels that the server opens.

import { NagareError, badParameter } from './nagare-errors.js';

export const chatLabel = '#chat';
/** The server passes on 256 KiB, with the sender's user and name before the message. */
const messageBytesMax = 255 * 1024;
/** What may wait for the network before further messages are refused. */
const waitingBytesMax = 1024 * 1024;
const openMilliseconds = 8_000;
/** The length of a connection's identifier. */
const idBytes = 26;

const text = (bytes) => new TextDecoder().decode(bytes);

/** A message as the server passes it on: the sender's connection, user and name, then what the sender sent. */
function parsed(buffer) {
  const bytes = new Uint8Array(buffer);
  let rest = bytes.subarray(idBytes);
  const field = () => {
    const end = 2 + rest[0] * 256 + rest[1];
    const found = text(rest.subarray(2, end));
    rest = rest.subarray(end);
    return found;
  };
  return { connectionId: text(bytes.subarray(0, idBytes)), user: field(), name: field(), data: rest };
}

/** The bytes of what an application sends. */
function bytesOf(data) {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw badParameter('A message must be text or bytes.');
}

/** The messages of one connection. */
export class Messages {
  #received;
  /** Label → `{ channel, opened, open }`; `channel` is missing until it is open, and `opened` is a promise of it. */
  #entries = new Map();

  /** `received({ label, connectionId, user, name, data, text })` is told of each message. */
  constructor(received) { this.#received = received; }

  /** The labels of the server's offer, without those that closed since. */
  get labels() { return [...this.#entries.keys()]; }

  offered(channels = []) {
    for (const { label } of channels) {
      if (!label?.startsWith('#')) continue;
      const entry = {};
      entry.opened = new Promise((resolve) => { entry.open = resolve; });
      this.#entries.set(label, entry);
    }
  }

  /** The server opened a data channel. */
  add(channel) {
    const { label } = channel;
    const entry = this.#entries.get(label);
    if (!entry || entry.channel) return;
    channel.binaryType = 'arraybuffer';
    const opened = () => { entry.channel = channel; entry.open(channel); };
    channel.onopen = opened;
    channel.onmessage = ({ data }) => {
      if (!(data instanceof ArrayBuffer)) return;
      const message = parsed(data);
      this.#received({ label, text: text(message.data), ...message });
    };
    channel.onclose = () => { if (this.#entries.get(label) === entry) this.#entries.delete(label); };
    if (channel.readyState === 'open') opened();
  }

  /** Sends to all others with the label; waits for the data channel if it is not open yet. */
  async send(label, data) {
    const bytes = bytesOf(data);
    if (bytes.length > messageBytesMax) {
      throw new NagareError('MESSAGE-TOO-LONG', `A message may have at most ${messageBytesMax} bytes.`);
    }
    const entry = this.#entries.get(label);
    if (!entry) throw new NagareError('UNSUPPORTED', `The server passes no messages with the label “${label}” on.`);
    let timer;
    const late = new Promise((resolve) => { timer = setTimeout(resolve, openMilliseconds, null); });
    const channel = entry.channel ?? await Promise.race([entry.opened, late]);
    clearTimeout(timer);
    if (channel?.readyState !== 'open') {
      throw new NagareError('NOT-CONNECTED', 'There is no connection for messages to the server now.');
    }
    if (channel.bufferedAmount > waitingBytesMax) {
      throw new NagareError('MESSAGES-FULL', 'Your network is too slow for more messages now. Try again in a moment.');
    }
    channel.send(bytes);
  }

  /** The connection ended. */
  close() {
    for (const { channel, open } of this.#entries.values()) {
      open(null);
      if (channel) channel.onopen = channel.onmessage = channel.onclose = null;
    }
    this.#entries.clear();
  }
}
