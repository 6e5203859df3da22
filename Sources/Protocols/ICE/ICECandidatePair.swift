import Base
import Wire

/// A candidate pair in the checklist of the controlling agent (RFC 8445 §6.1.2), with the state of its check.
struct ICECandidatePair: Sendable {
    enum State: Sendable {
        /// The instant when the first check is due.
        case waiting(Instant)
        case inProgress(STUNTransactionID, attempts: Int, sentAt: Instant)
        /// A check succeeded, and no other one is in progress.
        case succeeded
        /// Another pair was selected before this one answered; no checks are sent.
        case idle
    }

    /// Deviation: RFC 8445 §14.3 requires 500 ms or more. Most paths answer in under 200 ms.
    static let retransmissionInitial = Interval.milliseconds(250)
    static let retransmissionMax = Interval.seconds(2)
    /// Transmissions of a nominating check, over 5.75 s, before the nomination is abandoned.
    static let nominationAttemptsMax = 5

    let path: NetworkPath
    var state: State
    /// Whether a check on the pair ever succeeded with the current credentials.
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
        case .succeeded, .idle: nil
        }
    }

    var hasSucceeded: Bool {
        if case .succeeded = state { true } else { false }
    }

    /// Whether the pair's check in progress has this transaction identifier.
    func awaits(_ id: STUNTransactionID) -> Bool {
        if case .inProgress(id, _, _) = state { true } else { false }
    }

    /// 250 ms, doubling to 2 s.
    static func retransmissionDelay(after attempts: Int) -> Interval {
        min(retransmissionInitial * (1 << min(max(attempts - 1, 0), 4)), retransmissionMax)
    }
}
