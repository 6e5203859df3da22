import Base
import Wire

/// The checks that a lite agent sends itself: to verify a pair, and to renew consent for the selected one (RFC 7675).
///
/// Each identifier is derived from a secret and from a number that is used once. So only a receiver of a check can answer it.
/// A client that was at an address, and left it, knows none of the identifiers that are sent there afterwards. A check is
/// answered once.
struct ICEPathChecks: Sendable {
    /// Checks that can be answered at a time; a further one takes the place of the oldest. Those for consent are a
    /// quarter of a second apart or more, those for verification half a second.
    static let outstandingMax = 16
    /// Within this time another check to verify the same pair is a retransmission (RFC 8489 §6.2.1), so that a peer that
    /// nominates at a high rate does not crowd out a check whose answer is on its way.
    static let retransmissionTime = Interval.milliseconds(500)

    struct Check: Sendable {
        let id: STUNTransactionID
        let path: NetworkPath
        /// The key of the response: the peer's password in the credentials of the check.
        let key: [UInt8]
        /// The check left no earlier, so an answer proves that the peer receives on the pair at this instant or later.
        let sentAt: Instant
    }

    private let secret: UInt64
    private var lastNumber: UInt64 = 0
    /// The oldest first.
    private(set) var outstanding: [Check] = []

    /// - Parameter secret: a secret random number.
    init(secret: UInt64) { self.secret = secret }

    /// Starts a check.
    /// - Parameter key: the key of the response.
    mutating func start(over path: NetworkPath, key: [UInt8], at now: Instant) -> STUNTransactionID {
        lastNumber &+= 1
        let id = makeID(of: path, number: lastNumber)
        if outstanding.count >= Self.outstandingMax { outstanding.removeFirst() }
        outstanding.append(Check(id: id, path: path, key: key, sentAt: now))
        return id
    }

    /// Starts a check that is to verify a pair, or repeats the last one with the same credentials: a check for consent may have
    /// left just before with those before an ICE restart.
    mutating func verify(_ path: NetworkPath, key: [UInt8], at now: Instant) -> STUNTransactionID {
        let last = outstanding.last { $0.path == path && $0.key == key }
        if let last, now - last.sentAt < Self.retransmissionTime { return last.id }
        return start(over: path, key: key, at: now)
    }

    /// The check that a response over `path` answers; `nil` when there is none, or it is older than consent lasts.
    func check(_ id: STUNTransactionID, over path: NetworkPath, at now: Instant) -> Check? {
        outstanding.first { $0.id == id && $0.path == path && now - $0.sentAt < ICEPhase.consentTimeout }
    }

    /// Forgets a check that was answered.
    mutating func remove(_ id: STUNTransactionID) { outstanding.removeAll { $0.id == id } }

    /// Forgets all checks: what is answered from now on must have been sent from now on.
    mutating func removeAll() { outstanding.removeAll() }

    /// 96 bits that only a receiver on that pair can learn.
    private func makeID(of path: NetworkPath, number: UInt64) -> STUNTransactionID {
        var text: [UInt8] = []
        text.reserveCapacity(28)
        text.append(bigEndian: path.remote.ip.high)
        text.append(bigEndian: path.remote.ip.low)
        text.append(bigEndian: path.remote.port)
        text.append(bigEndian: path.local.rawValue)
        text.append(bigEndian: number)
        var key: [UInt8] = []
        key.reserveCapacity(8)
        key.append(bigEndian: secret)
        var code = HMACSHA1(key: unsafe key.span.bytes)
        code.update(unsafe text.span.bytes)
        let digest = code.finalize()
        let high = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(digest[$1]) }
        let low = (4..<12).reduce(UInt64(0)) { $0 << 8 | UInt64(digest[$1]) }
        return STUNTransactionID(high: high, low: low)
    }
}
