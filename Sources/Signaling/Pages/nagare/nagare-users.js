// The other users of a channel.

/** One connection of another user: its camera and microphone, or its screen. */
export class RemoteConnection {
  constructor(id, user) {
    Object.assign(this, {
      id, user, source: 'camera', audio: false, video: false, audioMuted: false, videoMuted: false, metadata: undefined,
      stream: new MediaStream(), receivers: {}, networkQuality: { uplink: 0, downlink: 0 },
    });
  }

  get audioTrack() { return this.receivers.audio?.track ?? null; }
  get videoTrack() { return this.receivers.video?.track ?? null; }
  /** Whether there is a picture to show: received, not muted, and arrived since the track is there. It may stand still. */
  get hasPicture() { return !this.videoMuted && this.videoTrack?.muted === false; }
  /** The loudness now, 0…1. */
  get audioLevel() {
    if (!this.audio || this.audioMuted) return 0;
    return this.receivers.audio?.getSynchronizationSources?.()[0]?.audioLevel ?? 0;
  }
}

/** Another user of the channel. */
export class User {
  constructor(id) {
    Object.assign(this, { id, name: '', role: 'host', interrupted: false, metadata: undefined, connections: [] });
  }

  connection(id) { return this.connections.find((one) => one.id === id); }
}

/** The other users of a channel, from what the server announces and from what arrives. */
export class UserList {
  #users = new Map();
  #owners = new Map();
  #remote = new Map();
  #self;
  #connectionId;
  #emit;

  /** Whether the node speaks the extension; `null` before it has said so. */
  isExtended = null;

  /** `self` is the own user, `connectionId()` the own connection; `emit(type, detail)` tells the application. */
  constructor({ self, connectionId, emit }) {
    this.#self = self;
    this.#connectionId = connectionId;
    this.#emit = emit;
  }

  get all() { return [...this.#users.values()]; }
  user(id) { return this.#users.get(id) ?? null; }

  connection(id) {
    for (const user of this.#users.values()) {
      const found = user.connection(id);
      if (found) return found;
    }
    return null;
  }

  /** A new connection of this member: everything is received and announced again. */
  restart() {
    this.#owners.clear();
    this.#remote = new Map();
  }

  /** The list of users of the extension. */
  joined(users) {
    this.isExtended = true;
    const others = users.filter((one) => one.user_id !== this.#self);
    this.#keepOnly(new Set(others.flatMap((one) => (one.connections ?? []).map((each) => each.connection_id))), 'left',
      new Set(others.map((one) => one.user_id)));
    for (const one of others) {
      this.online(one);
      for (const each of one.connections ?? []) {
        this.trackChanged({ user_id: one.user_id, ...each });
        this.qualityChanged(each);
      }
      this.interrupt(one.user_id, (one.connections ?? []).some((each) => each.interrupted));
    }
    this.#attach();
  }

  /** The node does not speak the extension: users are the announced connections. */
  joinedPlainly() {
    this.isExtended = false;
    this.#keepOnly(new Set(this.#owners.keys()));
    for (const [id, owner] of this.#owners) this.#plainMember(id, owner);
    this.#attach();
  }

  /** The own member has ended. */
  clear() { this.#keepOnly(new Set(), 'ended'); }

  online({ user_id: id, display_name: name, role, metadata }) {
    if (id === this.#self) return null;
    let user = this.#users.get(id);
    const isNew = !user;
    user ??= new User(id);
    Object.assign(user, { name: name ?? user.name, role: role ?? user.role, metadata: metadata ?? user.metadata });
    user.interrupted = false;
    this.#users.set(id, user);
    if (isNew) this.#emit('userOnline', { user });
    return user;
  }

  offline(id, reason) {
    const user = this.#users.get(id);
    if (!user) return;
    this.#users.delete(id);
    for (const connection of user.connections) this.#emit('connectionEnded', { user, connection });
    this.#emit('userOffline', { user, reason });
  }

  interrupt(id, isInterrupted) {
    const user = this.#users.get(id);
    if (!user || user.interrupted === isInterrupted) return;
    user.interrupted = isInterrupted;
    this.#emit(isInterrupted ? 'userInterrupted' : 'userResumed', { user });
  }

  trackChanged(message) {
    if (message.ended) return this.connectionDestroyed(message.connection_id);
    const user = this.#users.get(message.user_id) ?? this.online({ user_id: message.user_id });
    if (!user) return;
    let connection = user.connection(message.connection_id);
    if (!connection) {
      connection = new RemoteConnection(message.connection_id, user);
      user.connections.push(connection);
    }
    const { source = connection.source, audio, video, audio_muted: audioMuted, video_muted: videoMuted, metadata } = message;
    Object.assign(connection, { source, audio: Boolean(audio), video: Boolean(video), audioMuted: Boolean(audioMuted),
      videoMuted: Boolean(videoMuted), metadata: metadata ?? connection.metadata });
    this.#attach();
    this.#emit('trackChanged', { user, connection });
  }

  /** The quality of the network of another user's connection. */
  qualityChanged({ connection_id: id, uplink = 0, downlink = 0 }) {
    const connection = this.connection(id);
    if (!connection) return;
    connection.networkQuality = { uplink, downlink };
    this.#emit('userNetworkQuality', { user: connection.user, connection, uplink, downlink });
  }

  /** The connections that Sora's own notification announces: a new one, and those that were there before. */
  connectionsCreated(message) {
    for (const one of [message, ...(message.data ?? [])]) this.#noteOwner(one, one === message ? message : null);
  }

  connectionDestroyed(id) {
    this.#owners.delete(id);
    const connection = this.connection(id);
    if (!connection) return;
    const { user } = connection;
    user.connections = user.connections.filter((one) => one !== connection);
    this.#emit('connectionEnded', { user, connection });
    // The extension announces the end of a user itself.
    if (!this.isExtended && !user.connections.length) this.offline(user.id, 'left');
    else this.#emit('trackChanged', { user, connection });
  }

  /** The receivers of each connection, after an offer. */
  received(found) {
    this.#remote = found;
    this.#attach();
  }

  #noteOwner({ connection_id: id, client_id: user, metadata }, created) {
    if (!id || user === this.#self || id === this.#connectionId()) return;
    this.#owners.set(id, { user, name: typeof metadata?.name === 'string' ? metadata.name : '', role: created?.role });
    if (this.isExtended === false) this.#plainMember(id, this.#owners.get(id));
    this.#attach();
  }

  /** A member as a node without the extension announces it. */
  #plainMember(id, { user: userId, name, role }) {
    const user = this.online({ user_id: userId, display_name: name || undefined,
      role: role === 'recvonly' ? 'audience' : 'host' });
    if (user && !user.connection(id)) user.connections.push(new RemoteConnection(id, user));
  }

  /** Forgets the connections that are not in `ids`, and the users that are left without one. */
  #keepOnly(ids, reason = 'left', users = null) {
    for (const user of this.all) {
      const ended = user.connections.filter((one) => !ids.has(one.id));
      user.connections = user.connections.filter((one) => ids.has(one.id));
      for (const connection of ended) this.#emit('connectionEnded', { user, connection });
      if (users ? !users.has(user.id) : !user.connections.length) this.offline(user.id, reason);
    }
  }

  /** Gives each connection the tracks that are received for it. */
  #attach() {
    if (this.isExtended === null) return;
    for (const user of this.all) {
      for (const connection of user.connections) this.#attachTo(connection, this.#remote.get(connection.id) ?? {});
    }
  }

  #attachTo(connection, receivers) {
    const { user } = connection;
    if (!this.isExtended) Object.assign(connection, { audio: Boolean(receivers.audio), video: Boolean(receivers.video) });
    const before = connection.receivers;
    if (before.audio === receivers.audio && before.video === receivers.video) return;
    connection.receivers = { ...receivers };
    for (const kind of ['audio', 'video']) {
      if (before[kind] === receivers[kind]) continue;
      if (before[kind]) connection.stream.removeTrack(before[kind].track);
      if (!receivers[kind]) continue;
      connection.stream.addTrack(receivers[kind].track);
      receivers[kind].track.onmute = receivers[kind].track.onunmute = () => {
        if (this.connection(connection.id)) this.#emit('trackChanged', { user, connection });
      };
      this.#emit('trackAvailable', { user, connection, kind, track: receivers[kind].track, stream: connection.stream });
    }
    this.#emit('trackChanged', { user, connection });
  }
}
