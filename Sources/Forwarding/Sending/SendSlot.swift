package import Wire

/// One m-section that we send in: a steady stream made of whatever source plays into it.
package final class SendSlot {
    package let id: TrackID
    package let parameters: SendTrackParameters
    unowned let peer: Peer
    package private(set) var source: ReceivedTrack?
    /// The stream whose packets go out; `nil` until one began since the source was connected.
    private var playing: StreamID?
    private(set) var rewriter: RTPRewriter
    /// When the stream that plays, or the last one that did, began to.
    private var sourceBeganAt: Instant?
    private var mappings: [(PayloadType, PayloadMapping)] = []
    private var rtxSequence: SequenceNumber
    private var limiter = RetransmissionLimiter()
    private let midBytes: [UInt8]
    /// Without RTX a retransmission is the same packet under the same SRTP index, and encrypting anything different
    /// under it would give keys away (RFC 7714 §8.4). Such a slot sends only extensions that never change.
    private let isRepeatable: Bool
    /// MID goes on every packet until a report shows that the receiver knows the SSRC (RFC 8843 §9.2).
    private var receiverKnowsSSRC = false
    private var announcedUnsupported: CodecName?
    private var lastKeyFrameRequestAt: Instant?

    package private(set) var packetsSent: UInt32 = 0
    package private(set) var octetsSent: UInt32 = 0
    package private(set) var bytesSent: UInt64 = 0
    package private(set) var retransmitted: UInt64 = 0
    /// The receiver's newest report on us.
    package private(set) var lastReport: ReportBlock?

    init(id: TrackID, parameters: SendTrackParameters, peer: Peer, seed: UInt64) {
        self.id = id
        self.parameters = parameters
        self.peer = peer
        rewriter = RTPRewriter(clockRate: parameters.kind.clockRate, seed: seed)
        rtxSequence = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: seed >> 16) & 0x7FFF)
        midBytes = Array(parameters.mid.value.utf8)
        isRepeatable = parameters.kind == .video && parameters.rtxSSRC == nil
    }

    /// Lets another track play here; what the receiver sees stays one continuous stream.
    func connect(to track: ReceivedTrack?, at now: Instant) {
        source?.detach(self)
        source = track
        playing = nil
        mappings.removeAll(keepingCapacity: true)
        announcedUnsupported = nil
        track?.attach(self, at: now)
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
        receiverKnowsSSRC = true
    }

    // MARK: - Media

    /// Sends one packet of the source on, if it is this slot's turn for it.
    func forward(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard peer.transport.isConnected, peer.transport.sendPath != nil else { return }
        if playing != stream.id {
            guard stream === stream.track.target, begin(stream, at: packet, description, now: now) else { return }
        }
        guard let segment = rewriter.segment(of: description.sequence, in: stream.id) else {
            peer.core.counters.drop(.tooOld)
            return
        }
        if description.payloadLength == 0, rewriter.leaveOut(description.sequence) { return }
        let mapping = mapping(of: description.payloadType, in: stream.track)
        if case .unsupported(let codec) = mapping {
            announceUnsupported(codec)
            // The decoder missed frames: it starts anew at a key frame when a format that it knows returns. A late
            // packet from before that changes nothing.
            if rewriter.newestSequence.map({ segment.sequence(description.sequence) > $0 }) ?? true { playing = nil }
            return
        }
        guard let length = send(packet, description, segment, mapping, at: now, into: batch) else { return }
        rewriter.sent(description, in: segment, frameNumber: frameNumber(packet, description), at: now)
        packetsSent &+= 1
        octetsSent &+= UInt32(description.payloadLength)
        bytesSent &+= UInt64(length)
        peer.core.counters.rtpSent &+= 1
        peer.core.counters.rtpBytesSent &+= UInt64(length)
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
            stream.keyFrames.want(at: now)
            peer.core.markDirty(stream.track.id.peer)
            return false
        }
        rewriter.begin(
            stream.id,
            at: description,
            frameNumber: frameNumber(packet, description),
            alignedTimestamp: alignedTimestamp(description.timestamp, of: stream),
            now: now
        )
        sourceBeganAt = now
        playing = stream.id
        return true
    }

    /// Where a packet of another layer of the same track lies on the outgoing time line, by both layers' sender
    /// reports.
    private func alignedTimestamp(_ timestamp: RTPTimestamp, of stream: ReceivedStream) -> RTPTimestamp? {
        guard let segment = rewriter.currentSegment, let previous = stream.track.stream(segment.stream),
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
        guard let (segment, sourceSequence) = rewriter.origin(of: number),
            let stream = source?.stream(segment.stream) ?? peer.core.stream(segment.stream),
            limiter.allow(number, at: now)
        else {
            peer.core.counters.retransmissionsMissed &+= 1
            return
        }
        let sent = stream.history.withPacket(sourceSequence) { packet, description in
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
        guard let path = peer.transport.sendPath else { return nil }
        let outgoing: PayloadType
        var rtx: (PayloadType, SSRC)?
        switch mapping {
        case .same(let payloadType, let rtxPayloadType):
            outgoing = payloadType
            if retransmission, let rtxPayloadType, let ssrc = parameters.rtxSSRC { rtx = (rtxPayloadType, ssrc) }
        case .red(let payloadType, _), .redPrimary(let payloadType): outgoing = payloadType
        case .unsupported: return nil
        }
        if retransmission, rtx == nil, !isRepeatable { return nil }
        let sequence = segment.sequence(description.sequence).wire
        let wireSequence = rtx == nil ? sequence : rtxSequence
        var length: Int?
        let appended = batch.append(to: path) { slot in
            RTPHeaderWriter.write(
                marker: description.marker,
                payloadType: rtx?.0 ?? outgoing,
                sequenceNumber: wireSequence,
                timestamp: segment.timestamp(description.timestamp),
                ssrc: rtx?.1 ?? parameters.ssrc,
                into: &slot
            )
            var offset = writeExtensions(packet, description, segment, isRTX: rtx != nil, at: now, into: &slot)
            if rtx != nil {
                // The original sequence number precedes the payload (RFC 4588 §4).
                slot.store(bigEndian: sequence.rawValue, at: offset)
                offset += 2
            }
            guard let end = writePayload(packet, description, segment, mapping, at: offset, into: &slot) else {
                return nil
            }
            length = peer.transport.protectRTP(&slot, length: end)
            return length
        }
        guard appended else { return nil }
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
        if !receiverKnowsSSRC || isRepeatable || (isRTX && parameters.rid != nil), let id = extensions[.mid] {
            let mid = midBytes
            writer.append(id, unsafe mid.span.bytes, to: &slot)
            if let rid = parameters.rid, let ridID = extensions[isRTX ? .repairedRTPStreamID : .rtpStreamID] {
                let name = Array(rid.value.utf8)
                writer.append(ridID, unsafe name.span.bytes, to: &slot)
            }
        }
        if !isRepeatable, let id = extensions[.absoluteSendTime], let range = writer.reserve(id, length: 3, in: &slot) {
            // 24 bits of 6.18 fixed-point seconds.
            let time = UInt32(truncatingIfNeeded: peer.core.ntp(at: now).rawValue >> 14)
            slot.store(UInt8(truncatingIfNeeded: time >> 16), at: range.lowerBound)
            slot.store(bigEndian: UInt16(truncatingIfNeeded: time), at: range.lowerBound + 1)
        }
        if !isRepeatable, let id = extensions[.transportSequenceNumber],
            let range = writer.reserve(id, length: 2, in: &slot)
        {
            slot.store(bigEndian: peer.takeTransportSequence().rawValue, at: range.lowerBound)
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
        guard packetsSent > 0, let newest = rewriter.newestTimestamp else { return nil }
        let ntp = peer.core.ntp(at: now)
        var rtp: RTPTimestamp?
        if let segment = rewriter.currentSegment, let stream = source?.stream(segment.stream),
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
