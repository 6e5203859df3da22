internal import Wire

/// The receiving half of an association: which numbers arrived, what is put together, and what the owner has not taken yet.
struct Receiver: Sendable {
    /// The most chunks held, whatever their size.
    private static let chunksMax = 2_048
    /// How long a full window may wait for a chunk that completes something.
    private static let stuckMax = Interval.seconds(10)

    let windowBytes: Int
    private(set) var numbers: ReceivedNumbers
    private(set) var reassembly: Reassembly
    /// Messages, and what else the owner is told, in order.
    private var ready = Queue<AssociationEvent>()
    private var readyBytes = 0
    /// What the last SACK announced.
    private var announced: Int
    private var fullSince: Instant?
    private var hasData = false
    private var isImmediate = false

    init(firstTSN: UInt32, windowBytes: Int, messageBytesMax: Int, isInterleaved: Bool) {
        self.windowBytes = windowBytes
        announced = windowBytes
        numbers = ReceivedNumbers(firstTSN: firstTSN)
        reassembly = Reassembly(messageBytesMax: messageBytesMax)
        reassembly.isInterleaved = isInterleaved
    }

    /// All memory that the peer's data takes.
    var chargedBytes: Int { reassembly.heldBytes + readyBytes }
    /// A tenth is kept back for the overhead of chunks.
    private var room: Int { max(windowBytes - chargedBytes, 0) / 10 * 9 }

    enum Outcome: Hashable {
        case accepted, duplicate
        /// Not acknowledged: too far ahead, or no room.
        case dropped
    }

    mutating func receive(
        _ chunk: DataChunk,
        in packet: RawSpan,
        at now: Instant
    ) throws(ProtocolViolation) -> Outcome {
        hasData = true
        if chunk.flags.contains(.immediate) { isImmediate = true }
        let tsn = numbers.extend(chunk.tsn)
        switch numbers.classify(tsn) {
        case .duplicate:
            numbers.duplicated(tsn)
            return .duplicate
        case .tooFar: return .dropped
        case .new: break
        }
        guard try hasRoom(for: chunk.payload.count, tsn, at: now) else {
            numbers.demand()
            return .dropped
        }
        let payload = packet.extracting(chunk.payload).array()
        let before = ready.count
        try reassembly.insert(chunk, tsn: tsn, payload: payload, into: &ready)
        numbers.insert(tsn)
        charge(from: before)
        return .accepted
    }

    private mutating func hasRoom(for bytes: Int, _ tsn: Int64, at now: Instant) throws(ProtocolViolation) -> Bool {
        let isFull =
            chargedBytes + bytes + Reassembly.chunkOverhead > windowBytes
            || reassembly.heldChunks >= Self.chunksMax
        guard isFull else {
            fullSince = nil
            return true
        }
        // What parts of messages wait for is taken, within limits, or the window would never open again.
        if reassembly.heldBytes > 0, numbers.fillsLowestGap(tsn),
            chargedBytes <= windowBytes + reassembly.messageBytesMax,
            reassembly.heldChunks < 2 * Self.chunksMax
        {
            return true
        }
        let since = fullSince ?? now
        fullSince = since
        if ready.isEmpty, now - since > Self.stuckMax { throw .windowStuck }
        return false
    }

    private mutating func charge(from index: Int) {
        for place in index..<ready.count {
            guard case .message(let message) = ready[place] else { continue }
            readyBytes += message.bytes.count + Reassembly.chunkOverhead
        }
    }

    /// The sender gave up numbers.
    mutating func forward(_ numbers: ForwardedNumbers) throws(ProtocolViolation) -> Bool {
        let tsn = self.numbers.extend(numbers.tsn)
        guard tsn <= self.numbers.cumulative + ReceivedNumbers.aheadMax else { throw .forwardTooFar }
        let isNews = tsn > self.numbers.cumulative
        self.numbers.forward(to: tsn)
        guard isNews else { return false }
        let before = ready.count
        reassembly.forward(to: tsn, numbers, into: &ready)
        charge(from: before)
        return true
    }

    /// The streams, or all, start again.
    mutating func reset(_ streams: [StreamID]?) {
        reassembly.reset(streams)
        ready.append(.incomingReset(streams))
    }

    /// A packet was read.
    mutating func endPacket(at now: Instant) {
        guard hasData else { return }
        let isLow = announced >= Self.lowBytes && room < Self.lowBytes
        numbers.endPacket(isImmediate: isImmediate || isLow, at: now)
        hasData = false
        isImmediate = false
    }

    private static let lowBytes = 2 * PacketLayout.bytesMax

    /// Adds what the owner is told after all messages so far.
    mutating func append(_ event: AssociationEvent) { ready.append(event) }

    /// The next event; a message leaves the window.
    mutating func next() -> AssociationEvent? {
        guard let event = ready.removeFirst() else { return nil }
        guard case .message(let message) = event else { return event }
        readyBytes -= message.bytes.count + Reassembly.chunkOverhead
        if announced < Self.lowBytes, room >= Self.lowBytes { numbers.demand() }
        return event
    }

    mutating func demandAck() { numbers.demand() }
    mutating func handleTimeout(at now: Instant) { numbers.handleTimeout(at: now) }

    mutating func takeAck() -> Acknowledgement {
        announced = room
        return numbers.take(window: announced)
    }
}
