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
    /// When the stream that plays, or the last one that did, began to.
    private var sourceBeganAt: Instant?
    private var mappings: [(PayloadType, PayloadMapping)] = []
    private var rtxStream: SRTPOutboundStream?
    private var rtxSequence: ExtendedSequenceNumber
    private var limiter = RetransmissionLimiter()
    private let midBytes: [UInt8]
    private let ridBytes: [UInt8]
    /// Without RTX a retransmission is the same packet under the same SRTP index, and encrypting anything different
    /// under it would give keys away (RFC 7714 §8.4). Such a slot sends only extensions that never change.
    private let isRepeatable: Bool
    private var announcedUnsupported: CodecName?
    private var lastKeyFrameRequestAt: Instant?

    package private(set) var retransmitted: UInt64 = 0
    /// The receiver's newest report on us.
    package private(set) var lastReport: ReportBlock?

    /// A packet that was received longer ago than this is too late for any receiver that waits for it.
    private static let retransmissionAgeMax = Interval.seconds(2)

    init(
        id: TrackID,
        parameters: SendTrackParameters,
        peer: Peer,
        sending: UnsafeMutablePointer<PeerSendState>,
        slab: StateSlab<SlotState>,
        seed: UInt64
    ) {
        self.id = id
        self.parameters = parameters
        unsafe owner = peer
        self.slab = slab
        isRepeatable = parameters.kind == .video && parameters.rtxSSRC == nil
        midBytes = Array(parameters.mid.value.utf8)
        ridBytes = parameters.rid.map { Array($0.value.utf8) } ?? []
        rtxSequence = ExtendedSequenceNumber(rawValue: Int64(seed >> 16 & 0x7FFF))
        unsafe state = slab.make(
            SlotState(
                peer: sending,
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
    func connect(to track: ReceivedTrack?, at now: Instant) {
        let before = source
        before?.detach(self)
        source = track
        stopPlaying()
        mappings.removeAll(keepingCapacity: true)
        announcedUnsupported = nil
        track?.attach(self, at: now)
        if let before, before !== track { peer.core.noteDetached(before, at: now) }
    }

    private func stopPlaying() {
        unsafe state.pointee.playing = 0
        unsafe state.pointee.sourcePayloadType = .max
    }

    /// Whether the receiver's wish for a key frame is passed on. One that repeats it all the time, for whatever reason,
    /// would cost every other viewer picture quality.
    func mayRequestKeyFrame(at now: Instant) -> Bool {
        if let lastKeyFrameRequestAt, now - lastKeyFrameRequestAt < Self.keyFrameRequestSpacing { return false }
        lastKeyFrameRequestAt = now
        return true
    }

    private static let keyFrameRequestSpacing = Interval.milliseconds(500)

    func receivedReport(_ block: ReportBlock) {
        lastReport = block
        // With layers the receiver tells streams apart by RID, which goes with the MID.
        unsafe state.pointee.sendsMID = isRepeatable
    }

    // MARK: - Media

    /// Sends one packet of the source on that is not a plain one, if it is this slot's turn for it.
    func forward(_ packet: UnsafePointer<PendingPacket>, at now: Instant, into batch: DatagramBatch) {
        let description = unsafe packet.pointee.description
        let streamID = unsafe StreamID(rawValue: packet.pointee.streamID)
        let stream = unsafe packet.pointee.stream.object
        let span = unsafe packet.pointee.span
        if unsafe state.pointee.playing != streamID.rawValue {
            guard stream === stream.track.target, begin(stream, at: span, description, now: now) else { return }
        }
        guard let segment = unsafe state.pointee.rewriter.segment(of: description.sequence, in: streamID) else {
            peer.core.counters.drop(.tooOld)
            return
        }
        if description.payloadLength == 0, unsafe state.pointee.rewriter.leaveOut(description.sequence) { return }
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
        guard let length = send(span, description, segment, mapping, at: now, into: batch) else { return }
        unsafe state.pointee.rewriter.sent(
            description,
            in: segment,
            frameNumber: frameNumber(span, description),
            at: now
        )
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
        at packet: RawSpan,
        _ description: PacketDescription,
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
            frameNumber: frameNumber(packet, description),
            alignedTimestamp: alignedTimestamp(description.timestamp, of: stream),
            now: now
        )
        sourceBeganAt = now
        unsafe state.pointee.playing = stream.id.rawValue
        unsafe state.pointee.sourcePayloadType = .max
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
        guard announcedUnsupported != codec else { return }
        announcedUnsupported = codec
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

    private func frameNumber(_ packet: RawSpan, _ description: PacketDescription) -> UInt16? {
        guard description.dependencyDescriptor.length >= 3 else { return nil }
        return packet.bigEndianUInt16(at: Int(description.dependencyDescriptor.offset) + 1)
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
        let sent = stream.history.withPacket(sourceSequence) { packet, description in
            guard now - description.receivedAt <= Self.retransmissionAgeMax else { return false }
            // The payload types of a source that played before are its own.
            let mapping =
                stream.track === source
                ? mapping(of: description.payloadType, in: stream.track)
                : PayloadMapping(description.payloadType, of: stream.track.parameters, to: parameters)
            guard let mapping else { return false }
            return send(packet, description, segment, mapping, retransmission: true, at: now, into: batch) != nil
        }
        if sent == true {
            retransmitted &+= 1
            peer.core.counters.retransmissionsSent &+= 1
        } else {
            peer.core.counters.retransmissionsMissed &+= 1
        }
    }

    // MARK: - Packets

    /// Writes, encrypts and queues one packet.
    /// - Returns: its length on the wire; `nil` when it could not be sent.
    private func send(
        _ packet: RawSpan,
        _ description: PacketDescription,
        _ segment: RTPRewriter.Segment,
        _ mapping: PayloadMapping,
        retransmission: Bool = false,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Int? {
        guard unsafe state.pointee.peer.pointee.isSendable, let sender = unsafe state.pointee.peer.pointee.sender else {
            return nil
        }
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
        let sequence = segment.sequence(description.sequence).wire
        let index = rtx == nil ? segment.packetIndex(description.sequence) : UInt64(rtxSequence.rawValue)
        guard let place = unsafe batch.reserve() else { return nil }
        var slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: DatagramBatch.slotBytes).mutableBytes
        RTPHeaderWriter.write(
            marker: description.marker,
            payloadType: rtx?.payloadType ?? outgoing,
            sequenceNumber: rtx == nil ? sequence : rtxSequence.wire,
            timestamp: segment.timestamp(description.timestamp),
            ssrc: rtx?.ssrc ?? parameters.ssrc,
            into: &slot
        )
        let header = writeExtensions(packet, description, segment, isRTX: rtx != nil, at: now, into: &slot)
        var offset = header
        if rtx != nil {
            // The original sequence number precedes the payload (RFC 4588 §4).
            slot.store(bigEndian: sequence.rawValue, at: offset)
            offset += 2
        }
        guard let end = writePayload(packet, description, segment, mapping, at: offset, into: &slot) else {
            return nil
        }
        let length = unsafe sender.protectRTP(
            stream,
            place,
            headerLength: header,
            payload: place + header,
            payloadLength: end - header,
            index: index
        )
        guard length > 0 else { return nil }
        unsafe batch.commit(length, to: state.pointee.peer.pointee.path)
        if rtx != nil { rtxSequence = rtxSequence.advanced(by: 1) }
        return length
    }

    private func writeExtensions(
        _ packet: RawSpan,
        _ description: PacketDescription,
        _ segment: RTPRewriter.Segment,
        isRTX: Bool,
        at now: Instant,
        into slot: inout MutableRawSpan
    ) -> Int {
        var writer = HeaderExtensionWriter()
        let extensions = parameters.extensions
        // Nobody reports on an RTX stream, so what layer it repeats is said on all of it (RFC 8852 §3.3).
        let sendsMID = unsafe state.pointee.sendsMID
        if sendsMID || isRepeatable || (isRTX && parameters.rid != nil), let id = extensions[.mid] {
            let mid = midBytes
            writer.append(id, unsafe mid.span.bytes, to: &slot)
            if parameters.rid != nil, let ridID = extensions[isRTX ? .repairedRTPStreamID : .rtpStreamID] {
                let rid = ridBytes
                writer.append(ridID, unsafe rid.span.bytes, to: &slot)
            }
        }
        if !isRepeatable, let id = extensions[.absoluteSendTime], let range = writer.reserve(id, length: 3, in: &slot) {
            let time = AbsoluteSendTime(peer.core.ntp(at: now)).rawValue
            slot.store(UInt8(truncatingIfNeeded: time >> 16), at: range.lowerBound)
            slot.store(bigEndian: UInt16(truncatingIfNeeded: time), at: range.lowerBound + 1)
        }
        if !isRepeatable, let id = extensions[.transportSequenceNumber],
            let range = writer.reserve(id, length: 2, in: &slot)
        {
            let number = unsafe state.pointee.peer.pointee.takeTransportSequence()
            slot.store(bigEndian: number, at: range.lowerBound)
        }
        if let id = extensions[.audioLevel], description.audioLevel.isPresent {
            writer.append(id, packet.extracting(description.audioLevel.range), to: &slot)
        }
        if let id = extensions[.videoOrientation], description.videoOrientation.isPresent {
            writer.append(id, packet.extracting(description.videoOrientation.range), to: &slot)
        }
        if let id = extensions[.playoutDelay], description.playoutDelay.isPresent {
            writer.append(id, packet.extracting(description.playoutDelay.range), to: &slot)
        }
        let dependency = description.dependencyDescriptor
        if let id = extensions[.dependencyDescriptor], dependency.length >= 3,
            let range = writer.reserve(id, length: Int(dependency.length), in: &slot)
        {
            slot.store(packet.extracting(dependency.range), at: range.lowerBound)
            let number = segment.frameNumber(packet.bigEndianUInt16(at: Int(dependency.offset) + 1))
            slot.store(bigEndian: number, at: range.lowerBound + 1)
        }
        return writer.finish(&slot)
    }

    private func writePayload(
        _ packet: RawSpan,
        _ description: PacketDescription,
        _ segment: RTPRewriter.Segment,
        _ mapping: PayloadMapping,
        at offset: Int,
        into slot: inout MutableRawSpan
    ) -> Int? {
        var range = description.payloadRange
        if case .redPrimary = mapping {
            guard let primary = REDBlocks.primaryRange(of: packet.extracting(range)) else { return nil }
            range = range.lowerBound + primary.lowerBound..<range.lowerBound + primary.upperBound
        }
        guard offset + range.count + SRTPOverhead.bytesMax <= slot.byteCount else { return nil }
        slot.store(packet.extracting(range), at: offset)
        if case .red(_, let primary) = mapping {
            REDBlocks.rewritePayloadTypes(in: &slot, from: offset, count: range.count, to: primary)
        }
        if description.pictureIDBits != 0 {
            let position = offset + Int(description.pictureIDOffset) - range.lowerBound
            let value = segment.pictureID(description.pictureID, bits: description.pictureIDBits)
            if description.pictureIDBits == 15 {
                slot.store(bigEndian: 0x8000 | value, at: position)
            } else {
                slot.store(UInt8(truncatingIfNeeded: value), at: position)
            }
        }
        if description.tl0Offset != 0 {
            slot.store(segment.tl0(description.tl0), at: offset + Int(description.tl0Offset) - range.lowerBound)
        }
        return offset + range.count
    }

    // MARK: - Reports

    /// The sender report that ties the outgoing timestamps to our clock (RFC 3550 §6.4.1); `nil` before media.
    func senderInfo(at now: Instant) -> SenderInfo? {
        guard packetsSent > 0, let newest = unsafe state.pointee.rewriter.newestTimestamp else { return nil }
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

    /// How long to wait for the source's own reports, which alone tell audio and video's true relation, before
    /// arrival times have to do.
    private static let senderReportPatience = Interval.seconds(5)
}

/// What SRTP and SRTCP may add to a packet: index, tag and a margin for the largest tag of RFC 7714.
package enum SRTPOverhead { package static let bytesMax = 32 }
