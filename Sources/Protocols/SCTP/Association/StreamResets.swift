import Base

/// The requests of RE-CONFIG in both directions (RFC 6525 §5).
struct StreamResets: Sendable {
    // MARK: Ours

    /// Streams to reset once their queues are empty.
    private(set) var wanted: Set<StreamID> = []
    private(set) var request: (number: UInt32, lastTSN: Int64, streams: [StreamID])?
    private var nextNumber: UInt32
    /// When the request is sent (again).
    private(set) var deadline: Instant?

    // MARK: The peer's

    /// The number of the peer's next request.
    private var expected: UInt32
    private var lastResult = ReconfigurationResult.nothingToDo
    /// The peer's request that waits for data before it, or for the owner to take the one before.
    private(set) var deferred: (number: UInt32, lastTSN: Int64, streams: Set<StreamID>)?

    /// The numbers start at the first TSN of each direction (RFC 6525 §5.1.1).
    init(firstTSN: UInt32, peerFirstTSN: UInt32) {
        nextNumber = firstTSN
        expected = peerFirstTSN
    }

    mutating func want(_ stream: StreamID) { wanted.insert(stream) }

    /// Takes all wanted streams.
    mutating func takeWanted() -> [StreamID] {
        defer { wanted = [] }
        return wanted.sorted()
    }

    /// Makes the request for wanted streams that have nothing to send, unless one is on its way.
    mutating func begin(_ idle: [StreamID], lastTSN: Int64, at now: Instant) {
        guard request == nil else { return }
        let streams = Array(idle.prefix(ReconfigurationParameter.streamsMax))
        guard !streams.isEmpty else { return }
        wanted.subtract(streams)
        request = (nextNumber, lastTSN, streams)
        nextNumber &+= 1
        deadline = now
    }

    /// The request to send now.
    mutating func takeRequest(timeout: Interval, at now: Instant) -> ReconfigurationParameter? {
        guard let request, let due = deadline, due <= now else { return nil }
        deadline = now + timeout
        return .outgoingReset(
            request: request.number,
            response: expected &- 1,
            lastTSN: SerialNumber.raw(request.lastTSN),
            streams: request.streams
        )
    }

    enum Answer: Equatable {
        /// To another request, or not final.
        case nothing
        case done([StreamID])
        case refused([StreamID])
    }

    mutating func answered(_ number: UInt32, _ result: ReconfigurationResult) -> Answer {
        guard let request, request.number == number else { return .nothing }
        switch result {
        case .inProgress: return .nothing
        case .nothingToDo, .performed:
            self.request = nil
            deadline = nil
            return .done(request.streams)
        default:
            self.request = nil
            deadline = nil
            return .refused(request.streams)
        }
    }

    enum Order: Equatable {
        case answer(ReconfigurationResult)
        /// A request that was not seen before.
        case perform
    }

    /// - Parameter number: of a request of the peer.
    func check(_ number: UInt32) -> Order {
        if number == expected { return .perform }
        if number == expected &- 1 { return .answer(lastResult) }
        return .answer(.badSequenceNumber)
    }

    mutating func deferRequest(_ number: UInt32, lastTSN: Int64, _ streams: Set<StreamID>) {
        deferred = (number, lastTSN, streams)
    }

    mutating func finished(with result: ReconfigurationResult) {
        expected &+= 1
        lastResult = result
        deferred = nil
    }

    /// Whether data with this number belongs after a reset that waits. It is not accepted before.
    func holds(_ stream: StreamID, _ tsn: Int64) -> Bool {
        guard let deferred, tsn > deferred.lastTSN else { return false }
        return deferred.streams.isEmpty || deferred.streams.contains(stream)
    }
}
