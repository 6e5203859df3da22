/** Types of nagare-call.js. */

export type CallStatus = 'init' | 'connecting' | 'waiting' | 'connected' | 'disconnected' | 'ended';

export class Call extends EventTarget {
  constructor(options: { url?: string; room: string; token?: string; tracks?: MediaStreamTrack[]; media?: 'server' });
  readonly status: CallStatus;
  /** Why, for programs. */
  readonly statusReason: string;
  /** Why, for people. */
  readonly statusText: string;
  /** The other's picture and sound; `null` while there is no other. */
  readonly stream: MediaStream | null;
  /** The path of the media: from browser to browser, or through the node. */
  readonly media: 'direct' | 'server';
  readonly peerConnection: RTCPeerConnection | null;
  replaceTrack(kind: 'audio' | 'video', track: MediaStreamTrack | null): Promise<void>;
  /** Presents a new token before the first one expires; resolves with its end in seconds since 1970, `null` without one. */
  refreshAuthInfo(token: string): Promise<number | null>;
  leave(): void;

  addEventListener(type: 'status', listener: (event: CustomEvent<{ status: CallStatus; reason: string; text: string }>) => void): void;
  addEventListener(type: 'authInfoWillExpire', listener: (event: CustomEvent<{ expiresAt: number }>) => void): void;
  addEventListener(type: 'stream', listener: (event: CustomEvent<{ stream: MediaStream | null }>) => void): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null): void;
}
