package import MediaTypes
import SRTP
package import Wire

/// One m-section that we send in: a steady stream made of whatever source plays into it.
///
/// What plain packets are made with is its `state`; this is the slot's control, and the way of the packets that are not
/// plain: the first of a source, those in another form of payload, those of before a switch, and retransmissions.
@safe
package final class SendSlot {
    package let id: TrackID
    package let parameters: SendTrackParameters
    private unowned(unsafe) let owner: Peer
    /// The peer that the slot is of, which outlives it.
    var peer: Peer { unsafe owner }
    let state: UnsafeMutablePointer<SlotState>
    private let slab: StateSlab<SlotState>
    package private(set) var source: ReceivedTrack?
    /// Where among its source's slots the slot stands; the source keeps it.
    var place = 0
    /// What the receiver wishes to get of the source.
    package private(set) var preference = LayerPreference()
    /// Which of the source's layers the receiver wishes at most.
    package var layer: LayerChoice { preference.cap }
    /// The layer that plays, or did before a pause.
    private(set) var playingRID: RID?
    /// When the stream that plays, or the last one that did, began to.
    private var sourceBeganAt: Instant?
    private var mappings: [(PayloadType, PayloadMapping)] = []
    private var rtxStream: SRTPOutboundStream?
    private var rtxSequence: ExtendedSequenceNumber
    private var limiter = RetransmissionLimiter()
    private let names: HeaderNames
    /// Without RTX a retransmission is the same packet under the same SRTP index, and encrypting anything different
    /// under it would give keys away (RFC 7714 §8.4). Such a slot sends only extensions that never change. One that is
    /// added to a peer whose transport refuses repeats has no retransmission at all.
    private let isRepeatable: Bool
    /// Codecs of the source that the receiver was found not to take.
    private var announcedUnsupported: Set<CodecName> = []
    private var repairs = RequestBudget(burst: SendSlot.repairsBurst, interval: SendSlot.repairInterval)
    private var lastRepairAt: Instant?

    package private(set) var retransmitted: UInt64 = 0
    /// Key frames that the receiver asked for.
    package private(set) var keyFrameRequests: UInt64 = 0
    /// Bits on the wire in the second before the last `measure`.
    package var bitrate: Int { meter.bitrate }
    private var meter = BitrateMeter()
    /// The receiver's newest report on us.
    package var lastReport: ReportBlock? { reports.newest }
    var reports = SlotReports()

    /// A packet that was received longer ago than this is too late for any receiver that waits for it.
    private static let retransmissionAgeMax = Interval.seconds(2)

    init(
        id: TrackID,
        parameters: SendTrackParameters,
        peer: Peer,
        egress: UnsafeMutablePointer<EgressState>,
        slab: StateSlab<SlotState>,
        allowsRepeats: Bool,
        seed: UInt64
    ) {
        self.id = id
        self.parameters = parameters
        unsafe owner = peer
        self.slab = slab
        isRepeatable = parameters.kind == .video && parameters.rtxSSRC == nil && allowsRepeats
        names = HeaderNames(parameters)
        rtxSequence = ExtendedSequenceNumber(rawValue: Int64(seed >> 16 & 0x7FFF))
        unsafe state = slab.make(
            SlotState(
                egress: egress,
                ssrc: parameters.ssrc,
                extensions: SentExtensions(parameters, isRepeatable: isRepeatable),
                rewriter: RTPRewriter(clockRate: parameters.kind.clockRate, seed: seed)
            )
        )
        unsafe state.pointee.owner = Uncounted(self)
    }

    deinit { unsafe slab.free(state) }

    var rewriter: RTPRewriter { unsafe state.pointee.rewriter }
    package var packetsSent: UInt32 { unsafe state.pointee.packetsSent }
    package var octetsSent: UInt32 { unsafe state.pointee.octetsSent }
    package var bytesSent: UInt64 { unsafe state.pointee.bytesSent }

    /// The peer is connected: packets can be encrypted from now on.
    func connected(_ sender: SRTPSender) {
        unsafe state.pointee.stream = sender.stream(parameters.ssrc)
        rtxStream = parameters.rtxSSRC.flatMap { sender.stream($0) }
    }

    /// Lets another track play here; what the receiver sees stays one continuous stream.
    func connect(to track: ReceivedTrack?, preference: LayerPreference = LayerPreference(), at now: Instant) {
        let before = source
        before?.detach(self)
        source = track
        self.preference = preference
        playingRID = nil
        stopPlaying()
        mappings.removeAll(keepingCapacity: true)
        announcedUnsupported.removeAll(keepingCapacity: true)
        unsafe state.pointee.wanted = 0
        peer.removeWaiting(of: parameters.ssrc)
        if let before, before !== track { peer.core.noteDetached(before, at: now) }
        guard let track else { return }
        track.attach(self)
        peer.allocateLayers(to: self, at: now)
        track.origin?.tellWish(of: track)
        // One that is still connecting asks when it can be sent something.
        if peer.transport.isConnected { wantKeyFrame(at: now) }
    }

    /// Takes another wish for the same source.
    func choose(_ preference: LayerPreference, at now: Instant) {
        guard preference != self.preference, let source else { return }
        let before = self.preference
        self.preference = preference
        if preference.cap != before.cap { source.noteChoice(preference.cap, before: before.cap) }
        peer.allocateLayers(to: self, at: now)
        source.origin?.tellWish(of: source)
    }

    /// Takes what the slot is to be sent. Another stream plays from its next key frame on, and until then the one that plays
    /// goes on; nothing plays at once.
    func setTarget(_ target: TargetLayer, at now: Instant) {
        guard let source else { return }
        switch target {
        case .nothing:
            unsafe state.pointee.wanted = 0
            stopPlaying()
            noteLayer(nil, of: source)
        case .unknown: unsafe state.pointee.wanted = 0
        case .layer(let id, _, _):
            if let stream = source.stream(id) {
                want(stream, at: now)
            } else {
                unsafe state.pointee.wanted = 0
            }
        }
    }

    private func want(_ stream: ReceivedStream, at now: Instant) {
        unsafe state.pointee.wanted = stream.id.rawValue
        guard parameters.kind == .video, peer.transport.isConnected,
            unsafe state.pointee.playing != stream.id.rawValue
        else { return }
        stream.wantKeyFrame(at: now)
        peer.core.markDirty(stream.track.id.peer)
    }

    /// The stream that plays until the one that is to play can begin; `nil` when nothing plays, or the right one.
    var playingBeforeSwitch: StreamID? {
        let (playing, wanted) = unsafe (state.pointee.playing, state.pointee.wanted)
        return playing == 0 || playing == wanted ? nil : StreamID(rawValue: playing)
    }

    /// Asks the source for a key frame of the stream that is to play.
    func wantKeyFrame(at now: Instant) {
        guard parameters.kind == .video, layer != .nothing, let source else { return }
        if let stream = unsafe source.stream(StreamID(rawValue: state.pointee.wanted)) {
            stream.wantKeyFrame(at: now)
        } else {
            source.origin?.requestKeyFrames(at: now)
        }
        peer.core.markDirty(source.id.peer)
    }

    /// Tells the owner which layer plays from now on.
    private func noteLayer(_ rid: RID?, of track: ReceivedTrack) {
        guard parameters.kind == .video, !track.parameters.rids.isEmpty, rid != playingRID else { return }
        let event = PeerEvent.layerSwitched(
            slot: id.mid,
            current: rid,
            previous: playingRID,
            isWished: track.isExact(layer)
        )
        playingRID = rid
        peer.core.emit(event, of: id.peer)
    }

    private func stopPlaying() {
        unsafe state.pointee.playing = 0
        unsafe state.pointee.sourcePayloadType = .max
    }

    /// Takes the receiver's request for a key frame, by PLI or FIR. One that repeats it all the time, for whatever reason,
    /// would cost every other viewer picture quality: it is passed on within a budget, which fills again with time.
    ///
    /// What the receiver needs to begin with, at its start and after a switch, is asked for beside it.
    func requestKeyFrame(at now: Instant) {
        keyFrameRequests &+= 1
        guard parameters.kind == .video, layer != .nothing, let source else { return }
        if let lastRepairAt, now - lastRepairAt < Self.repairSpacing {
            peer.core.counters.throttleKeyFrame(.repeated)
            return
        }
        // In the client's role the server has a budget of its own, and media of this side is nobody else's.
        guard source.id.peer != id.peer else {
            lastRepairAt = now
            wantKeyFrame(at: now)
            return
        }
        let stream = unsafe source.stream(StreamID(rawValue: state.pointee.wanted))
        // The request that is under way answers this one too.
        if let stream, stream.keyFrames.isWanted { return }
        guard repairs.take(at: now) else {
            peer.core.counters.throttleKeyFrame(.viewerBudget)
            return
        }
        lastRepairAt = now
        if let stream {
            if !stream.wantRepair(at: now) { peer.core.counters.throttleKeyFrame(.layerBudget) }
        } else {
            source.origin?.requestKeyFrames(at: now)
        }
        peer.core.markDirty(source.id.peer)
    }

    /// Requests closer than this are for one need.
    private static let repairSpacing = Interval.milliseconds(500)
    /// Requests of one viewer that are passed on in a row, and how long one of them takes to come back. A viewer that loses
    /// its picture more often has a path that no key frame mends.
    static let repairsBurst = 5
    static let repairInterval = Interval.seconds(3)

    /// What is done about once a second.
    func tick(at now: Instant) {
        meter.measure(bytesSent, at: now)
        if let source, let origin = source.origin { origin.refreshWish(of: source, at: now) }
    }

    func receivedReport(_ block: ReportBlock) {
        reports.received(block, packetsSent: packetsSent)
        // With layers the receiver tells streams apart by RID, which goes with the MID.
        unsafe state.pointee.sendsMID = isRepeatable
    }

    // MARK: - Media

    /// Sends one packet of the source on, or queues it until the peer's ``SendPolicy`` lets it leave.
    func sendOrQueue(_ packet: UnsafePointer<PendingPacket>, _ turn: SendTurn, into batch: DatagramBatch) {
        let streamID = unsafe packet.pointee.streamID
        guard unsafe state.pointee.playing == streamID || state.pointee.wanted == streamID else { return }
        let reference = unsafe PacketReference(
            slot: parameters.ssrc,
            stream: StreamID(rawValue: streamID),
            sequence: packet.pointee.description.sequence
        )
        guard unsafe peer.mayLeave(reference, bytes: packet.pointee.length, at: turn.now) else { return }
        unsafe forward(packet, turn, into: batch)
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
                peer.core.counters.retransmissionsMissed &+= 1
                return
            }
            let isSent = resend(packet, description, of: stream, origin.segment, turn, into: batch)
            noteRetransmission(isSent: isSent)
        } else {
            _ = unsafe stream.withPending(packet, description) { unsafe forward($0, turn, into: batch) }
        }
    }

    /// Sends one packet of the source on that is not a plain one, if it is this slot's turn for it.
    func forward(_ packet: UnsafePointer<PendingPacket>, _ turn: SendTurn, into batch: DatagramBatch) {
        let now = turn.now
        let description = unsafe packet.pointee.description
        let streamID = unsafe StreamID(rawValue: packet.pointee.streamID)
        let stream = unsafe packet.pointee.stream.object
        if unsafe state.pointee.playing != streamID.rawValue {
            guard unsafe state.pointee.wanted == streamID.rawValue, begin(stream, at: description, now: now)
            else { return }
        }
        if unsafe state.pointee.rewriter.currentStream == streamID {
            unsafe state.pointee.rewriter.followJump(
                to: description,
                packetsSent: state.pointee.packetsSent,
                at: now
            )
        }
        guard let segment = unsafe state.pointee.rewriter.segment(of: description.sequence, in: streamID) else {
            peer.core.counters.drop(.tooOld)
            return
        }
        if description.payloadLength == 0, unsafe state.pointee.rewriter.leaveOut(description) { return }
        let mapping = mapping(of: description.payloadType, in: stream.track)
        if case .unsupported(let codec) = mapping {
            announceUnsupported(codec)
            // The decoder missed frames: it starts anew at a key frame when a format that it knows returns. A late
            // packet from before that changes nothing.
            let newest = unsafe state.pointee.rewriter.newestSequence
            if newest.map({ segment.sequence(description.sequence) > $0 }) ?? true { stopPlaying() }
            return
        }
        noteMapping(mapping, of: description.payloadType)
        guard let length = unsafe send(packet, segment, mapping, turn, into: batch) else { return }
        unsafe state.pointee.rewriter.noteGap(
            before: description.sequence,
            in: segment,
            packetsSent: state.pointee.packetsSent
        )
        unsafe state.pointee.rewriter.sent(description, in: segment, at: now)
        unsafe state.pointee.packetsSent &+= 1
        unsafe state.pointee.octetsSent &+= UInt32(description.payloadLength)
        unsafe state.pointee.bytesSent &+= UInt64(length)
        peer.core.counters.rtpSent &+= 1
        peer.core.counters.rtpBytesSent &+= UInt64(length)
    }

    /// Packets of this type are plain from now on, if only their number changes.
    private func noteMapping(_ mapping: PayloadMapping, of payloadType: PayloadType) {
        // A layer's name goes on its first packets in a form that plain ones do not have.
        guard case .same(let outgoing, _) = mapping, unsafe parameters.rid == nil || !state.pointee.sendsMID else {
            return
        }
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
        if parameters.kind == .video, !description.startsKeyFrame {
            stream.wantKeyFrame(at: now)
            peer.core.markDirty(stream.track.id.peer)
            return false
        }
        unsafe state.pointee.rewriter.begin(
            stream.id,
            at: description,
            alignedTimestamp: alignedTimestamp(description.timestamp, of: stream),
            now: now
        )
        sourceBeganAt = now
        unsafe state.pointee.playing = stream.id.rawValue
        unsafe state.pointee.sourcePayloadType = .max
        noteLayer(stream.rid, of: stream.track)
        return true
    }

    /// Where a packet of another layer of the same track lies on the outgoing time line, by both layers' sender
    /// reports.
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
        guard announcedUnsupported.insert(codec).inserted else { return }
        peer.core.emit(.formatUnsupported(slot: id.mid, codec: codec), of: id.peer)
    }

    private func mapping(of payloadType: PayloadType, in track: ReceivedTrack) -> PayloadMapping {
        for (known, mapping) in mappings where known == payloadType { return mapping }
        guard let mapping = PayloadMapping(payloadType, of: track.parameters, to: parameters) else {
            return .unsupported(track.parameters.codecs.first?.name ?? .vp8)
        }
        mappings.append((payloadType, mapping))
        return mapping
    }

    // MARK: - Retransmission

    /// Answers a NACK for one packet from the source's history.
    func retransmit(_ number: SequenceNumber, at now: Instant, into batch: DatagramBatch) {
        guard let (segment, sourceSequence) = unsafe state.pointee.rewriter.origin(of: number),
            let stream = source?.stream(segment.stream) ?? peer.core.stream(segment.stream),
            limiter.allow(number, at: now)
        else {
            peer.core.counters.retransmissionsMissed &+= 1
            return
        }
        let reference = PacketReference(
            slot: parameters.ssrc,
            stream: segment.stream,
            sequence: sourceSequence,
            retransmits: number
        )
        let isSent: Bool? =
            stream.history.withPacket(sourceSequence) { packet, description -> Bool? in
                guard peer.mayLeave(reference, bytes: packet.byteCount, at: now) else { return nil }
                return resend(packet, description, of: stream, segment, peer.core.makeTurn(at: now), into: batch)
            } ?? false
        if let isSent { noteRetransmission(isSent: isSent) }
    }

    /// Sends a packet of the source again.
    /// - Returns: whether it was sent.
    private func resend(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        _ segment: RTPRewriter.Segment,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Bool {
        guard turn.now - description.receivedAt <= Self.retransmissionAgeMax else { return false }
        // The payload types of a source that played before are its own.
        let mapping =
            stream.track === source
            ? mapping(of: description.payloadType, in: stream.track)
            : PayloadMapping(description.payloadType, of: stream.track.parameters, to: parameters)
        guard let mapping else { return false }
        return unsafe stream.withPending(packet, description) { pending in
            unsafe send(pending, segment, mapping, retransmission: true, turn, into: batch) != nil
        } ?? false
    }

    private func noteRetransmission(isSent: Bool) {
        if isSent {
            retransmitted &+= 1
            peer.core.counters.retransmissionsSent &+= 1
        } else {
            peer.core.counters.retransmissionsMissed &+= 1
        }
    }

    // MARK: - Packets

    /// Writes one packet and sends it.
    /// - Returns: its length on the wire; `nil` when it could not be sent.
    private func send(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ mapping: PayloadMapping,
        retransmission: Bool = false,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Int? {
        guard unsafe state.pointee.egress.pointee.isSendable else { return nil }
        let description = unsafe packet.pointee.description
        let outgoing: PayloadType
        var rtx: (payloadType: PayloadType, ssrc: SSRC)?
        switch mapping {
        case .same(let payloadType, let rtxPayloadType):
            outgoing = payloadType
            if retransmission, let rtxPayloadType, let ssrc = parameters.rtxSSRC { rtx = (rtxPayloadType, ssrc) }
        case .red(let payloadType, _), .redPrimary(let payloadType): outgoing = payloadType
        case .unsupported: return nil
        }
        if retransmission, rtx == nil, !isRepeatable { return nil }
        guard let stream = rtx == nil ? unsafe state.pointee.stream : rtxStream else { return nil }
        let lengthMax =
            HeaderWriter.lengthMax(description, names: names.count) + 2 + Int(description.payloadLength)
            + SRTPSession.overheadBytesMax
        guard lengthMax <= DatagramBatch.slotBytes, let place = unsafe batch.reserve() else { return nil }
        let sequence = segment.sequence(description.sequence).wire
        var writer = unsafe HeaderWriter(
            place,
            isTwoByte: !(state.pointee.extensions.isOneByte && names.isOneByte && description.fitsOneByteForm),
            marker: description.marker,
            payloadType: (rtx?.payloadType ?? outgoing).rawValue,
            sequence: rtx == nil ? sequence : rtxSequence.wire,
            timestamp: segment.timestamp(description.timestamp),
            ssrc: rtx?.ssrc ?? parameters.ssrc
        )
        let header = unsafe writeExtensions(packet, segment, turn, isRTX: rtx != nil, to: &writer)
        var slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: DatagramBatch.slotBytes).mutableBytes
        var offset = header
        if rtx != nil {
            // The original sequence number precedes the payload (RFC 4588 §4).
            slot.store(bigEndian: sequence.rawValue, at: offset)
            offset += 2
        }
        guard let end = unsafe writePayload(packet.pointee.span, description, mapping, at: offset, into: &slot) else {
            return nil
        }
        unsafe segment.renumber(place + offset, description)
        let length = unsafe state.pointee.egress.pointee.send(
            stream,
            place,
            headerLength: header,
            payload: place + header,
            payloadLength: end - header,
            index: rtx == nil ? segment.packetIndex(description.sequence) : UInt64(rtxSequence.rawValue),
            isNumbered: state.pointee.extensions.transportSequenceNumber != 0,
            kind: retransmission ? .retransmission : .media,
            turn,
            into: batch
        )
        guard length > 0 else { return nil }
        if rtx != nil { rtxSequence = rtxSequence.advanced(by: 1) }
        return length
    }

    /// Writes the header extensions behind the fixed header.
    /// - Returns: the header's length.
    private func writeExtensions(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ turn: SendTurn,
        isRTX: Bool,
        to writer: inout HeaderWriter
    ) -> Int {
        // Nobody reports on an RTX stream, so all of its packets name the layer that they repeat (RFC 8852 §3.3).
        if unsafe state.pointee.sendsMID || isRepeatable || (isRTX && parameters.rid != nil) {
            names.append(to: &writer, isRTX: isRTX)
        }
        let extensions = unsafe state.pointee.extensions
        unsafe state.pointee.egress.pointee.writePerSendElements(extensions, turn, to: &writer)
        unsafe writer.appendForwarded(packet, segment, extensions)
        return writer.finish()
    }

    private func writePayload(
        _ packet: RawSpan,
        _ description: PacketDescription,
        _ mapping: PayloadMapping,
        at offset: Int,
        into slot: inout MutableRawSpan
    ) -> Int? {
        var range = description.payloadRange
        if case .redPrimary = mapping {
            guard let primary = REDBlocks.primaryRange(of: packet.extracting(range)) else { return nil }
            range = range.lowerBound + primary.lowerBound..<range.lowerBound + primary.upperBound
        }
        slot.store(packet.extracting(range), at: offset)
        if case .red(_, let primary) = mapping {
            REDBlocks.rewritePayloadTypes(in: &slot, from: offset, count: range.count, to: primary)
        }
        return offset + range.count
    }

    // MARK: - Reports

    /// The sender report that ties the outgoing timestamps to our clock (RFC 3550 §6.4.1); `nil` before media, and while
    /// nothing is sent.
    func senderInfo(at now: Instant) -> SenderInfo? {
        guard packetsSent > 0, let newest = unsafe state.pointee.rewriter.newestTimestamp,
            now - newest.sentAt < Self.senderSilenceMax
        else { return nil }
        let ntp = peer.core.ntp(at: now)
        var rtp: RTPTimestamp?
        if let segment = unsafe state.pointee.rewriter.currentSegment, let stream = source?.stream(segment.stream),
            let offset = stream.track.clockOffset.nanoseconds,
            let sourceTime = stream.clock.timestamp(atSenderNanoseconds: ntp.nanoseconds &- offset)
        {
            rtp = segment.timestamp(sourceTime)
        } else if let sourceBeganAt, now - sourceBeganAt > Self.senderReportPatience {
            let elapsed = Int((now - newest.sentAt).nanoseconds / 1_000)
            rtp = newest.timestamp.advanced(by: elapsed * parameters.kind.clockRate / 1_000_000)
        }
        return rtp.map {
            SenderInfo(ntp: ntp, rtp: $0, packetCount: packetsSent, octetCount: octetsSent)
        }
    }

    /// Who sent nothing for two report intervals is no sender any more (RFC 3550 §6.3.8).
    private static let senderSilenceMax = Interval.seconds(2)
    /// How long to wait for the source's own reports, which alone tell audio and video's true relation, before
    /// arrival times have to do.
    private static let senderReportPatience = Interval.seconds(5)
}

extension ReceivedStream {
    /// Lends a kept packet in the form that the fan-out uses.
    func withPending<Result>(
        _ packet: RawSpan,
        _ description: PacketDescription,
        _ body: (UnsafePointer<PendingPacket>) -> Result
    ) -> Result? {
        unsafe packet.withUnsafeBytes { buffer in
            guard let bytes = buffer.baseAddress else { return nil }
            var pending = unsafe PendingPacket(
                description: description,
                bytes: bytes,
                length: buffer.count,
                stream: Uncounted(self),
                streamID: id.rawValue
            )
            return unsafe withUnsafePointer(to: &pending) { unsafe body($0) }
        }
    }
}
