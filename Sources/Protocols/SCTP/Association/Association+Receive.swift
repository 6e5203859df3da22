public import Base

/// Reading packets (RFC 9260 §6 and §8.5).
extension Association {
    /// Handles one packet.
    /// - Throws: why it was dropped. Nothing changed then, and no answer is sent.
    public mutating func receive(_ packet: RawSpan, at now: Instant) throws(SCTPDropReason) {
        guard packet.byteCount >= PacketLayout.headerBytes + PacketLayout.chunkHeaderBytes,
            packet.byteCount <= Self.packetBytesMax
        else { throw .length }
        guard packet.bigEndianUInt16(at: 0) == settings.port, packet.bigEndianUInt16(at: 2) == settings.port else {
            throw .port
        }
        let first = ChunkType(rawValue: packet.byte(at: PacketLayout.headerBytes))
        guard hasValidChecksum(packet, first) else { throw .checksum }
        let tag = packet.bigEndianUInt32(at: 4)
        var walk = ChunkWalk()
        guard let chunk = walk.next(in: packet) else { throw .length }
        guard phase != .ended else { throw .ended }
        try checkTag(tag, chunk)
        counters.packetsReceived &+= 1
        defer { chargeWork(at: now) }
        receiver.outstandingBytes = sender.chunks.heldBytes
        packetContents = PacketContents()
        switch chunk.type {
        case .initiation, .initiationAck, .shutdownComplete:
            guard walk.next(in: packet) == nil else { throw .handshake }
            try receiveLone(chunk, in: packet, at: now)
            return
        case .cookieEcho:
            guard takeControl(at: now) else { return }
            try receiveCookie(packet.extracting(chunk.body), tag: tag, at: now)
            // What follows is for the association that the cookie made, or repeated.
            guard tag == local.tag else { return }
        default:
            guard handle(chunk, in: packet, at: now) else { return endPacket(at: now) }
        }
        while phase != .ended, let chunk = walk.next(in: packet) {
            guard handle(chunk, in: packet, at: now) else { break }
        }
        if walk.isBroken { glitch(at: now) }
        endPacket(at: now)
    }

    /// The longest packet that a peer may send: what fits into a DTLS record over Ethernet.
    private static var packetBytesMax: Int { 1_500 }

    // Inlined, because a call of a function that only reads copies the association.
    @inline(__always)
    private func hasValidChecksum(_ packet: RawSpan, _ first: ChunkType) -> Bool {
        let field = packet.bigEndianUInt32(at: 8)
        // Without a checksum only if we said so, and never at the start (RFC 9653 §5.3).
        if field == 0, local.capabilities.contains(.zeroChecksum), first != .initiation, first != .cookieEcho {
            return true
        }
        return field == PacketLayout.checksum(packet)
    }

    @inline(__always)
    private func checkTag(_ tag: UInt32, _ first: ChunkRange) throws(SCTPDropReason) {
        let isRight: Bool
        switch first.type {
        case .initiation: isRight = tag == 0
        case .cookieEcho: isRight = true
        case .abort, .shutdownComplete:
            let isReflected = first.flags & reflectedTagFlag != 0
            isRight = isReflected ? peer.map { $0.tag == tag } ?? false : tag == local.tag
        default: isRight = tag == local.tag
        }
        guard isRight else { throw .tag }
    }

    private mutating func receiveLone(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) throws(SCTPDropReason) {
        guard takeControl(at: now) else { return }
        switch chunk.type {
        case .initiation: try receiveInitiation(packet.extracting(chunk.body), at: now)
        case .initiationAck: try receiveInitiationAck(packet.extracting(chunk.body), at: now)
        default: if phase == .shutdownAckSent { end(.shutDown) }
        }
    }

    private mutating func endPacket(at now: Instant) {
        guard phase != .ended else { return }
        if phase.receivesData { receiver.endPacket(at: now) }
        if phase == .established { beginResets(at: now) }
        if phase.isShuttingDown { continueShutdown(at: now) }
    }

    // MARK: - Chunks

    /// - Returns: whether to read on.
    private mutating func handle(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) -> Bool {
        work.add()
        switch chunk.type {
        case .data, .interleavedData: receiveData(chunk, in: packet, at: now)
        case .sack:
            // No sender has a reason for a second one.
            guard !packetContents.hasAck else {
                glitch(at: now)
                break
            }
            packetContents.hasAck = true
            receiveAck(chunk, in: packet, at: now)
        case .forwardTSN, .interleavedForwardTSN:
            guard !packetContents.hasForward else {
                glitch(at: now)
                break
            }
            packetContents.hasForward = true
            receiveForward(chunk, in: packet, at: now)
        case .cookieAck: receiveCookieAck(at: now)
        case .abort: receiveAbort(chunk, in: packet)
        case .heartbeatAck, .padding: break
        case .initiation, .initiationAck, .cookieEcho, .shutdownComplete: glitch(at: now)
        default:
            guard takeControl(at: now) else { return false }
            return handleControl(chunk, in: packet, at: now)
        }
        return phase != .ended
    }

    private mutating func handleControl(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) -> Bool {
        switch chunk.type {
        case .heartbeat:
            guard phase.receivesData || phase.isShuttingDown else { break }
            queueControl(.chunk(.heartbeatAck, packet.extracting(chunk.body).array()))
        case .reconfiguration: receiveReconfiguration(packet.extracting(chunk.body), at: now)
        case .error: receiveError(packet.extracting(chunk.body))
        case .shutdown: receiveShutdown(chunk, in: packet, at: now)
        case .shutdownAck: receiveShutdownAck(at: now)
        default:
            glitch(at: now)
            if chunk.type.isReportedWhenUnknown, phase.receivesData {
                let report = packet.extracting(chunk.whole).array().prefix(Self.reportBytesMax)
                queueControl(.errorChunk(.error, .unknownChunk, Array(report)))
            }
            return phase != .ended && !chunk.type.stopsWhenUnknown
        }
        return phase != .ended
    }

    /// The most bytes of an unknown chunk that are sent back.
    private static var reportBytesMax: Int { 64 }

    private mutating func receiveData(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) {
        guard phase.receivesData else { return }
        guard (chunk.type == .interleavedData) == isInterleaved else { return fail(.wrongDataKind) }
        guard let data = DataChunk(chunk, in: packet) else { return glitch(at: now) }
        guard !data.payload.isEmpty else { return fail(.emptyData) }
        let tsn = receiver.numbers.extend(data.tsn)
        guard !resets.holds(data.stream, tsn) else {
            counters.refusedChunks &+= 1
            return
        }
        guard data.stream.rawValue < local.incomingStreams, receiver.reassembly.accepts(data.stream) else {
            var value: [UInt8] = []
            value.append(bigEndian: data.stream.rawValue)
            value.append(bigEndian: UInt16(0))
            queueControl(.errorChunk(.error, .invalidStream, value))
            return glitch(at: now)
        }
        do {
            switch try receiver.receive(data, in: packet, at: now, &work) {
            case .accepted: performDeferredReset()
            case .duplicate: counters.duplicates &+= 1
            case .dropped: counters.refusedChunks &+= 1
            }
        } catch { fail(error) }
    }

    private mutating func receiveAck(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) {
        guard phase.sendsData || phase == .shutdownSent else { return }
        guard let sack = Acknowledgement(chunk, in: packet) else { return glitch(at: now) }
        if sack.hasBrokenGap { glitch(at: now) }
        guard phase != .ended else { return }
        do { try sender.acknowledged(sack, at: now, &work) } catch { fail(error) }
    }

    private mutating func receiveForward(_ chunk: ChunkRange, in packet: RawSpan, at now: Instant) {
        guard phase.receivesData else { return }
        guard agreed.contains(.partialReliability), (chunk.type == .interleavedForwardTSN) == isInterleaved else {
            return fail(.wrongDataKind)
        }
        guard let numbers = ForwardedNumbers(chunk, in: packet) else { return glitch(at: now) }
        do {
            if try receiver.forward(numbers, &work) {
                performDeferredReset()
            } else {
                _ = takeControl(at: now)
            }
        } catch { fail(error) }
    }

    private mutating func receiveAbort(_ chunk: ChunkRange, in packet: RawSpan) {
        let body = packet.extracting(chunk.body)
        end(.abortedByPeer(cause: body.byteCount >= 4 ? body.bigEndianUInt16(at: 0) : 0))
    }

    /// Only a stale cookie asks for something: another start (RFC 9260 §5.2.6).
    private mutating func receiveError(_ body: RawSpan) {
        guard phase == .cookieEchoed, body.byteCount >= 4,
            body.bigEndianUInt16(at: 0) == ErrorCause.staleCookie.rawValue
        else { return }
        phase = .cookieWait
        cookie = []
        isStepDue = true
    }

    // MARK: - Bounds

    /// What a packet has had so far of the chunks that it may have once.
    struct PacketContents: Sendable {
        var hasAck = false
        var hasForward = false
    }

    /// Something that a working peer does not send, but that has no effect.
    mutating func glitch(at now: Instant) {
        counters.glitches &+= 1
        if !glitchBucket.take(at: now) { fail(.flood) }
    }

    /// - Returns: `false` when the association ended because of too many chunks of control.
    mutating func takeControl(at now: Instant) -> Bool {
        if controlBucket.take(at: now) { return true }
        fail(.flood)
        return false
    }

    /// Adds a chunk to the next packet, if there is room: answers never take more than one packet.
    mutating func queueControl(_ chunk: [UInt8]) {
        guard control.count + chunk.count <= Self.controlBytesMax else { return }
        control += chunk
    }

    /// With a header, a SACK, a FORWARD-TSN and the request of a reset there is room in a packet.
    static var controlBytesMax: Int { 1_100 }

    mutating func queueLone(_ chunk: LoneChunk) {
        // The newest counts: a peer that starts anew has forgotten the one before.
        if lone.count >= 4 { lone.removeFirst() }
        lone.append(chunk)
    }
}
