import Base
package import MediaTypes
import SRTP
import Wire

/// One m-section that we send in: a steady stream made of whatever source plays into it.
///
/// Plain packets need only its `state`. The slot controls that, and is the slow path of all other packets: the first of
/// a source, those whose payload changes its format, those from before a switch, and retransmissions.
@safe
package final class SendSlot {
    package let id: TrackID
    package let parameters: SendTrackParameters
    /// The receiver's rate decides about its layers.
    let isAllocated: Bool
    private unowned(unsafe) let owner: Peer
    /// The peer that the slot is of, which outlives it.
    var peer: Peer { unsafe owner }
    let state: UnsafeMutablePointer<SlotState>
    private let slab: StateSlab<SlotState>
    package private(set) var source: ReceivedTrack?
    /// The slot's index in its source's `slots`; the source sets it.
    var place = 0
    /// What the receiver prefers of the source.
    package private(set) var preference = LayerPreference()
    /// The highest layer of the source that the receiver may get.
    package var layer: LayerChoice { preference.cap }
    /// The layer that plays, or did before a pause.
    private(set) var playingRID: RID?
    /// The highest layers to send of the wanted stream.
    var targetLayers: (spatialID: UInt8, temporalID: UInt8) = (.max, .max)
    /// The stream that plays is limited until the wanted one begins: its highest temporal layer before that.
    var temporalIDBeforeLimit: UInt8?
    /// Packets that are not plain read it, each in one step, so accesses are not checked.
    @exclusivity(unchecked) private var payloads = PayloadTable()
    let names: HeaderNames
    var retransmitter: Retransmitter {
        _read { yield unsafe slotRetransmitter }
        _modify { yield unsafe &slotRetransmitter }
    }
    /// Packets that are not plain and NACKs use it, each in one step, so accesses are not checked.
    @exclusivity(unchecked) private var slotRetransmitter: Retransmitter
    var reporter = SlotReporter()
    private var keyFrames = ViewerKeyFrameRequests()
    /// The stream of which a key frame waited to leave last; 0 for none.
    private var keyFrameQueuedOf: UInt64 = 0
    /// The key frame whose first packet came last.
    private var keyFrame: (stream: UInt64, timestamp: RTPTimestamp)?
    /// A key frame of the wanted stream waits to leave.
    var isKeyFrameQueued: Bool { unsafe keyFrameQueuedOf != 0 && keyFrameQueuedOf == state.pointee.wanted }
    func noteKeyFrameQueued(of stream: StreamID) { keyFrameQueuedOf = stream.rawValue }
    /// How late the receiver is to show the video.
    var playoutDelay = PlayoutDelayHint()
    /// The wanted stream begins with packets that came before.
    var catchesUp = false
    /// When what waited was dropped last: what came before is not sent again.
    private(set) var overflowedAt: Instant?
    /// What the media's own timing adds to the timestamps of the stream that plays, while those that leave are ahead of it.
    var timestampOffsetBehind: UInt32?

    /// Video is sent again as RTX.
    var sendsRTX: Bool { parameters.kind == .video && parameters.rtxSSRC != nil }
    /// Packets sent again.
    package var retransmitted: UInt64 { retransmitter.count }
    /// Key frames that the receiver asked for.
    package var keyFrameRequests: UInt64 { keyFrames.count }

    init(
        id: TrackID,
        parameters: SendTrackParameters,
        peer: Peer,
        egress: UnsafeMutablePointer<EgressState>,
        slab: StateSlab<SlotState>,
        retransmitsWithoutRTX: Bool,
        seed: UInt64
    ) {
        self.id = id
        self.parameters = parameters
        isAllocated = parameters.kind == .video && peer.sendRate != nil
        unsafe owner = peer
        self.slab = slab
        let retransmitter = Retransmitter(parameters, isAllowedWithoutRTX: retransmitsWithoutRTX, seed: seed)
        unsafe slotRetransmitter = retransmitter
        names = HeaderNames(parameters)
        unsafe state = slab.make(
            SlotState(
                egress: egress,
                ssrc: parameters.ssrc,
                extensions: SentExtensions(parameters, retransmitsWithoutRTX: retransmitter.retransmitsWithoutRTX),
                rewriter: RTPRewriter(clockRate: parameters.kind.clockRate, seed: seed)
            )
        )
        unsafe state.pointee.owner = Unretained(self)
    }

    deinit {
        unsafe state.pointee.filter?.deallocate()
        unsafe slab.free(state)
    }

    var rewriter: RTPRewriter { unsafe state.pointee.rewriter }
    package var packetsSent: UInt32 { unsafe state.pointee.packetsSent }
    package var octetsSent: UInt32 { unsafe state.pointee.octetsSent }
    package var bytesSent: UInt64 { unsafe state.pointee.bytesSent }

    /// The peer is connected: packets can be encrypted.
    func connected(_ sender: SRTPSender) {
        unsafe state.pointee.stream = sender.stream(parameters.ssrc)
        retransmitter.connected(sender)
    }

    /// Lets another track play here; what the receiver sees stays one continuous stream.
    func connect(to track: ReceivedTrack?, preference: LayerPreference = LayerPreference(), at now: Instant) {
        let before = source
        before?.detach(self)
        source = track
        self.preference = preference
        playingRID = nil
        hasAllocation = false
        stopPlaying()
        unsafe payloads.removeAll()
        unsafe state.pointee.wanted = 0
        peer.removeWaiting(of: parameters.ssrc)
        if let before, before !== track { peer.core.noteDetached(before, at: now) }
        guard let track else { return }
        reporter.sourceConnectedAt = now
        track.attach(self)
        peer.allocateLayers(to: self, at: now)
        track.origin?.subscribe(track)
        peer.core.noteWanted(by: self, of: track, at: now)
        // A peer that is still connecting asks once it is connected.
        if peer.transport.isConnected { wantKeyFrame(at: now) }
    }

    /// Takes another preference for the same source.
    func choose(_ preference: LayerPreference, at now: Instant) {
        guard preference != self.preference, let source else { return }
        let before = self.preference
        self.preference = preference
        if preference.cap != before.cap { source.noteChoice(preference.cap, before: before.cap) }
        peer.allocateLayers(to: self, at: now)
        source.origin?.subscribe(source)
        peer.core.noteWanted(by: self, of: source, at: now)
    }

    /// Sets what the slot is to be sent. Another stream plays from its next key frame on, and until then the current
    /// one. Layers of one stream change at its next frame that allows for it. ``TargetLayer/nothing`` takes effect at once.
    func setTarget(_ target: TargetLayer, at now: Instant) {
        guard let source else { return }
        switch target {
        case .nothing:
            noteAllocation(true, of: source)
            unsafe state.pointee.wanted = 0
            stopPlaying()
            noteLayer(nil, of: source)
        case .unknown:
            noteAllocation(false, of: source)
            unsafe state.pointee.wanted = 0
        case .layer(let id, let spatialID, let temporalID):
            if let stream = source.stream(id) {
                targetLayers = (spatialID, temporalID)
                want(stream, at: now)
                limitLayers(of: stream, at: now)
            } else {
                unsafe state.pointee.wanted = 0
            }
        }
    }

    private func noteAllocation(_ isKnown: Bool, of source: ReceivedTrack) {
        guard isAllocated, hasAllocation != isKnown else { return }
        hasAllocation = isKnown
        source.origin?.subscribe(source)
    }

    private func want(_ stream: ReceivedStream, at now: Instant) {
        let before = unsafe state.pointee.wanted
        unsafe state.pointee.wanted = stream.id.rawValue
        if !isAllocated || before == stream.id.rawValue {
            noteAllocation(true, of: stream.track)
        } else {
            hasAllocation = true
            stream.track.origin?.subscribe(stream.track)
        }
        guard parameters.kind == .video, peer.transport.isConnected,
            unsafe state.pointee.playing != stream.id.rawValue, !isKeyFrameQueued,
            beginning(of: stream, at: now) == nil
        else { return }
        stream.wantKeyFrame(at: now)
        peer.core.markDirty(stream.track.id.peer)
    }

    /// The receiver's rate decides what is needed of the source, and it is known: ``wantedStream``.
    private(set) var hasAllocation = false

    /// The stream that is to play; `nil` for none.
    var wantedStream: StreamID? {
        let wanted = unsafe state.pointee.wanted
        return wanted == 0 ? nil : StreamID(rawValue: wanted)
    }

    /// A stream of the source plays.
    var isPlaying: Bool { unsafe state.pointee.playing != 0 }

    /// The stream that plays; `nil` for none.
    var playingStream: StreamID? {
        let playing = unsafe state.pointee.playing
        return playing == 0 ? nil : StreamID(rawValue: playing)
    }

    /// The stream that plays until the wanted one can begin; `nil` when nothing or the wanted one plays.
    var playingBeforeSwitch: StreamID? {
        let (playing, wanted) = unsafe (state.pointee.playing, state.pointee.wanted)
        return playing == 0 || playing == wanted ? nil : StreamID(rawValue: playing)
    }

    /// The wanted stream does not play yet.
    var isAwaitingStream: Bool { unsafe state.pointee.wanted != 0 && state.pointee.playing != state.pointee.wanted }

    /// Asks the source for a key frame of the wanted stream.
    func wantKeyFrame(at now: Instant) {
        guard parameters.kind == .video, layer != .nothing, let source else { return }
        if let stream = unsafe source.stream(StreamID(rawValue: state.pointee.wanted)) {
            if beginning(of: stream, at: now) == nil { stream.wantKeyFrame(at: now) }
        } else {
            source.origin?.requestKeyFrames(at: now)
        }
        peer.core.markDirty(source.id.peer)
    }

    /// Reports to the owner which layer plays.
    private func noteLayer(_ rid: RID?, of track: ReceivedTrack) {
        guard parameters.kind == .video, !track.parameters.rids.isEmpty, rid != playingRID else { return }
        let event = PeerEvent.layerSwitched(
            slot: id.mid,
            current: rid,
            previous: playingRID,
            isRequested: track.isExact(layer)
        )
        playingRID = rid
        peer.core.emit(event, of: id.peer)
    }

    func stopPlaying() {
        keyFrameQueuedOf = 0
        catchesUp = false
        timestampOffsetBehind = nil
        unsafe state.pointee.playing = 0
        unsafe state.pointee.sourcePayloadType = .max
        temporalIDBeforeLimit = nil
    }

    /// Handles the receiver's request for a key frame, by PLI or FIR. A receiver that repeats it all the time would
    /// cost every other viewer picture quality, so requests are passed on within a budget, which refills with time.
    ///
    /// Key frames that a start or a switch needs are requested outside the budget.
    func requestKeyFrame(at now: Instant) {
        let isRepeated = keyFrames.received(at: now)
        guard parameters.kind == .video, layer != .nothing, let source else { return }
        if isRepeated {
            peer.core.counters.throttleKeyFrame(.repeated)
            return
        }
        // In the client's role the server has a budget of its own, and nobody else receives this side's media.
        guard source.id.peer != id.peer else {
            keyFrames.notePassed(at: now)
            wantKeyFrame(at: now)
            return
        }
        let stream = unsafe source.stream(StreamID(rawValue: state.pointee.wanted))
        // The request in flight covers this one.
        if let stream, stream.keyFrames.isWanted { return }
        guard keyFrames.take(at: now) else {
            peer.core.counters.throttleKeyFrame(.viewerBudget)
            return
        }
        if let stream {
            if !stream.wantRepair(at: now) { peer.core.counters.throttleKeyFrame(.layerBudget) }
        } else {
            source.origin?.requestKeyFrames(at: now)
        }
        peer.core.markDirty(source.id.peer)
    }

    // MARK: - Media

    /// Forwards one packet of the source, or queues it until the peer's ``SendPolicy`` lets it leave.
    func sendOrQueue(_ packet: UnsafePointer<PendingPacket>, _ turn: SendTurn, into batch: DatagramBatch) {
        let streamID = unsafe packet.pointee.streamID
        guard unsafe state.pointee.playing == streamID || state.pointee.wanted == streamID else { return }
        if unsafe catchUp(with: packet, turn, into: batch) { return }
        if unsafe state.pointee.playing != state.pointee.wanted, unsafe !mayWaitDuringSwitch(packet, turn) { return }
        let layer = unsafe decideEarly(packet, turn)
        let reference = unsafe PacketReference(
            slot: parameters.ssrc,
            stream: StreamID(rawValue: streamID),
            sequence: packet.pointee.description.sequence,
            bytes: layer == .dropped ? 0 : packet.pointee.length,
            layer: layer
        )
        if unsafe packet.pointee.description.startsKeyFrame, layer != .dropped {
            unsafe noteKeyFrame(packet.pointee.description, of: streamID)
        }
        if unsafe isTooFarBehind(packet) {
            queueOverflowed(at: turn.now)
            return
        }
        // What is left out needs no rate, but keeps the order.
        let isUnasked = reference.isDropped && peer.transport.egress.waiting.isEmpty
        let mayLeave = isUnasked || peer.mayLeave(reference, isAudio: parameters.kind == .audio, at: turn.now)
        if mayLeave {
            unsafe forward(packet, turn, into: batch, decided: layer)
        } else if unsafe packet.pointee.description.startsKeyFrame {
            noteKeyFrameQueued(of: StreamID(rawValue: streamID))
        }
    }

    /// A key frame makes everything before it needless. Several packets of one timestamp may start it, parameter sets and each slice
    /// of H.264: only the first that comes leaves something out, and nothing with a later number, which may be of the same frame.
    private func noteKeyFrame(_ description: PacketDescription, of stream: UInt64) {
        if let known = keyFrame, known.stream == stream, known.timestamp == description.timestamp { return }
        keyFrame = (stream, description.timestamp)
        guard peer.transport.egress.queueDelay > Self.queueDelayBeforeKeyFrame else { return }
        peer.transport.egress.dropWaitingMedia(of: parameters.ssrc) {
            $0.stream.rawValue != stream || $0.sequence < description.sequence
        }
    }

    /// Whether a packet may join those that wait, if any, while the slot switches to another stream.
    private func mayWaitDuringSwitch(_ packet: UnsafePointer<PendingPacket>, _ turn: SendTurn) -> Bool {
        let egress = peer.transport.egress
        guard parameters.kind == .video, !egress.waiting.isEmpty else { return true }
        let streamID = unsafe packet.pointee.streamID
        if unsafe state.pointee.wanted == streamID {
            // Nothing of the wanted stream is decodable before its key frame.
            if unsafe packet.pointee.description.startsKeyFrame || keyFrameQueuedOf == streamID { return true }
            unsafe packet.pointee.stream.object.wantKeyFrame(at: turn.now)
            unsafe peer.core.markDirty(packet.pointee.stream.object.track.id.peer)
            return false
        }
        // It would leave behind the key frame that replaces it.
        if isKeyFrameQueued { return false }
        // A path that does not carry the stream any more is left to the wanted one.
        guard unsafe state.pointee.wanted != 0, egress.queueDelay > Self.queueDelayDuringSwitch else { return true }
        queueOverflowed(at: turn.now)
        return false
    }

    /// The stream that plays goes on until the wanted one begins, as long as the queue is shorter.
    private static let queueDelayDuringSwitch = Interval.milliseconds(200)

    /// Pictures that wait for longer are of no use: a key frame shows sooner what is there now.
    private static let queueDelayMax = Interval.seconds(1)

    /// Whether more waits than leaves in that time. A key frame and what follows it may take longer.
    private func isTooFarBehind(_ packet: UnsafePointer<PendingPacket>) -> Bool {
        let egress = peer.transport.egress
        guard parameters.kind == .video, egress.policy.isPaced, egress.queueDelay > Self.queueDelayMax else {
            return false
        }
        return unsafe egress.waiting.bytes > 2 * packet.pointee.stream.object.keyFrameBytes
    }

    /// A shorter queue before a key frame still leaves.
    private static let queueDelayBeforeKeyFrame = Interval.milliseconds(100)

    /// No more packets can wait. The slot goes on with the next key frame.
    func queueOverflowed(at now: Instant) {
        peer.transport.egress.dropWaitingMedia(of: parameters.ssrc)
        guard parameters.kind == .video else { return }
        stopPlaying()
        overflowedAt = now
        wantKeyFrame(at: now)
    }

    /// Sends a packet that waited and may leave now.
    func sendWaiting(
        _ reference: PacketReference,
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) {
        if let number = reference.retransmits {
            let origin = unsafe state.pointee.rewriter.origin(of: number)
            guard let origin, origin.segment.stream == reference.stream, origin.source == reference.sequence else {
                peer.core.counters.note(.missed)
                return
            }
            let isSent = resend(packet, description, of: stream, origin.segment, turn, into: batch)
            peer.core.counters.note(isSent ? .sent : .missed)
        } else {
            _ = unsafe stream.withPending(packet, description) {
                unsafe forward($0, turn, into: batch, decided: reference.layer)
            }
        }
    }

    /// Forwards one packet of the source that is not a plain one, if the slot plays its stream or can switch to it.
    /// - Parameter decided: what the layer filter decided about it when it came.
    func forward(
        _ packet: UnsafePointer<PendingPacket>,
        _ turn: SendTurn,
        into batch: DatagramBatch,
        decided: LayerDecision = .undecided
    ) {
        let now = turn.now
        let description = unsafe packet.pointee.description
        let streamID = unsafe StreamID(rawValue: packet.pointee.streamID)
        let stream = unsafe packet.pointee.stream.object
        if unsafe state.pointee.playing != streamID.rawValue {
            guard decided != .dropped, unsafe state.pointee.wanted == streamID.rawValue,
                begin(stream, at: description, now: now)
            else { return }
        }
        if unsafe state.pointee.rewriter.currentStream == streamID {
            unsafe state.pointee.rewriter.followJump(
                to: description,
                packetsSent: state.pointee.packetsSent,
                at: now
            )
            if timestampOffsetBehind != nil { followTiming(of: description) }
        }
        let layer = decideLayer(description, decided, of: stream, at: now)
        guard let segment = unsafe state.pointee.rewriter.segment(of: description.sequence, in: streamID) else {
            if layer != .dropped { peer.core.counters.drop(.tooOld) }
            return
        }
        if description.payloadLength == 0 || layer == .dropped {
            if unsafe state.pointee.rewriter.drop(description) { return }
            if layer == .dropped, unsafe state.pointee.rewriter.leaveUnused(description.sequence) == nil { return }
        }
        let mapping = mapping(of: description.payloadType, in: stream.track)
        if case .unsupported(let codec) = mapping {
            announceUnsupported(codec)
            // The decoder missed frames: it restarts at a key frame when a format that it knows returns. A late packet
            // from before that changes nothing.
            let newest = unsafe state.pointee.rewriter.newestSequence
            if newest.map({ segment.sequence(description.sequence) > $0 }) ?? true { stopPlaying() }
            return
        }
        noteMapping(mapping, of: description.payloadType)
        // Under a number that is given up goes padding, in place of the packet.
        guard unsafe state.pointee.filter != nil || layer == .dropped else {
            unsafe sendNew(packet, segment, mapping, turn, into: batch)
            return
        }
        var changed = unsafe packet.pointee
        changed.description = description.adapted(to: layer)
        unsafe withUnsafePointer(to: &changed) { unsafe sendNew($0, segment, mapping, turn, into: batch) }
    }

    private func sendNew(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ mapping: PayloadMapping,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) {
        guard let length = unsafe send(packet, segment, mapping, turn, into: batch) else { return }
        let description = unsafe packet.pointee.description
        unsafe state.pointee.rewriter.noteGap(
            before: description.sequence,
            in: segment,
            packetsSent: state.pointee.packetsSent
        )
        unsafe state.pointee.rewriter.sent(description, in: segment, at: turn.now)
        unsafe state.pointee.packetsSent &+= 1
        unsafe state.pointee.octetsSent &+= UInt32(description.payloadLength)
        unsafe state.pointee.bytesSent &+= UInt64(length)
        peer.core.counters.rtpSent &+= 1
        peer.core.counters.rtpBytesSent &+= UInt64(length)
    }

    /// Makes packets of this payload type plain, if only its number changes.
    private func noteMapping(_ mapping: PayloadMapping, of payloadType: PayloadType) {
        // A layer's first packets carry its RID, which plain ones do not.
        guard case .same(let outgoing, _) = mapping, unsafe state.pointee.filter == nil, timestampOffsetBehind == nil,
            unsafe !state.pointee.tellsPlayoutDelay || !playoutDelay.isDue,
            unsafe parameters.rid == nil || !state.pointee.sendsMID
        else { return }
        unsafe state.pointee.sourcePayloadType = payloadType.rawValue
        unsafe state.pointee.outgoingPayloadType = outgoing.rawValue
    }

    /// Starts to play a stream, with video only where its decoder can start.
    private func begin(
        _ stream: ReceivedStream,
        at description: PacketDescription,
        now: Instant
    ) -> Bool {
        guard description.payloadLength > 0 else { return false }
        if case .unsupported(let codec) = mapping(of: description.payloadType, in: stream.track) {
            announceUnsupported(codec)
            return false
        }
        // The packets after a late one came before the slot played the stream, and nobody asks for those of sound again.
        if parameters.kind == .audio, stream.history.isLate(description.sequence) { return false }
        if parameters.kind == .video,
            !description.startsKeyFrame || hasSentLater(than: description.sequence, of: stream)
        {
            stream.wantKeyFrame(at: now)
            peer.core.markDirty(stream.track.id.peer)
            return false
        }
        if let before = unsafe state.pointee.rewriter.currentStream,
            let templateIDs = (source?.stream(before) ?? peer.core.streams[before])?.templates.object.templateIDs
        {
            unsafe state.pointee.rewriter.noteTemplateIDs(templateIDs)
        }
        let aligned = alignedTimestamp(description.timestamp, of: stream)
        unsafe state.pointee.rewriter.begin(
            stream.id,
            at: description,
            alignedTimestamp: aligned,
            templateIDs: stream.templates.object.templateIDs,
            now: now
        )
        noteTiming(of: description, aligned, at: now)
        noteStart(of: stream, at: now)
        reporter.sourceBeganAt = now
        unsafe state.pointee.playing = stream.id.rawValue
        unsafe state.pointee.sourcePayloadType = .max
        keyFrameQueuedOf = 0
        beginLayers(at: description, now: now)
        noteLayer(stream.rid, of: stream.track)
        stream.track.origin?.subscribe(stream.track, playing: LayerSet(layer: stream.layer))
        return true
    }

    /// Whether packets of a stream have left that came after one that is late. A stream that begins there again shows what was seen
    /// already, and everything since then leaves under a second number.
    func hasSentLater(than sequence: ExtendedSequenceNumber, of stream: ReceivedStream) -> Bool {
        unsafe state.pointee.rewriter.newestSource(of: stream.id).map { $0 >= sequence } ?? false
    }

    /// Counts how long the peer waited for its first packet, and for its first frame of video.
    private func noteStart(of stream: ReceivedStream, at now: Instant) {
        let since = max(reporter.sourceConnectedAt, stream.beganAt)
        var hasAdvanced = peer.setup.packetSent(since: since, at: now)
        if parameters.kind == .video, let duration = peer.setup.frameSent(since: since, at: now) {
            peer.core.counters.setup.note(.firstFrame, duration)
            hasAdvanced = true
        }
        if hasAdvanced { peer.emitSetup() }
    }

    /// The outgoing timestamp of a packet of another layer of the same track, by both layers' sender reports.
    private func alignedTimestamp(_ timestamp: RTPTimestamp, of stream: ReceivedStream) -> RTPTimestamp? {
        guard let segment = unsafe state.pointee.rewriter.currentSegment,
            let previous = stream.track.stream(segment.stream),
            let time = stream.clock.senderNanoseconds(at: timestamp),
            let equivalent = previous.clock.timestamp(atSenderNanoseconds: time)
        else { return nil }
        return segment.timestamp(equivalent)
    }

    private func announceUnsupported(_ codec: CodecName) {
        peer.core.counters.drop(.formatUnsupported)
        guard unsafe payloads.noteUnsupported(codec) else { return }
        peer.core.emit(.formatUnsupported(slot: id.mid, codec: codec), of: id.peer)
    }

    func mapping(of payloadType: PayloadType, in track: ReceivedTrack) -> PayloadMapping {
        unsafe payloads.known(payloadType) ?? payloads.resolve(payloadType, of: track.parameters, to: parameters)
    }
}
