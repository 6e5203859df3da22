import Wire

/// One pair as the controlling side sees it: the checks sent on it and what came of them.
struct ICECheck: Sendable {
    enum State: Sendable {
        /// The first check is due then.
        case waiting(Instant)
        case inProgress(STUNTransactionID, attempts: Int, sentAt: Instant)
        /// A check succeeded and none is under way.
        case valid
        /// Another pair was selected before this one answered.
        case idle
    }

    /// The first retransmission's delay (RFC 8445 §14.3 asks for 500 ms or more; most paths answer in under 200 ms).
    static let retransmissionInitial = Interval.milliseconds(250)
    static let retransmissionMax = Interval.seconds(2)
    /// Transmissions of a nomination, over 5.75 s, before the pair counts as lost.
    static let nominationAttemptsMax = 5

    let path: NetworkPath
    var state: State
    /// Whether a check on the pair ever succeeded with these credentials.
    var hasAnswered = false
    /// Whether the check carries USE-CANDIDATE.
    var isNominating = false

    init(path: NetworkPath, at start: Instant) {
        self.path = path
        state = .waiting(start)
    }

    var deadline: Instant? {
        switch state {
        case .waiting(let start): start
        case .inProgress(_, let attempts, let sentAt): sentAt + Self.retransmissionDelay(after: attempts)
        case .valid, .idle: nil
        }
    }

    var isValid: Bool {
        if case .valid = state { true } else { false }
    }

    /// Whether a response with this identifier is awaited.
    func awaits(_ id: STUNTransactionID) -> Bool {
        if case .inProgress(id, _, _) = state { true } else { false }
    }

    /// 250 ms, doubling to 2 s.
    static func retransmissionDelay(after attempts: Int) -> Interval {
        min(retransmissionInitial * (1 << min(max(attempts - 1, 0), 4)), retransmissionMax)
    }
}

/// Consent checks on the selected pair (RFC 7675 §5.1): not retransmitted, each a transaction of its own.
///
/// Deviation: while one is unanswered the next follows after a second rather than five, as browsers check a weak pair
/// more often. With five seconds, a link that loses a tenth ends about one call in six within an hour.
struct ICEConsentChecks: Sendable {
    /// Every 5 s, give or take a fifth.
    static let interval = Interval.seconds(5)
    /// After a check that has no answer yet.
    static let retryInterval = Interval.seconds(1)
    /// Eight seconds' worth: an answer takes no longer.
    static let outstandingMax = 8

    private var outstanding: [STUNTransactionID] = []
    private(set) var deadline: Instant?

    init() {}

    mutating func stop() {
        outstanding.removeAll()
        deadline = nil
    }

    /// The next check's identifier, if one is due.
    mutating func next(at now: Instant, using generator: inout ICEGenerator) -> STUNTransactionID? {
        guard let deadline, now >= deadline else { return nil }
        let id = STUNTransactionID(using: &generator)
        if outstanding.count == Self.outstandingMax { outstanding.removeFirst() }
        outstanding.append(id)
        self.deadline = now + Self.retryInterval
        return id
    }

    func awaits(_ id: STUNTransactionID) -> Bool { outstanding.contains(id) }

    /// One of them was answered, or the pair was just selected.
    mutating func finish(at now: Instant, using generator: inout ICEGenerator) {
        outstanding.removeAll()
        schedule(at: now, using: &generator)
    }

    private mutating func schedule(at now: Instant, using generator: inout ICEGenerator) {
        let nanoseconds = Self.interval.nanoseconds
        let jittered = Int64.random(in: nanoseconds * 4 / 5...nanoseconds * 6 / 5, using: &generator)
        deadline = now + Interval(nanoseconds: jittered)
    }
}

/// SplitMix64, seeded from the generator that the caller hands in, so that an agent is a plain value and its run
/// repeatable. Identifiers need only be unique: the password is what authenticates.
struct ICEGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
