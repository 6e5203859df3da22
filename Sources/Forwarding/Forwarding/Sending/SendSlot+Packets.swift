import Base
import CongestionControl
import MediaTypes
import SRTP
import Wire

/// Writes the packets of a slot that are not plain, and retransmissions.
extension SendSlot {
    /// Writes one packet and sends it.
    /// - Returns: its length on the wire; `nil` when it could not be sent.
    func send(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ mapping: PayloadMapping,
        kind: SentKind = .media,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Int? {
        guard unsafe state.pointee.egress.pointee.isSendable else { return nil }
        // `!=` would be a call into another module.
        let retransmission = if case .media = kind { false } else { true }
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
        if retransmission, rtx == nil, !retransmitter.retransmitsWithoutRTX { return nil }
        guard let stream = rtx == nil ? unsafe state.pointee.stream : retransmitter.rtxStream else { return nil }
        let fits = HeaderWriter.fitsDatagram(
            headerLengthMax: HeaderWriter.lengthMax(description, names: names.count),
            payloadLength: Int(description.payloadLength) + (rtx == nil ? 0 : 2)
        )
        let sequence = segment.sequence(description.sequence).wire
        var repeated: UInt64?
        if retransmission, rtx == nil, unsafe state.pointee.extensions.numbering != .none {
            repeated = unsafe state.pointee.egress.pointee.number(of: parameters.ssrc, sequence)
            // With another number it would not be the same packet.
            guard repeated != nil else { return nil }
        }
        guard fits, let place = unsafe batch.reserve() else { return nil }
        var writer = unsafe HeaderWriter(
            place,
            isTwoByte: !(state.pointee.extensions.isOneByte && names.isOneByte && description.fitsOneByteForm),
            marker: description.marker,
            payloadType: (rtx?.payloadType ?? outgoing).rawValue,
            sequence: rtx == nil ? sequence : retransmitter.rtxSequence.wire,
            timestamp: segment.timestamp(description.timestamp),
            ssrc: rtx?.ssrc ?? parameters.ssrc
        )
        let header = unsafe writeExtensions(packet, segment, turn, repeated: repeated, isRTX: rtx != nil, to: &writer)
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
            index: rtx == nil ? segment.packetIndex(description.sequence) : UInt64(retransmitter.rtxSequence.rawValue),
            numbering: state.pointee.extensions.numbering,
            repeated: repeated,
            kind: kind,
            turn,
            into: batch
        )
        guard length > 0 else { return nil }
        if rtx != nil { retransmitter.advance() }
        return length
    }

    /// Writes the header extensions behind the fixed header.
    /// - Returns: the header's length.
    private func writeExtensions(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ turn: SendTurn,
        repeated: UInt64?,
        isRTX: Bool,
        to writer: inout HeaderWriter
    ) -> Int {
        // Nobody reports on an RTX stream, so all of its packets have the MID and name the layer that they repeat (RFC 8852
        // §3.3). Firefox ignores an SSRC whose MID it has not seen.
        if unsafe state.pointee.sendsMID || retransmitter.retransmitsWithoutRTX || isRTX {
            names.append(to: &writer, isRTX: isRTX)
        }
        let extensions = unsafe state.pointee.extensions
        unsafe state.pointee.egress.pointee.writePerSendElements(extensions, repeated: repeated, turn, to: &writer)
        unsafe writer.appendForwarded(packet, segment, extensions)
        if unsafe state.pointee.tellsPlayoutDelay, unsafe packet.pointee.description.playoutDelay.length == 0 {
            tellPlayoutDelay(isNew: !isRTX, to: &writer)
        }
        if extensions.videoContentType != 0, unsafe packet.pointee.description.frame.contains(.isScreenContent) {
            writer.append(extensions.videoContentType, VideoContentType.screenshare.rawValue)
        }
        return writer.finish()
    }

    /// A function of its own, so that packets of other slots do not pay for it.
    @inline(never)
    private func tellPlayoutDelay(isNew: Bool, to writer: inout HeaderWriter) {
        guard let delay = playoutDelay.take(isNew: isNew) else { return }
        unsafe writer.append(state.pointee.extensions.playoutDelay, bigEndianUInt24: delay.wireValue)
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
                stream: Unretained(self),
                streamID: id.rawValue
            )
            return unsafe withUnsafePointer(to: &pending) { unsafe body($0) }
        }
    }
}
