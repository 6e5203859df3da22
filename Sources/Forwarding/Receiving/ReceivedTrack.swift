package import Wire

/// What a peer publishes in one m-section: one stream, or one for each simulcast layer, and the slots that play it.
///
/// A track of another loop's peer is one too, a mirror: its packets come over a link instead of a socket.
@safe
package final class ReceivedTrack {
    package let id: TrackID
    package let parameters: ReceiveTrackParameters
    package private(set) var streams: [ReceivedStream] = []
    package private(set) var slots: ContiguousArray<SendSlot> = []
    /// The slots' states in the order of `slots`: what a fan-out walks through.
    private(set) var states: ContiguousArray<UnsafeMutablePointer<SlotState>> = unsafe []
    /// Other loops that play the track, each through a mirror.
    var exports: ContiguousArray<RelayExport> = []
    /// Where the track comes from when it is another loop's.
    let origin: RelayOrigin?
    /// What the track was last announced to carry; `nil` before its first packet and while it is paused.
    package var announcedCodec: CodecName?
    private var lastAnnouncedAt: Instant?
    /// The stream that slots are to play: decided here and nowhere else.
    package private(set) var target: ReceivedStream?
    /// The publisher's clock against ours: shared by all of its tracks.
    package let clockOffset: PeerClock
    /// In the client's role: sees every packet once, in order of arrival, restored ones included.
    package var tap: ((RawSpan, PacketDescription, Instant) -> Void)?

    /// This turn's packets that wait to be sent on; `backlogMax` places once it was needed.
    private(set) var backlog: UnsafeMutablePointer<PendingPacket>?
    private(set) var backlogCount = 0

    package init(
        id: TrackID,
        parameters: ReceiveTrackParameters,
        clockOffset: PeerClock,
        origin: RelayOrigin? = nil
    ) {
        self.id = id
        self.clockOffset = clockOffset
        self.parameters = parameters
        self.origin = origin
    }

    deinit { unsafe backlog?.deallocate() }

    /// Simulcast layers beyond this are not a browser's.
    static let streamsMax = 4
    /// A layer must carry this much more than the current one to be preferred, so that the choice is stable.
    private static let switchRatio = 1.3
    /// Packets of one turn that are sent on together: a GSO message takes no more.
    static let backlogMax = 64

    /// Adds a stream. Without simulcast a further SSRC is the source begun anew, and plays at once.
    package func add(_ stream: ReceivedStream, at now: Instant) {
        streams.append(stream)
        // Which stream of a mirror plays is its origin's decision.
        if origin == nil, target == nil || stream.rid == nil { change(to: stream, at: now) }
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

    /// Lets another stream be the one to play.
    func change(to stream: ReceivedStream, at now: Instant) {
        guard stream !== target else { return }
        target = stream
        if isPlayed { stream.keyFrames.want(at: now) }
    }

    /// Whether anybody plays the track, here or on another loop.
    var isPlayed: Bool { !slots.isEmpty || !exports.isEmpty }

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
        unsafe states.append(slot.state)
        // One that is still connecting asks when it can be sent something.
        if slot.peer.transport.isConnected { wantKeyFrame(at: now) }
    }

    package func detach(_ slot: SendSlot) {
        guard let index = slots.firstIndex(where: { $0 === slot }) else { return }
        slots.remove(at: index)
        unsafe states.remove(at: index)
    }

    /// Asks the publisher for a key frame of the stream that plays.
    package func wantKeyFrame(at now: Instant) {
        guard parameters.kind == .video else { return }
        if let origin {
            origin.requestKeyFrame(at: now)
        } else {
            target?.keyFrames.want(at: now)
        }
    }

    // MARK: - Backlog

    /// Keeps a packet of one of the track's streams and, if anybody plays the track, notes it for the turn's fan-out.
    /// - Returns: `false` when the packet was taken in before or is older than what is remembered.
    @inline(__always)
    func take(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        core: Forwarder,
        into batch: DatagramBatch
    ) -> Bool {
        let history = stream.history
        guard history.keepsPackets else { return history.note(description.sequence) }
        // What waits lies in the ring, and is sent before it may be overwritten.
        if backlogCount > 0, backlogCount == Self.backlogMax || history.disturbs(adding: packet.byteCount) {
            core.fanOut(self, at: description.receivedAt, into: batch)
        }
        guard let bytes = unsafe history.keep(packet, description) else { return false }
        guard isPlayed else { return true }
        let place = unsafe allocatedBacklog()
        unsafe (place + backlogCount).initialize(
            to: PendingPacket(
                description: description,
                bytes: bytes,
                length: packet.byteCount,
                stream: Uncounted(stream),
                streamID: stream.id.rawValue
            )
        )
        backlogCount += 1
        if backlogCount == 1 { core.notePending(self) }
        return true
    }

    /// What waited was sent, or is not to be.
    func clearBacklog() { backlogCount = 0 }

    private func allocatedBacklog() -> UnsafeMutablePointer<PendingPacket> {
        if let backlog = unsafe backlog { return unsafe backlog }
        let made = UnsafeMutablePointer<PendingPacket>.allocate(capacity: Self.backlogMax)
        unsafe backlog = made
        return unsafe made
    }
}
