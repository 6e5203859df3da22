import Wire

/// The transaction identifiers of recent requests, for replay protection.
///
/// MESSAGE-INTEGRITY does not cover the source address: without this, an observer of a check could send a copy of it
/// from another address, or replay it to extend consent.
struct ICERecentRequests: Sendable {
    /// Requests whose retransmissions are answered: more than 15 s of the checks that a browser with a few pairs sends.
    static let requestsMax = 64
    /// Older requests that are still recognized, 4 bytes each: about twenty minutes of checks. A replay of an even
    /// older one passes as a new check. It cannot select a pair, but it can extend the consent of the pair that it
    /// arrives on.
    static let olderRequestsMax = 512

    enum Classification: Sendable {
        case new, retransmission, fromAnotherPath
        /// Seen before, too long ago for a retransmission.
        case replayed
    }

    private struct Entry: Sendable {
        let id: STUNTransactionID
        let path: NetworkPath
    }
    private var entries: [Entry] = []
    private var oldest = 0
    /// A 32-bit digest of each older identifier. About one new check in 8 million collides with an old one and is
    /// dropped.
    private var older: ContiguousArray<UInt32> = []
    private var oldestOlder = 0

    mutating func classify(_ id: STUNTransactionID, on path: NetworkPath) -> Classification {
        if let known = entries.first(where: { $0.id == id }) {
            return known.path == path ? .retransmission : .fromAnotherPath
        }
        if older.contains(Self.digest(of: id)) { return .replayed }
        let entry = Entry(id: id, path: path)
        if entries.count < Self.requestsMax {
            entries.append(entry)
        } else {
            remember(entries[oldest].id)
            entries[oldest] = entry
            oldest = (oldest + 1) % Self.requestsMax
        }
        return .new
    }

    private mutating func remember(_ id: STUNTransactionID) {
        if older.count < Self.olderRequestsMax {
            older.append(Self.digest(of: id))
        } else {
            older[oldestOlder] = Self.digest(of: id)
            oldestOlder = (oldestOlder + 1) % Self.olderRequestsMax
        }
    }

    /// Transaction identifiers are random, so an XOR of their bits is enough.
    private static func digest(of id: STUNTransactionID) -> UInt32 {
        UInt32(truncatingIfNeeded: id.low ^ id.low >> 32) ^ id.high
    }
}
