import Base
import MediaTypes
import SRTP
import Wire

/// The layers that go out: of one stream, as its layer filter decides.
extension SendSlot {
    /// The layers that a slot sends now.
    struct SentLayers: Equatable, Sendable {
        let stream: StreamID
        /// The highest ones; `UInt8.max` while nothing is left out.
        let spatialID: UInt8
        let temporalID: UInt8
    }

    /// What goes out at present; `nil` while no stream plays.
    var currentLayers: SentLayers? {
        let playing = unsafe state.pointee.playing
        guard playing != 0 else { return nil }
        let filter = unsafe state.pointee.filter
        let spatialID = unsafe filter?.pointee.state.spatialID ?? .max
        let temporalID = unsafe filter?.pointee.temporalID ?? .max
        return SentLayers(stream: StreamID(rawValue: playing), spatialID: spatialID, temporalID: temporalID)
    }

    /// Bit/s that the stream that plays until a switch takes beyond the wanted one; 0 when it takes less.
    var excessBeforeSwitch: Int {
        guard parameters.kind == .video, let playing = playingBeforeSwitch, let wanted = wantedStream, let source,
            let from = source.encodings.first(where: { $0.stream == playing.rawValue }),
            let to = source.encodings.first(where: { $0.stream == wanted.rawValue })
        else { return 0 }
        return max(0, from.bitrate - to.bitrate)
    }

    /// Leaves out the upper temporal layers of the stream that plays until the wanted one begins, or no longer.
    func limitBeforeSwitch(_ isLimited: Bool, at now: Instant) {
        guard isLimited != (temporalIDBeforeLimit != nil) else { return }
        let filter = unsafe state.pointee.filter
        let temporalID = isLimited ? 0 : temporalIDBeforeLimit ?? .max
        temporalIDBeforeLimit = isLimited ? unsafe filter?.pointee.state.targetTemporalID ?? .max : nil
        guard playingBeforeSwitch != nil else { return }
        if let filter = unsafe filter {
            let spatialID = unsafe filter.pointee.targetSpatialID
            unsafe filter.pointee.setTarget(spatialID: spatialID, temporalID: temporalID)
        } else if isLimited {
            addFilterOfPlayingStream(spatialID: .max, temporalID: temporalID, at: now)
        }
    }

    /// Sends nothing more of the stream that plays. The wanted one begins with its key frame, which may wait already.
    func stopBeforeSwitch() {
        let queued = isKeyFrameQueued ? wantedStream : nil
        peer.transport.egress.dropWaitingMedia(of: parameters.ssrc) { $0.stream != queued }
        stopPlaying()
        if let queued { noteKeyFrameQueued(of: queued) }
    }

    /// The target's layers changed. They apply to the stream that plays if it is the wanted one, else from its beginning on.
    func limitLayers(of stream: ReceivedStream, at now: Instant) {
        guard parameters.kind == .video, unsafe state.pointee.playing == stream.id.rawValue else { return }
        if let filter = unsafe state.pointee.filter {
            unsafe filter.pointee.setTarget(spatialID: targetLayers.spatialID, temporalID: targetLayers.temporalID)
        } else if targetLayers != (.max, .max) {
            addFilterOfPlayingStream(
                spatialID: targetLayers.spatialID,
                temporalID: targetLayers.temporalID,
                at: now
            )
        }
    }

    private func addFilterOfPlayingStream(spatialID: UInt8, temporalID: UInt8, at now: Instant) {
        let newest = unsafe state.pointee.rewriter.newestSource
        addFilter(
            LayerFilter(
                spatialID: spatialID,
                temporalID: temporalID,
                after: newest?.sequence ?? ExtendedSequenceNumber(rawValue: .min),
                of: newest?.timestamp,
                at: now
            )
        )
    }

    private func addFilter(_ filter: LayerFilter) {
        let place = UnsafeMutablePointer<LayerFilter>.allocate(capacity: 1)
        unsafe place.initialize(to: filter)
        unsafe place.pointee.decidesAtRelease = !peer.transport.egress.waiting.isEmpty
        unsafe state.pointee.filter = place
        unsafe state.pointee.sourcePayloadType = .max
    }

    /// The wanted stream begins to play.
    func beginLayers(at packet: PacketDescription, now: Instant) {
        if unsafe state.pointee.filter == nil {
            guard parameters.kind == .video, targetLayers != (.max, .max) else { return }
            addFilter(LayerFilter(spatialID: .max, temporalID: .max, after: packet.sequence, of: nil, at: now))
        }
        unsafe state.pointee.filter?.pointee.begin(
            at: packet.sequence,
            spatialID: targetLayers.spatialID,
            temporalID: targetLayers.temporalID
        )
    }

    /// Decides about a packet that comes and may have to wait. Packets of a stream that does not play yet, and those behind
    /// them, are decided when they leave.
    func decideEarly(_ packet: UnsafePointer<PendingPacket>, _ turn: SendTurn) -> LayerDecision {
        guard let filter = unsafe state.pointee.filter, unsafe packet.pointee.description.payloadLength > 0 else {
            return .undecided
        }
        if peer.transport.egress.waiting.isEmpty { unsafe filter.pointee.decidesAtRelease = false }
        guard unsafe state.pointee.playing == packet.pointee.streamID else {
            unsafe filter.pointee.decidesAtRelease = true
            return .undecided
        }
        guard unsafe !filter.pointee.decidesAtRelease else { return .undecided }
        return unsafe decide(packet.pointee.description, filter, of: packet.pointee.stream.object, at: turn.now)
    }

    /// Decides about a packet that leaves now.
    /// - Parameter decided: what was decided about it when it came, or while it waited.
    func decideLayer(
        _ packet: PacketDescription,
        _ decided: LayerDecision,
        of stream: ReceivedStream,
        at now: Instant
    ) -> LayerDecision {
        guard let filter = unsafe state.pointee.filter, packet.payloadLength > 0 else {
            return decided == .dropped ? .dropped : .forwarded
        }
        let decision = decided == .undecided ? unsafe decide(packet, filter, of: stream, at: now) : decided
        removeIdleFilter(at: now)
        return decision
    }

    private func decide(
        _ packet: PacketDescription,
        _ filter: UnsafeMutablePointer<LayerFilter>,
        of stream: ReceivedStream,
        at now: Instant
    ) -> LayerDecision {
        let decision = unsafe filter.pointee.decide(packet, of: stream.templates, at: now)
        if unsafe filter.pointee.needsKeyFrame {
            stream.wantKeyFrame(at: now)
            peer.core.markDirty(stream.track.id.peer)
        }
        return decision
    }

    /// Frees the filter when nothing is to be left out any more, and no packet that was can come or be asked for again.
    private func removeIdleFilter(at now: Instant) {
        guard let filter = unsafe state.pointee.filter, unsafe !filter.pointee.isLimited,
            unsafe now - filter.pointee.changedAt > Retransmitter.ageMax, peer.transport.egress.waiting.isEmpty
        else { return }
        unsafe state.pointee.filter = nil
        unsafe filter.deallocate()
    }

    /// A packet as it went out first; `nil` when its frame was left out, or is forgotten.
    func asFirstSent(_ packet: PacketDescription) -> PacketDescription? {
        guard let filter = unsafe state.pointee.filter, packet.payloadLength > 0 else { return packet }
        let decision = unsafe filter.pointee.decision(of: packet)
        // The same SRTP index never protects two different packets (RFC 7714 §8.4).
        let isForgotten = unsafe decision == .undecided && filter.pointee.covers(packet)
        if decision == .dropped || (isForgotten && retransmitter.retransmitsWithoutRTX) { return nil }
        return packet.adapted(to: decision)
    }
}

extension PacketDescription {
    /// The packet as it goes out by a decision about its frame. One that is left out is a packet without a payload, which
    /// takes the number that was reserved for it.
    func adapted(to decision: LayerDecision) -> PacketDescription {
        var packet = self
        switch decision {
        case .undecided, .forwarded: break
        case .forwardedLast: if frame.contains(.endsFrame) { packet.marker = true }
        case .dropped:
            packet.payloadLength = 0
            packet.marker = false
            packet.dependencyDescriptor = Field()
            packet.pictureIDBits = 0
            packet.tl0Offset = 0
        }
        return packet
    }
}
