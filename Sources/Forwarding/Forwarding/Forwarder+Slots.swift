public import Base
public import MediaTypes
public import Wire

/// What plays where, and what a peer is sent.
extension Forwarder {
    /// Lets a track play into a slot, or with `nil` nothing.
    ///
    /// With the source that the slot has already only the layer changes: at a key frame of the other one, and until then
    /// the one that plays goes on.
    public func connect(
        slot slotID: TrackID,
        to trackID: TrackID?,
        layer: LayerChoice = .richest,
        at now: Instant
    ) throws(ForwarderError) {
        try connect(slot: slotID, to: trackID, preference: LayerPreference(cap: layer), at: now)
    }

    /// Lets a track play into a slot as ``connect(slot:to:layer:at:)`` does, with all that the receiver prefers of it.
    public func connect(
        slot slotID: TrackID,
        to trackID: TrackID?,
        preference: LayerPreference,
        at now: Instant
    ) throws(ForwarderError) {
        guard let peer = peer(slotID.peer) else { throw .unknownPeer(slotID.peer) }
        guard let slot = peer.slot(slotID.mid) else { throw .unknownTrack(slotID) }
        guard let trackID else {
            slot.connect(to: nil, at: now)
            return
        }
        guard let track = self.peer(trackID.peer)?.track(trackID.mid) ?? relays.mirrors[trackID]?.track else {
            throw .unknownTrack(trackID)
        }
        guard track.parameters.kind == slot.parameters.kind else {
            throw .kindMismatch(slot: slotID, track: trackID)
        }
        if slot.source === track {
            slot.choose(preference, at: now)
        } else {
            slot.connect(to: track, preference: preference, at: now)
        }
    }

    /// Lets media that is made on this side play into a slot.
    package func connect(slot slotID: TrackID, to source: LocalSource, at now: Instant) throws(ForwarderError) {
        guard let slot = peer(slotID.peer)?.slot(slotID.mid) else { throw .unknownTrack(slotID) }
        streams.add(source.stream)
        source.core = self
        slot.connect(to: source.track, at: now)
    }

    /// Adds slots to a peer and takes others away, while it is connected or before. Either all of it is done or, when
    /// it throws, nothing.
    /// - Parameters:
    ///   - add: each with SSRCs that no slot of the peer ever had.
    ///   - remove: names of slots; the peer never uses them again. One that is not there is ignored.
    public func changeSlots(
        of id: PeerID,
        add: [SendTrackParameters],
        remove: [MID],
        at now: Instant
    ) throws(ForwarderError) {
        guard let peer = peer(id) else { throw .unknownPeer(id) }
        try peer.changeSlots(add: add, remove: remove, random: configuration.random, at: now)
    }

    /// Asks a peer for a key frame of every video stream that it sends now; does nothing when it is not here.
    /// - Parameter mid: of the only track that is meant: in the client's role, that of a decoder without a picture.
    public func requestKeyFrame(of id: PeerID, _ mid: MID? = nil, at now: Instant) {
        guard let peer = peer(id) else { return }
        for stream in peer.streams where stream.track.parameters.kind == .video && stream.isFlowing(at: now) {
            if let mid, stream.track.id.mid != mid { continue }
            stream.keyFrames.want(at: now)
        }
        schedule.markDirty(peer)
    }

    /// Whose media a packet is that goes to a path, as ``PeerParameters/share`` says, and whether it is audio.
    /// - Parameter packet: an SRTP packet of ours, on a TURN client's own path with a channel's header.
    public func share(of packet: RawSpan, to path: NetworkPath) -> (share: UInt64, isAudio: Bool, isRelayed: Bool) {
        if let (id, payload) = turn?.payload(of: packet, to: path) {
            // A call is a share of its own. Its two sessions have adjacent numbers.
            guard let peer = peer(id) else { return (id.rawValue | 1, false, true) }
            let (share, isAudio) = share(of: packet.extracting(payload), peer)
            return (share, isAudio, false)
        }
        guard let peer = directory.peer(over: path)?.object else { return (0, false, false) }
        let (share, isAudio) = share(of: packet, peer)
        return (share, isAudio, false)
    }

    private func share(of packet: RawSpan, _ peer: Peer) -> (share: UInt64, isAudio: Bool) {
        guard packet.byteCount >= 12 else { return (peer.share, false) }
        let slot = peer.slotTable.slot(SSRC(rawValue: packet.bigEndianUInt32(at: 8)))
        return (peer.share, slot?.parameters.kind == .audio)
    }
}
