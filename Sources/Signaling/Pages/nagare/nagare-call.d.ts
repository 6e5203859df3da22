/** Types of nagare-call.js. */

export type CallStatus = 'init' | 'connecting' | 'waiting' | 'connected' | 'disconnected' | 'ended';

/** What the other says of itself. Show the name as text, never as HTML. */
export interface CallMember { name: string; audioMuted: boolean; videoMuted: boolean; isScreen: boolean }

export class Call extends EventTarget {
  constructor(options: { url?: string; room: string; token?: string; displayName?: string; tracks?: MediaStreamTrack[];
    media?: 'server' });
  readonly status: CallStatus;
  /** Why, for programs. */
  readonly statusReason: string;
  /** Why, for people. */
  readonly statusText: string;
  /** The other's picture and sound; `null` while there is no other. */
  readonly stream: MediaStream | null;
  /** The other, once it said who it is: browsers with this module do, where the media is direct. */
  readonly other: CallMember | null;
  /** Whether the other takes messages. */
  readonly canSendMessages: boolean;
  /** The path of the media: from browser to browser, or through the node. */
  readonly media: 'direct' | 'server';
  readonly peerConnection: RTCPeerConnection | null;
  /** Tells the other what is muted, and whether the picture is a screen. */
  setState(state?: { audioMuted?: boolean; videoMuted?: boolean; isScreen?: boolean }): void;
  /** Sends text to the other. Throws a `NagareError`: `NOT-CONNECTED`, `MESSAGE-TOO-LONG` or `MESSAGES-FULL`. */
  sendMessage(text: string): void;
  replaceTrack(kind: 'audio' | 'video', track: MediaStreamTrack | null): Promise<void>;
  /** Presents a new token before the first one expires; resolves with its end in seconds since 1970, `null` without one. */
  refreshAuthInfo(token: string): Promise<number | null>;
  leave(): void;

  addEventListener(type: 'status', listener: (event: CustomEvent<{ status: CallStatus; reason: string; text: string }>) => void): void;
  addEventListener(type: 'authInfoWillExpire', listener: (event: CustomEvent<{ expiresAt: number }>) => void): void;
  addEventListener(type: 'other', listener: (event: CustomEvent<{ other: CallMember | null }>) => void): void;
  addEventListener(type: 'message', listener: (event: CustomEvent<{ name: string; text: string }>) => void): void;
  addEventListener(type: 'stream', listener: (event: CustomEvent<{ stream: MediaStream | null }>) => void): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null): void;
}
