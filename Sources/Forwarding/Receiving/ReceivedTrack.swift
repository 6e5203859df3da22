package import Wire

/// What a peer publishes in one m-section: one stream, or one for each simulcast layer, and the slots that play it.
package final class ReceivedTrack {
    package let id: TrackID
    package let parameters: ReceiveTrackParameters
    package private(set) var streams: [ReceivedStream] = []
    package private(set) var slots: ContiguousArray<SendSlot> = []
    /// What the track was last announced to carry; `nil` before its first packet and while it is paused.
    package var announcedCodec: CodecName?
    private var lastAnnouncedAt: Instant?
    /// The stream that slots are to play: decided here and nowhere else.
    package private(set) var target: ReceivedStream?
    /// The publisher's clock against ours: shared by all of its tracks.
    package let clockOffset: PeerClock
    /// In the client's role: sees every packet once, in order of arrival, restored ones included.
    package var tap: ((RawSpan, PacketDescription, Instant) -> Void)?

    package init(id: TrackID, parameters: ReceiveTrackParameters, clockOffset: PeerClock) {
        self.id = id
        self.clockOffset = clockOffset
        self.parameters = parameters
    }

    /// Simulcast layers beyond this are not a browser's.
    static let streamsMax = 4
    /// A layer must carry this much more than the current one to be preferred, so that the choice is stable.
    private static let switchRatio = 1.3

    /// Adds a stream. Without simulcast a further SSRC is the source begun anew, and plays at once.
    package func add(_ stream: ReceivedStream, at now: Instant) {
        streams.append(stream)
        if target == nil || stream.rid == nil { change(to: stream, at: now) }
    }

    /// Makes room for another stream by letting go of one that went silent.
    /// - Returns: what was let go; `nil` when all are in use.
    package func evictSilentStream(at now: Instant) -> ReceivedStream? {
        guard let index = streams.firstIndex(where: { $0 !== target && !$0.isFlowing(at: now) }) else { return nil }
        return streams.remove(at: index)
    }

    /// Chooses the richest stream that flows. Layers are told apart by bitrate because the order of rids in an
    /// offer is the application's own: some list the smallest first, some the largest.
    package func selectTarget(at now: Instant) {
        guard streams.count > 1 else { return }
        let flowing = streams.filter { $0.isFlowing(at: now) }
        guard let richest = flowing.max(by: { $0.bitrate < $1.bitrate }) else { return }
        guard let current = target, current.isFlowing(at: now) else {
            change(to: richest, at: now)
            return
        }
        // Without layers the source that began last is the one to play, however rich the one before was.
        guard !parameters.rids.isEmpty else { return }
        if richest !== current, Double(richest.bitrate) > Double(current.bitrate) * Self.switchRatio {
            change(to: richest, at: now)
        }
    }

    private func change(to stream: ReceivedStream, at now: Instant) {
        guard stream !== target else { return }
        target = stream
        if !slots.isEmpty { stream.keyFrames.want(at: now) }
    }

    /// A publisher that changes its codec with every packet does not make an event of each.
    package func mayAnnounce(at now: Instant) -> Bool {
        if let lastAnnouncedAt, now - lastAnnouncedAt < .milliseconds(250) { return false }
        lastAnnouncedAt = now
        return true
    }

    package func codec(of payloadType: PayloadType) -> CodecParameters? {
        parameters.codecs.first { $0.payloadType == payloadType }
    }

    package func stream(_ id: StreamID) -> ReceivedStream? { streams.first { $0.id == id } }

    package func attach(_ slot: SendSlot, at now: Instant) {
        slots.append(slot)
        // One that is still connecting asks when it can be sent something.
        if slot.peer.transport.isConnected { wantKeyFrame(at: now) }
    }

    package func detach(_ slot: SendSlot) { slots.removeAll { $0 === slot } }

    /// Asks the publisher for a key frame of the stream that plays.
    package func wantKeyFrame(at now: Instant) {
        guard parameters.kind == .video else { return }
        target?.keyFrames.want(at: now)
    }
}
