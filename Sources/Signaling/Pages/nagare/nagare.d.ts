/** Types of nagare.js. The article “BrowserModule” explains them. */

export type Kind = 'audio' | 'video';
export type Source = 'camera' | 'screen';
export type Role = 'host' | 'audience';
export type Profile = 'communication' | 'interactive';
export type Status = 'init' | 'connecting' | 'connected' | 'disconnected' | 'reconnecting' | 'failed';
export type ByeReason = 'kicked' | 'banned' | 'terminated' | 'replaced';
export type OfflineReason = 'left' | 'timed-out' | 'became-audience' | 'kicked' | 'banned' | 'replaced' | 'terminated'
  | 'token-expired' | 'channel-expired' | 'ended';
/** 0 unknown, 1 best … 6 no connection. */
export type Quality = 0 | 1 | 2 | 3 | 4 | 5 | 6;
/** `true`, a device identifier, constraints, or a track of the application. */
export type Device = boolean | string | MediaTrackConstraints | MediaStreamTrack;

export interface JoinOptions {
  /**
   * The node's signaling address, or those of several nodes, which are tried in turn. Default: `/signaling` of the server
   * that the module came from.
   */
  url?: string | string[];
  /** The channel; may be absent if the token names it. */
  channel?: string;
  /** The user's identifier; default: that of the token, or a random one. */
  user?: string;
  /** What others see. */
  displayName?: string;
  /** A token: of the node, a JWT, or an app's token in its single-parameter form. With `appId`, the app's hash. */
  token?: string;
  appId?: string;
  nonce?: string;
  /** With `appId`: the token's expiry in seconds since 1970. */
  timestamp?: number;
  /** Further members of the metadata that the operator's authentication service gets. */
  metadata?: Record<string, unknown>;
  profile?: Profile;
  /** Default `host`; `audience` without `canPublish`. */
  role?: Role;
  /** Whether to publish camera and microphone when joining. Default `true`. */
  autoPublish?: boolean;
  /** Whether to receive everybody. Default `true`; otherwise see `subscribe`. */
  autoSubscribe?: boolean;
  /** `false`: this connection only watches and can never publish. Default `true`. */
  canPublish?: boolean;
  camera?: Device;
  microphone?: Device;
  /** Whether to send three sizes of the picture. Default `false`. */
  simulcast?: boolean;
  codec?: 'VP8' | 'VP9' | 'AV1' | 'H264' | 'H265';
  /** Of the video, in kbit/s. */
  bitRate?: number;
  /** Whether to exchange messages with the label `#chat`; or the labels, each with `#` first. Default `false`. */
  messages?: boolean | string[];
  /** In seconds; `Infinity` tries for ever. Default 30. */
  joinTimeout?: number;
}

export class NagareError extends Error {
  constructor(reason: string, message: string, code?: number);
  readonly reason: string;
  /** A result code where one exists, else 0. */
  readonly code: number;
}

export class RemoteConnection {
  readonly id: string;
  readonly user: User;
  readonly source: Source;
  /** Whether audio comes at present, muted or not. */
  readonly audio: boolean;
  readonly video: boolean;
  readonly audioMuted: boolean;
  readonly videoMuted: boolean;
  readonly metadata: unknown;
  /** Of the other's own network. */
  readonly networkQuality: { uplink: Quality; downlink: Quality };
  /** Always the same object; its tracks come and go. */
  readonly stream: MediaStream;
  readonly receivers: { audio?: RTCRtpReceiver; video?: RTCRtpReceiver };
  get audioTrack(): MediaStreamTrack | null;
  get videoTrack(): MediaStreamTrack | null;
  get hasPicture(): boolean;
  /** 0…1. */
  get audioLevel(): number;
}

export class User {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  /** Whether its connection is lost and its place kept. */
  readonly interrupted: boolean;
  readonly metadata: unknown;
  readonly connections: RemoteConnection[];
  connection(id: string): RemoteConnection | undefined;
}

/** `user` is an identifier, `sentAt` in seconds since 1970. */
export interface EarlierMessage { user: string; name: string; text: string; sentAt: number }

export interface ChannelEvents {
  joined: { channel: Channel };
  connectionStatus: { status: Status; reason: string; text: string; retrySeconds?: number };
  bye: { reason: ByeReason; text: string };
  authInfoWillExpire: { expiresAt: number };
  authInfoExpired: { text: string };
  userOnline: { user: User };
  userOffline: { user: User; reason: OfflineReason };
  userInterrupted: { user: User };
  userResumed: { user: User };
  trackAvailable: { user: User; connection: RemoteConnection; kind: Kind; track: MediaStreamTrack; stream: MediaStream };
  trackChanged: { user: User; connection: RemoteConnection };
  localTrackChanged: { kind: Kind; source: Source; track: MediaStreamTrack | null; muted: boolean };
  networkQuality: { uplink: Quality; downlink: Quality };
  userNetworkQuality: { user: User; connection: RemoteConnection; uplink: Quality; downlink: Quality };
  /** A connection of a user is gone: its screen is not shared any more, or the user left. Before `userOffline`. */
  connectionEnded: { user: User; connection: RemoteConnection };
  roleChanged: { role: Role; by: 'self' | 'operator' | 'moderator' };
  /** After a mute by a moderator, the user can unmute itself. */
  muted: { kind: Kind; muted: boolean; by: 'operator' | 'moderator' };
  /** Hosts and moderators are told of all, others of their own. `user` may be one of the audience, who is in no list. */
  handChanged: { user: string; name: string; raised: boolean };
  /** What was written with the label `#chat` before, oldest first, where the node keeps it. */
  history: { messages: EarlierMessage[] };
  codecUnsupported: { kind: Kind; codec: string; connection: RemoteConnection | null; text: string };
  error: { error: NagareError };
  push: { data: unknown };
  /**
   * What another member sent. The server says who it is: `user` is one of `users`, or a user that is not announced, such as a
   * member of the audience. `data` are the bytes, `text` the same as text. Show it as text, never as HTML.
   */
  message: { user: User; label: string; text: string; data: Uint8Array; connectionId: string };
  notify: { message: Record<string, unknown> };
}

export class Channel extends EventTarget {
  constructor(options: string | JoinOptions);
  readonly name: string;
  readonly user: string;
  readonly displayName: string;
  readonly users: User[];
  readonly status: Status;
  readonly statusText: string;
  readonly role: Role;
  readonly profile: Profile;
  readonly networkQuality: { uplink: Quality; downlink: Quality };
  /** The labels of messages that the node passes on now; empty without a connection, or where it passes none on. */
  readonly messageLabels: string[];
  /** Whether the node knows roles, mutes and subscriptions. */
  readonly isExtended: boolean;
  /** Whether this connection can ever publish; see `canPublish`. */
  readonly isPublisher: boolean;
  /** Whether this user may mute, move and remove others. */
  readonly isModerator: boolean;
  /** Who raises the hand, as far as this user is told: identifier → name. */
  readonly hands: ReadonlyMap<string, string>;
  readonly handIsRaised: boolean;
  readonly connectionId: string | null;
  readonly peerConnection: RTCPeerConnection | null;
  readonly screenPeerConnection: RTCPeerConnection | null;
  readonly cameraTrack: MediaStreamTrack | null;
  readonly microphoneTrack: MediaStreamTrack | null;
  readonly screenTrack: MediaStreamTrack | null;

  join(): Promise<this>;
  leave(): void;
  publish(what?: { camera?: Device; microphone?: Device }): Promise<{ camera: boolean; microphone: boolean }>;
  unpublish(which?: 'camera' | 'microphone'): Promise<void>;
  publishScreen(what?: { stream?: MediaStream; audio?: boolean; codec?: JoinOptions['codec']; bitRate?: number }): Promise<void>;
  unpublishScreen(): void;
  /** Rejects with `MUTED-BY-OPERATOR`, and stays muted, while an operator's mute lasts. */
  mute(kind: Kind, muted?: boolean): Promise<void>;
  isMuted(kind: Kind): boolean;
  switchDevice(kind: Kind, device: string | MediaTrackConstraints | MediaStreamTrack): Promise<void>;
  setRole(role: Role): Promise<void>;
  /** Raises or lowers the own hand. The node lowers it when the role changes. */
  raiseHand(raised?: boolean): Promise<void>;
  /** For moderators; others are rejected with `NOT-A-MODERATOR`, an absent user with `USER-UNKNOWN`. */
  setUserRole(user: User | string, role: Role): Promise<void>;
  muteUser(user: User | string, kind: Kind): Promise<void>;
  muteOthers(kind: Kind): Promise<void>;
  removeUser(user: User | string): Promise<void>;
  subscribe(what?: { user?: string; kind?: Kind; source?: Source }): Promise<void>;
  unsubscribe(what?: { user?: string; kind?: Kind; source?: Source }): Promise<void>;
  /**
   * Sends to all others in the channel that have the label; default `#chat`. A message has at most 255 KiB. Resolves when the
   * message is on its way. Rejects with `UNSUPPORTED`, `NOT-CONNECTED`, `MESSAGE-TOO-LONG` or `MESSAGES-FULL`.
   */
  sendMessage(data: string | ArrayBuffer | ArrayBufferView, options?: { label?: string }): Promise<void>;
  /** What the server sends to this client, and why not more: as `GET /sessions/{id}/statistics` of WHEP. */
  statistics(): Promise<Record<string, unknown>>;
  refreshAuthInfo(token: string | Pick<JoinOptions, 'token' | 'appId' | 'nonce' | 'timestamp'>): Promise<number>;

  addEventListener<Name extends keyof ChannelEvents>(type: Name,
    listener: (event: CustomEvent<ChannelEvents[Name]>) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions): void;
}

export interface DeviceName { deviceId: string; label: string }

export const Nagare: {
  readonly join: (options: string | JoinOptions) => Promise<Channel>;
  readonly channel: (options: string | JoinOptions) => Channel;
  devices(): Promise<{ cameras: DeviceName[]; microphones: DeviceName[]; speakers: DeviceName[] }>;
};
export default Nagare;

/** The pause before try number `attempt` (from 1), in seconds. */
export function backoffSeconds(attempt: number): number;
