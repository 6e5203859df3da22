// What a member sends of its camera and microphone.

import { capture, captureEach, isTrack } from './nagare-devices.js';
import { NagareError, badParameter, mediaError } from './nagare-errors.js';

/** The camera's picture or the microphone's sound: what is wanted, and the track while it is captured. */
class LocalMedia {
  constructor(kind) {
    Object.assign(this, { kind, wanted: null, muted: false, track: null });
  }

  /** Whether others receive it. */
  get isSent() { return Boolean(this.wanted) && !this.muted; }

  /** Whether the module captured the track, and so stops it. */
  get isOwn() { return !isTrack(this.wanted); }

  release() {
    if (this.isOwn) this.track?.stop();
    if (this.track) this.track.onended = null;
    this.track = null;
  }
}

/** The camera and the microphone of a channel. */
export class LocalTracks {
  #media = { audio: new LocalMedia('audio'), video: new LocalMedia('video') };
  #owner;
  /** Whether the member left: what a browser opens later is closed again. */
  #isReleased = false;

  /**
   * `defaults` are the devices of the join options. `requirePublishing()` throws where the member must not publish,
   * `sender(kind)` is the sender of the connection, if there is one, `signalMuted(kind)` tells the server and rejects when it
   * refuses, and `emit(type, detail)` tells the application.
   */
  constructor({ defaults, requirePublishing, sender, signalMuted, emit }) {
    this.#owner = { defaults, requirePublishing, sender, signalMuted, emit };
  }

  track(kind) { return this.#media[kind].track; }
  isMuted(kind) { return !this.#media[kind].isSent; }

  /** What a connection sends. A muted microphone's track is silent. */
  sentTrack(kind) {
    const media = this.#media[kind];
    return media.isSent || kind === 'audio' ? media.track : null;
  }

  async publish({ camera = this.#owner.defaults.camera ?? true, microphone = this.#owner.defaults.microphone ?? true } = {}) {
    this.#owner.requirePublishing();
    const given = { audio: microphone, video: camera };
    const wanted = Object.fromEntries(Object.entries(given).filter(([, one]) => one && !isTrack(one)));
    const tracks = Object.values(given).filter(isTrack);
    let failure = null;
    if (Object.keys(wanted).length) {
      try {
        tracks.push(...await captureEach(wanted, (error) => { failure = error; }));
      } catch (error) {
        throw mediaError(error);
      }
    }
    if (this.#isReleased) {
      for (const track of tracks) if (!isTrack(given[track.kind])) track.stop();
      throw new NagareError('LEFT', 'The channel was left before the camera and the microphone were open.');
    }
    try {
      // The member may be audience now.
      this.#owner.requirePublishing();
    } catch (error) {
      for (const track of tracks) if (!isTrack(given[track.kind])) track.stop();
      throw error;
    }
    for (const track of tracks) {
      const media = this.#media[track.kind];
      media.release();
      Object.assign(media, { wanted: given[track.kind], muted: false });
      await this.#use(media, track);
    }
    const refusals = (await Promise.all(tracks.map(({ kind }) => this.#refusal(kind)))).filter(Boolean);
    if (refusals.length && refusals.length === tracks.length) throw refusals[0];
    for (const error of failure ? [failure, ...refusals] : refusals) this.#owner.emit('error', { error });
    return { camera: Boolean(this.track('video')), microphone: Boolean(this.track('audio')) };
  }

  /** Tells the server that a kind is sent. What it does not forward, because an operator muted it, is muted here, too. */
  async #refusal(kind) {
    try {
      await this.#owner.signalMuted(kind);
      return null;
    } catch (error) {
      await this.mute(kind, true);
      return error;
    }
  }

  async unpublish(which) {
    for (const [name, kind] of [['camera', 'video'], ['microphone', 'audio']]) {
      if (which && which !== name) continue;
      const media = this.#media[kind];
      media.release();
      media.wanted = null;
      await this.#send(media);
      this.#announce(kind);
    }
  }

  async mute(kind, muted) {
    if (!['audio', 'video'].includes(kind)) throw badParameter('The kind must be “audio” or “video”.');
    const media = this.#media[kind];
    if (!media.wanted) {
      const { camera = true, microphone = true } = this.#owner.defaults;
      if (!muted) await this.publish({ camera: kind === 'video' && camera, microphone: kind === 'audio' && microphone });
      return;
    }
    if (media.muted === muted) return;
    media.muted = muted;
    if (!muted) {
      await this.#unmute(media);
      return;
    }
    if (kind === 'video') media.release();
    else if (media.track) media.track.enabled = false;
    await this.#send(media);
    this.#announce(kind);
  }

  /** Tells the server without waiting. Only an unmute can be refused, and the call that unmutes waits for the answer. */
  #announce(kind) { this.#owner.signalMuted(kind).catch(() => {}); }

  /** The server agrees before a device is opened or anything is said to be sent: it may be muted by an operator. */
  async #unmute(media) {
    try {
      await this.#owner.signalMuted(media.kind);
      if (!media.isSent) return;
      if (media.track) {
        await this.#use(media, media.track);
        return;
      }
      const [track] = isTrack(media.wanted) ? [media.wanted] : await capture({ [media.kind]: media.wanted });
      if (media.isSent && !media.track) await this.#use(media, track);
      else if (media.isOwn) track.stop();
    } catch (error) {
      media.muted = true;
      this.#announce(media.kind);
      throw mediaError(error);
    }
  }

  async switchDevice(kind, device) {
    const media = this.#media[kind];
    if (media.muted || !media.wanted) {
      if (media.wanted) media.wanted = device;
      return;
    }
    // Some phones cannot open two cameras at once.
    if (kind === 'video') media.release();
    try {
      const [track] = isTrack(device) ? [device] : await capture({ [kind]: device });
      if (this.#isReleased || media.muted || !media.wanted) {
        if (!isTrack(device)) track.stop();
        return;
      }
      media.release();
      media.wanted = device;
      await this.#use(media, track);
    } catch (error) {
      if (!media.track) await this.mute(kind, true);
      throw mediaError(error);
    }
  }

  /** Stops the devices without telling the server: the member leaves. */
  release() {
    this.#isReleased = true;
    for (const media of Object.values(this.#media)) {
      const hadTrack = Boolean(media.track);
      media.release();
      media.wanted = null;
      if (hadTrack) this.#owner.emit('localTrackChanged', { kind: media.kind, source: 'camera', track: null, muted: true });
    }
  }

  async #use(media, track) {
    media.track = track;
    track.enabled = media.kind === 'video' || !media.muted;
    // A device that is unplugged ends its track.
    track.onended = () => {
      if (media.track !== track) return;
      this.mute(media.kind, true).catch(() => {});
      this.#owner.emit('error', { error: new NagareError('DEVICE-LOST', 'The camera or microphone was disconnected.') });
    };
    await this.#send(media);
  }

  async #send(media) {
    const track = this.sentTrack(media.kind);
    await this.#owner.sender(media.kind)?.replaceTrack(track).catch(() => {});
    this.#owner.emit('localTrackChanged', { kind: media.kind, source: 'camera', track, muted: !media.isSent });
  }
}
