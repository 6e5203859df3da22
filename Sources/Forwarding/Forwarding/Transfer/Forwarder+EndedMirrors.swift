public import Base
import MediaTypes
public import Wire

/// Mirrors to which their origin sends nothing any more.
///
/// The origin, or the loop that a track of another node goes over, may have ended its part while the mirror's loop asked for
/// it, or have got two requests of that loop in the wrong order. Then it answers the mirror's next request with the end.
extension Forwarder {
    /// Answers a request of a mirror that no track goes to.
    func tellEnd(of relay: MirrorID, over link: LinkID) { _ = relays.links[link]?.send(.ended(relay)) }

    /// The other end of a link sends no track to a mirror of this loop. A track of another node is to be asked for again
    /// (``endedMirrors()``); one of this node is gone.
    func receiveEnd(of relay: MirrorID, from link: LinkID, at now: Instant) {
        // An answer to what was sent before the mirror ended here too.
        guard let track = mirror(relay, from: link)?.object, let mirror = relays.mirrors[track.id] else { return }
        if mirror.origin == nil {
            abandonMirror(track, at: now)
        } else {
            relays.endedMirrors.told(track.id)
        }
    }

    /// Ends a mirror although it is played: its slots play nothing from now on, of which their owner is told.
    func abandonMirror(_ mirror: ReceivedTrack, at now: Instant) {
        for slot in mirror.slots { emit(.sourceLost(slot: slot.id.mid), of: slot.id.peer) }
        endPlayedMirror(mirror, at: now)
    }

    private func endPlayedMirror(_ mirror: ReceivedTrack, at now: Instant) {
        relays.endExports(of: mirror)
        for slot in Array(mirror.slots) { slot.connect(to: nil, at: now) }
        removeUnusedMirror(of: mirror.id)
    }

    /// The mirrors of other nodes' tracks that are to be asked for again, as for the first time, because their origins know
    /// nothing of them. To be called about once a second; each is told once, until its origin says so again.
    ///
    /// What came of it is told with ``mirrorAnswered(_:)`` or ``mirrorNotAnswered(_:at:)``.
    public func endedMirrors() -> [LostMirror] {
        relays.endedMirrors.take().compactMap { track in
            guard let mirror = relays.mirrors[track], let origin = mirror.origin else { return nil }
            return LostMirror(
                track: track,
                relay: mirror.relay,
                origin: origin,
                isBehindLoop: relays.isBehindLoop(mirror)
            )
        }
    }

    /// The origin of a mirror's track sends it again.
    public func mirrorAnswered(_ lost: LostMirror) {
        if mirror(of: lost.track) == lost.relay { relays.endedMirrors.remove(lost.track) }
    }

    /// A mirror of ``endedMirrors()`` was asked for in vain. After a few times it ends, and its slots play nothing.
    public func mirrorNotAnswered(_ lost: LostMirror, at now: Instant) {
        guard let mirror = relays.mirrors[lost.track], mirror.relay == lost.relay,
            relays.endedMirrors.failed(lost.track)
        else { return }
        mediaLinks.now = now
        abandonMirror(mirror.track, at: now)
    }

    /// Replaces a mirror by one that comes another way; its slots go over to that. Loops that it goes on to learn of the end
    /// with their next request.
    /// - Parameters:
    ///   - relay: the name of the mirror that is made, unless `lost` has ended meanwhile.
    ///   - link: the one that the track's packets come over from now on.
    public func replaceMirror(
        _ lost: LostMirror,
        by track: MirroredTrack,
        as relay: MirrorID,
        from link: LinkID,
        at now: Instant
    ) {
        mediaLinks.now = now
        guard let mirror = relays.mirrors[lost.track], mirror.relay == lost.relay, track.id == lost.track,
            track.parameters.kind == mirror.track.parameters.kind
        else {
            discardMirrorID(relay)
            _ = relays.links[link]?.send(.unsubscribe(relay))
            return
        }
        let slots = mirror.track.slots.map { ($0, $0.preference) }
        endPlayedMirror(mirror.track, at: now)
        addMirror(track, as: relay, from: link, publishedAt: lost.origin, at: now)
        guard let replacement = relays.mirrors[track.id]?.track else { return }
        for (slot, preference) in slots { slot.connect(to: replacement, preference: preference, at: now) }
        removeUnusedMirror(of: track.id)
    }
}
