import Base

/// The receiving half of an association: which numbers arrived, what is put together, and what the owner has not taken yet.
struct Receiver: Sendable {
    /// The most chunks held, whatever their size.
    private static let chunksMax = 2_048
    /// How long a full window may wait for a chunk that completes something.
    private static let stuckMax = Interval.seconds(10)

    let windowBytes: Int
    /// The part of the window that data which the peer has not acknowledged takes, at most half of it.
    var outstandingBytes = 0
    /// Whether parts of messages are held and none gets on.
    private(set) var progress = ProgressTimer()
    private var progressedTo: Int64
    private(set) var numbers: ReceivedNumbers
    private(set) var reassembly: Reassembly
    /// Messages, and what else the owner is told, in order.
    private var ready = Queue<AssociationEvent>()
    private var readyBytes = 0
    /// The owner has not taken the last reset of the peer's streams. Another one waits with the peer, so that lists of streams fill no
    /// memory.
    private(set) var isResetWaiting = false
    /// What the last SACK announced.
    private var announced: Int
    private var fullSince: Instant?
    private var hasData = false
    private var isImmediate = false

    init(firstTSN: UInt32, windowBytes: Int, messageBytesMax: Int, isInterleaved: Bool) {
        self.windowBytes = windowBytes
        announced = windowBytes
        numbers = ReceivedNumbers(firstTSN: firstTSN)
        progressedTo = numbers.cumulative
        reassembly = Reassembly(messageBytesMax: messageBytesMax)
        reassembly.isInterleaved = isInterleaved
    }

    /// All memory that the peer's data takes.
    var chargedBytes: Int { reassembly.heldBytes + readyBytes }
    /// An eighth of the window is kept back for what parts of messages wait for.
    private var bytesMax: Int { (windowBytes - outstandingBytes) / 8 * 7 }
    /// The most with what parts of messages wait for. The longest message has room in any window.
    private var bytesWithGapsMax: Int { max(windowBytes - outstandingBytes, 2 * reassembly.messageBytesMax) }
    /// A tenth is kept back for the overhead of chunks.
    private var room: Int { max(bytesMax - chargedBytes, 0) / 10 * 9 }

    enum Outcome: Hashable {
        case accepted, duplicate
        /// Not acknowledged: too far ahead, or no room.
        case dropped
    }

    mutating func receive(
        _ chunk: DataChunk,
        in packet: RawSpan,
        at now: Instant,
        _ work: inout WorkMeter
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
        guard try hasRoom(for: chunk.payload.count, tsn, at: now, &work) else {
            numbers.demand()
            return .dropped
        }
        let payload = packet.extracting(chunk.payload).array()
        let before = ready.count
        try reassembly.insert(chunk, tsn: tsn, payload: payload, into: &ready, &work)
        numbers.insert(tsn, &work)
        charge(from: before)
        return .accepted
    }

    private mutating func hasRoom(
        for bytes: Int,
        _ tsn: Int64,
        at now: Instant,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) -> Bool {
        let cost = bytes + Reassembly.chunkOverhead
        let isFull =
            chargedBytes + cost > bytesMax
            || reassembly.heldChunks >= Self.chunksMax
        guard isFull else {
            fullSince = nil
            return true
        }
        // What parts of messages wait for is taken, within limits, or the window would never open again.
        if reassembly.heldBytes > 0, chargedBytes + cost <= bytesWithGapsMax,
            reassembly.heldChunks < 2 * Self.chunksMax, numbers.fillsLowestGap(tsn, &work)
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
    mutating func forward(_ numbers: ForwardedNumbers, _ work: inout WorkMeter) throws(ProtocolViolation) -> Bool {
        let tsn = self.numbers.extend(numbers.tsn)
        guard tsn <= self.numbers.cumulative + ReceivedNumbers.aheadMax else { throw .forwardTooFar }
        let isNews = tsn > self.numbers.cumulative
        self.numbers.forward(to: tsn, &work)
        guard isNews else { return false }
        let before = ready.count
        reassembly.forward(to: tsn, numbers, into: &ready, &work)
        charge(from: before)
        return true
    }

    /// The streams, or all, start again.
    mutating func reset(_ streams: Set<StreamID>?, _ work: inout WorkMeter) {
        reassembly.reset(streams, &work)
        ready.append(.incomingReset(streams?.sorted()))
        isResetWaiting = true
    }

    /// A packet was read.
    mutating func endPacket(at now: Instant) {
        updateProgress(at: now)
        guard hasData else { return }
        let isLow = announced >= Self.lowBytes && room < Self.lowBytes
        numbers.endPacket(isImmediate: isImmediate || isLow, at: now)
        hasData = false
        isImmediate = false
    }

    /// What waits for the owner waits for nothing that the peer could do.
    private mutating func updateProgress(at now: Instant) {
        let hasProgressed = numbers.cumulative > progressedTo || !ready.isEmpty
        progressedTo = numbers.cumulative
        progress.update(isHolding: reassembly.heldBytes > 0, hasProgressed: hasProgressed, at: now)
    }

    private static let lowBytes = 2 * PacketLayout.bytesMax

    /// Adds what the owner is told after all messages so far.
    mutating func append(_ event: AssociationEvent) { ready.append(event) }

    /// Frees what is not whole, and unless `keepsMessages` also the messages that the owner has not taken.
    mutating func end(keepsMessages: Bool) {
        reassembly.removeAll()
        progress = ProgressTimer()
        guard !keepsMessages else { return }
        var events = Queue<AssociationEvent>()
        while let event = ready.removeFirst() {
            if case .message = event { continue }
            events.append(event)
        }
        ready = events
        readyBytes = 0
    }

    /// The next event; a message leaves the window.
    mutating func next() -> AssociationEvent? {
        guard let event = ready.removeFirst() else { return nil }
        guard case .message(let message) = event else {
            if case .incomingReset = event { isResetWaiting = false }
            return event
        }
        readyBytes -= message.bytes.count + Reassembly.chunkOverhead
        if announced < Self.lowBytes, room >= Self.lowBytes { numbers.demand() }
        return event
    }

    mutating func demandAck() { numbers.demand() }

    /// - Returns: `false` when nothing has moved on for too long.
    mutating func handleTimeout(at now: Instant) -> Bool {
        numbers.handleTimeout(at: now)
        guard progress.hasExpired(at: now) else { return true }
        updateProgress(at: now)
        return !progress.hasExpired(at: now)
    }

    mutating func takeAck(_ work: inout WorkMeter) -> Acknowledgement {
        announced = room
        return numbers.take(window: announced, &work)
    }
}
