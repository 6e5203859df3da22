public import Base

/// Writing packets.
extension Association {
    /// Writes the next packet that is to be sent.
    /// - Parameters:
    ///   - buffer: at least 1,188 bytes; the packet starts at its first byte.
    ///   - dataBudget: how many bytes of data the rate of the path allows now. A packet with data is written while it is above zero, and
    ///     may exceed it once; at zero and below only control is written.
    /// - Returns: `nil` when there is nothing to send now.
    public mutating func nextPacket(
        into buffer: inout MutableRawSpan,
        dataBudget: Int = .max,
        at now: Instant
    ) -> OutgoingPacket? {
        precondition(buffer.byteCount >= PacketLayout.bytesMax, "the buffer holds a packet")
        if !lone.isEmpty { return writeLone(into: &buffer) }
        guard let peer else {
            guard phase == .cookieWait, isStepDue else { return nil }
            isStepDue = false
            return writeInitiation(into: &buffer)
        }
        guard phase != .ended else { return nil }
        if phase == .cookieWait {
            guard isStepDue else { return nil }
            isStepDue = false
            return writeInitiation(into: &buffer)
        }
        var offset = PacketLayout.headerBytes
        var dataBytes = 0
        var mustHaveChecksum = false
        if phase == .cookieEchoed {
            guard isStepDue else { return nil }
            isStepDue = false
            mustHaveChecksum = true
            offset = append(.chunk(.cookieEcho, cookie), at: offset, into: &buffer)
        } else {
            offset = writeControl(at: offset, at: now, into: &buffer)
        }
        if phase.sendsData || phase == .cookieEchoed, dataBudget > 0 {
            let start = offset
            offset = writeData(at: offset, at: now, into: &buffer)
            dataBytes = offset - start
            if phase == .established { beginResets(at: now) }
        }
        guard offset > PacketLayout.headerBytes else { return nil }
        return finish(offset, tag: peer.tag, mustHaveChecksum: mustHaveChecksum, dataBytes, into: &buffer)
    }

    // MARK: - Parts

    private mutating func writeLone(into buffer: inout MutableRawSpan) -> OutgoingPacket? {
        let chunk = lone.removeFirst()
        return write([chunk.bytes], tag: chunk.tag, into: &buffer)
    }

    private mutating func write(_ chunks: [[UInt8]], tag: UInt32, into buffer: inout MutableRawSpan) -> OutgoingPacket {
        var offset = PacketLayout.headerBytes
        for chunk in chunks { offset = append(chunk, at: offset, into: &buffer) }
        return finish(offset, tag: tag, mustHaveChecksum: true, 0, into: &buffer)
    }

    /// The first INIT offers packets without checksum; Pion 3 drops an INIT with a parameter that it does not know. Without it
    /// nothing is lost but time, so the following ones do without.
    private mutating func writeInitiation(into buffer: inout MutableRawSpan) -> OutgoingPacket {
        var initiation = local
        if stepTries > 1 { initiation.capabilities.remove(.zeroChecksum) }
        return write([initiation.encoded(as: .initiation)], tag: 0, into: &buffer)
    }

    private func append(_ chunk: [UInt8], at offset: Int, into buffer: inout MutableRawSpan) -> Int {
        buffer.store(unsafe chunk.span.bytes, at: offset)
        return offset + chunk.count
    }

    private mutating func finish(
        _ byteCount: Int,
        tag: UInt32,
        mustHaveChecksum: Bool,
        _ dataBytes: Int,
        into buffer: inout MutableRawSpan
    ) -> OutgoingPacket {
        let maySkip = settings.offersZeroChecksum && peer?.capabilities.contains(.zeroChecksum) == true
        PacketLayout.writeHeader(
            port: settings.port,
            tag: tag,
            hasChecksum: mustHaveChecksum || !maySkip,
            byteCount: byteCount,
            into: &buffer
        )
        counters.packetsSent &+= 1
        return OutgoingPacket(byteCount: byteCount, dataBytes: dataBytes)
    }

    /// SACK, answers, FORWARD-TSN, the request of a reset, and steps of the shutdown, as far as they fit.
    private mutating func writeControl(at start: Int, at now: Instant, into buffer: inout MutableRawSpan) -> Int {
        var offset = start
        if !control.isEmpty {
            offset = append(control, at: offset, into: &buffer)
            control = []
        }
        if phase.receivesData || phase == .shutdownReceived, receiver.numbers.isDue || willSendData(at: now) {
            offset = writeAck(at: offset, into: &buffer)
        }
        if phase.sendsData, offset + Self.largeChunkBytes <= PacketLayout.bytesMax,
            let forward = sender.takeForward(&work)
        {
            offset = append(forward.encoded(isInterleaved: isInterleaved), at: offset, into: &buffer)
        }
        if phase == .established, offset + Self.largeChunkBytes <= PacketLayout.bytesMax,
            let request = resets.takeRequest(timeout: sender.roundTrip.timeout, at: now)
        {
            offset = append(request.encoded(), at: offset, into: &buffer)
        }
        guard isStepDue, offset + 8 <= PacketLayout.bytesMax else { return offset }
        switch phase {
        case .shutdownSent:
            isStepDue = false
            var value: [UInt8] = []
            value.append(bigEndian: SerialNumber.raw(receiver.numbers.cumulative))
            offset = append(.chunk(.shutdown, value), at: offset, into: &buffer)
        case .shutdownAckSent:
            isStepDue = false
            offset = append(.chunk(.shutdownAck), at: offset, into: &buffer)
        default: break
        }
        return offset
    }

    /// The longest FORWARD-TSN, or request of a reset.
    private static var largeChunkBytes: Int { 8 + 8 * ForwardedNumbers.skippedMax }

    /// Whether a SACK that could wait goes along with data.
    private func willSendData(at now: Instant) -> Bool {
        receiver.numbers.isPending && phase.sendsData && sender.hasSomethingToSend
    }

    private mutating func writeAck(at offset: Int, into buffer: inout MutableRawSpan) -> Int {
        receiver.outstandingBytes = sender.chunks.heldBytes
        let sack = receiver.takeAck(&work)
        guard offset + sack.byteCount <= PacketLayout.bytesMax else {
            receiver.demandAck()
            return offset
        }
        sack.write(at: offset, into: &buffer)
        return offset + sack.byteCount
    }

    private mutating func writeData(at start: Int, at now: Instant, into buffer: inout MutableRawSpan) -> Int {
        var offset = start
        sender.beginPacket(at: now)
        while let (tsn, chunk) = sender.nextChunk(room: PacketLayout.bytesMax - offset, at: now) {
            offset = write(chunk, SerialNumber.raw(tsn), at: offset, into: &buffer)
        }
        if offset > start { sender.endPacket(at: now) }
        return offset
    }

    // Inlined, because a call of a function that only reads copies the association.
    @inline(__always)
    private func write(_ chunk: SentChunk, _ tsn: UInt32, at offset: Int, into buffer: inout MutableRawSpan) -> Int {
        let header = isInterleaved ? DataChunk.interleavedHeaderBytes : DataChunk.headerBytes
        var flags = chunk.flags
        if sender.wantsImmediateAck { flags.insert(.immediate) }
        buffer.store(isInterleaved ? ChunkType.interleavedData.rawValue : ChunkType.data.rawValue, at: offset)
        buffer.store(flags.rawValue, at: offset + 1)
        buffer.store(bigEndian: UInt16(truncatingIfNeeded: header + chunk.range.count), at: offset + 2)
        buffer.store(bigEndian: tsn, at: offset + 4)
        buffer.store(bigEndian: chunk.stream.rawValue, at: offset + 8)
        if isInterleaved {
            buffer.store(bigEndian: UInt16(0), at: offset + 10)
            buffer.store(bigEndian: chunk.messageNumber, at: offset + 12)
            let isFirst = chunk.flags.contains(.beginning)
            buffer.store(bigEndian: isFirst ? chunk.payloadProtocol.rawValue : chunk.fragment, at: offset + 16)
        } else {
            buffer.store(bigEndian: UInt16(truncatingIfNeeded: chunk.messageNumber), at: offset + 10)
            buffer.store(bigEndian: chunk.payloadProtocol.rawValue, at: offset + 12)
        }
        buffer.store(unsafe chunk.payload.span.bytes.extracting(chunk.range), at: offset + header)
        var end = offset + header + chunk.range.count
        while end % 4 != 0 {
            buffer.store(0 as UInt8, at: end)
            end += 1
        }
        return end
    }
}
