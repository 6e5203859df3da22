import Base
import MediaTypes
import SRTP
import Wire

/// The receive path of media: decrypt, find the stream, undo RTX, keep one copy, fan out.
extension Peer {
    /// Takes one SRTP packet that stands at the start of `datagram`.
    func receivedRTP(
        _ datagram: inout MutableRawSpan,
        length: Int,
        core: Forwarder,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(PacketRefusal) {
        let plainLength = try decrypt(&datagram, length: length, at: now)
        core.counters.rtpReceived &+= 1
        let source = try identify(datagram.bytes.extracting(0..<plainLength), core: core, at: now)
        var range = 0..<plainLength
        if source.isRTX {
            core.counters.retransmissionsReceived &+= 1
            range = try restore(&datagram, length: plainLength, of: source.stream)
        }
        try accept(datagram.bytes.extracting(range), of: source, core: core, at: now, into: batch)
    }

    private func decrypt(
        _ datagram: inout MutableRawSpan,
        length: Int,
        at now: Instant
    ) throws(PacketRefusal) -> Int {
        do {
            return try transport.unprotectRTP(&datagram, length: length)
        } catch {
            guard error == .tooManySources, forgetSilentReporter(at: now) else { throw .drop(DropReason(error)) }
        }
        do {
            return try transport.unprotectRTP(&datagram, length: length)
        } catch {
            throw .drop(DropReason(error))
        }
    }

    /// Which stream a packet is of: a known SSRC, else what its extensions and the SDP say (RFC 8843 §9.2).
    private func identify(_ packet: RawSpan, core: Forwarder, at now: Instant) throws(PacketRefusal)
        -> StreamDirectory.Source
    {
        let view = try parse(packet)
        if let number = transportSequence(of: view) { noteTransportSequence(number, core: core, at: now) }
        if let source = directory.source(view.ssrc) { return source }
        let (stream, isRTX) = try identifyNew(view, at: now)
        return StreamDirectory.Source(ssrc: view.ssrc, isRTX: isRTX, stream: Unretained(stream))
    }

    private func transportSequence(of view: borrowing RTPPacketView) -> TransportSequenceNumber? {
        guard let id = extensions[.transportSequenceNumber] else { return nil }
        var cursor = view.makeExtensionCursor()
        while let element = cursor.next() {
            guard element.id == id.rawValue else { continue }
            guard element.range.count >= 2 else { return nil }
            return TransportSequenceNumber(rawValue: view.bytes.bigEndianUInt16(at: element.range.lowerBound))
        }
        return nil
    }

    private func identifyNew(
        _ view: borrowing RTPPacketView,
        at now: Instant
    ) throws(PacketRefusal) -> (ReceivedStream, isRTX: Bool) {
        var mid: MID?
        var rid: RID?
        var repairedRID: RID?
        var cursor = view.makeExtensionCursor()
        while let element = cursor.next() {
            switch extensions.kind(of: element.id) {
            case .mid: mid = MID(view.data(of: element))
            case .rtpStreamID: rid = RID(view.data(of: element))
            case .repairedRTPStreamID: repairedRID = RID(view.data(of: element))
            default: break
            }
        }
        let ssrc = view.ssrc
        let payloadType = view.payloadType
        guard !directory.hasEnded(ssrc), let track = findTrack(mid: mid, ssrc: ssrc, payloadType: payloadType) else {
            throw .drop(.unknownStream)
        }
        if track.parameters.codecs.contains(where: { $0.rtxPayloadType == payloadType }) {
            let stream =
                track.streams.first { $0.rtxSSRC == ssrc }
                ?? track.streams.first { repairedRID != nil && $0.rid == repairedRID }
                // Without layers a restarted source has taken the track over, and this is its RTX.
                ?? (track.parameters.rids.isEmpty && repairedRID == nil ? track.target : nil)
            guard let stream else { throw .drop(.unknownStream) }
            directory.addRTX(ssrc, of: stream)
            return (stream, true)
        }
        guard track.codec(of: payloadType) != nil else { throw .drop(.unknownPayloadType) }
        if !track.parameters.rids.isEmpty {
            guard let rid, track.parameters.rids.contains(rid) else { throw .drop(.unknownStream) }
            return (try addStream(ssrc, rid: rid, to: track, at: now), false)
        }
        return (try addStream(ssrc, rid: nil, to: track, at: now), false)
    }

    private func findTrack(mid: MID?, ssrc: SSRC, payloadType: PayloadType) -> ReceivedTrack? {
        if let mid { return track(mid) }
        if let announced = tracks.first(where: {
            $0.parameters.ssrcs.contains(ssrc) || $0.parameters.rtxSSRCs.values.contains(ssrc)
        }) {
            return announced
        }
        let candidates = tracks.filter { track in
            track.parameters.codecs.contains { $0.payloadType == payloadType || $0.rtxPayloadType == payloadType }
        }
        return candidates.count == 1 ? candidates.first : nil
    }

    /// Turns an RTX packet in place into the one that it repeats (RFC 4588 §4).
    ///
    /// The header moves two bytes up over the original sequence number, so the payload stays where it is.
    private func restore(
        _ datagram: inout MutableRawSpan,
        length: Int,
        of unretained: Unretained<ReceivedStream>
    ) throws(PacketRefusal) -> Range<Int> {
        let stream = unretained.object
        let original: UInt16
        let headerLength: Int
        let end: Int
        let payloadType: PayloadType
        let marker: Bool
        do {
            let view = try parse(datagram.bytes.extracting(0..<length))
            guard view.payloadRange.count >= 2 else { throw .drop(.padding) }
            original = view.payload.bigEndianUInt16(at: 0)
            headerLength = view.headerLength
            end = view.payloadRange.upperBound
            marker = view.marker
            let repeated = view.payloadType
            guard let codec = stream.track.parameters.codecs.first(where: { $0.rtxPayloadType == repeated }) else {
                throw .drop(.unknownPayloadType)
            }
            payloadType = codec.payloadType
        }
        var offset = headerLength - 1
        while offset >= 0 {
            datagram.store(datagram.bytes.byte(at: offset), at: offset + 2)
            offset -= 1
        }
        // The padding was cut off, so its flag goes too.
        datagram.store(datagram.bytes.byte(at: 2) & ~0x20, at: 2)
        datagram.store((marker ? 0x80 : 0) | payloadType.rawValue, at: 3)
        datagram.store(bigEndian: original, at: 4)
        datagram.store(bigEndian: stream.ssrc.rawValue, at: 10)
        return 2..<end
    }

    /// Keeps a packet of a known stream and hands it to every slot that plays its track.
    private func accept(
        _ packet: RawSpan,
        of source: StreamDirectory.Source,
        core: Forwarder,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(PacketRefusal) {
        let view = try parse(packet)
        let refusal = source.stream.with { stream in
            stream.owner.with { track in
                accept(view, of: stream, track, source.isRTX, core: core, at: now, into: batch)
            }
        }
        if let refusal { throw .drop(refusal) }
    }

    @inline(__always)
    private func accept(
        _ view: borrowing RTPPacketView,
        of stream: ReceivedStream,
        _ track: ReceivedTrack,
        _ isRTXRecovered: Bool,
        core: Forwarder,
        at now: Instant,
        into batch: DatagramBatch
    ) -> DropReason? {
        guard let format = stream.format(of: view.payloadType, in: track) else { return .unknownPayloadType }
        let sequence =
            isRTXRecovered ? stream.unwrapper.peek(view.sequenceNumber) : stream.unwrapper.unwrap(view.sequenceNumber)
        guard
            var description = PacketDescription(
                view,
                sequence: sequence,
                codec: format.codec,
                extensions: extensions,
                templates: stream.templates,
                at: now
            )
        else { return .malformedRTP }
        description.isRTXRecovered = isRTXRecovered
        stream.packetsReceived &+= 1
        if !isRTXRecovered {
            stream.statistics.receivedPacket(sequence, view.timestamp, at: now)
            stream.noteTimestamp(&description)
        }
        if stream.shedding.isActive || !takeIn(bytes: view.bytes.byteCount, at: now),
            let refusal = holdBack(stream, track, description, bytes: view.bytes.byteCount, core: core, at: now)
        {
            return refusal
        }
        guard track.take(view.bytes, description, of: stream, core: core, into: batch) else {
            return stream.history.contains(sequence) ? .duplicate : .tooOld
        }
        stream.noteArrival(description, bytes: view.bytes.byteCount, at: now)
        if description.startsKeyFrame { stream.noteKeyFrame(description, view.payload, codec: format.codec) }
        if description.frame.contains(.isScreenContent), track.noteScreenContent(description, of: stream, at: now) {
            core.transferLayers(of: track)
        }
        noteLoss(sequence, description, of: stream, format, core: core, at: now)
        if track.announcedCodec != format.codec, description.payloadLength > 0 {
            announce(format.codec, of: track, at: now)
        }
        if description.audioLevel.isPresent, track.detectsSpeech {
            listen(view.bytes.byte(at: Int(description.audioLevel.offset)), to: track, core: core, at: now)
        }
        track.tap?(view.bytes, description, now)
        return nil
    }

    private func listen(_ level: UInt8, to track: ReceivedTrack, core: Forwarder, at now: Instant) {
        guard let isSpeaking = track.noteAudioLevel(level, at: now) else { return }
        core.emit(.speech(mid: track.id.mid, isSpeaking: isSpeaking), of: id)
    }

    private func announce(_ codec: CodecName, of track: ReceivedTrack, at now: Instant) {
        guard track.mayAnnounce(at: now) else { return }
        track.announcedCodec = codec
        core.emit(.trackStarted(mid: track.id.mid, codec: codec), of: id)
    }

    private func noteLoss(
        _ sequence: ExtendedSequenceNumber,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        _ format: ReceivedFormat,
        core: Forwarder,
        at now: Instant
    ) {
        if description.startsKeyFrame {
            core.counters.keyFramesReceived &+= 1
            stream.keyFrames.receivedKeyFrame(at: now)
            stream.losses.keyFrameBegan(at: sequence)
            if format.codec.kind == .video, setup.frameReceived(at: now) { emitSetup() }
        }
        guard format.isNACKed else { return }
        if stream.losses.received(sequence, at: now) == .gapTooWide, format.codec.kind == .video {
            stream.keyFrames.want(at: now)
        }
        if let deadline = stream.nextDeadline { core.schedule.wake(self, at: deadline) }
    }

    @_lifetime(copy packet)
    private func parse(_ packet: RawSpan) throws(PacketRefusal) -> RTPPacketView {
        do {
            return try RTPPacketView(packet)
        } catch {
            throw .drop(.malformedRTP)
        }
    }
}

extension DropReason {
    init(_ error: SRTPError) {
        self =
            switch error {
            case .authentication: .srtpAuthentication
            case .replayed, .tooOld: .srtpReplay
            case .tooManySources: .srtpSourceLimit
            default: .srtpOther
            }
    }
}
