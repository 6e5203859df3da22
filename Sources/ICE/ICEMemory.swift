import Wire

/// The pairs on which an authenticated check arrived, the least recently used forgotten first.
struct ICEValidatedPaths: Sendable {
    /// A client has a few addresses, each seen through one or two NATs.
    static let pathsMax = 8

    private struct Entry: Sendable {
        let path: NetworkPath
        var generation: Int
        var heardAt: Instant
    }
    /// The most recently used first.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    func contains(_ path: NetworkPath) -> Bool { entries.contains { $0.path == path } }

    /// When the last new check came over `path`; `nil` for a pair that is not known.
    func lastHeard(on path: NetworkPath) -> Instant? { entries.first { $0.path == path }?.heardAt }

    /// Notes a check.
    /// - Parameter selected: never forgotten.
    /// - Returns: whether another pair had to be forgotten.
    mutating func use(
        _ path: NetworkPath,
        generation: Int,
        keeping selected: NetworkPath?,
        at now: Instant
    ) -> Bool {
        if let index = entries.firstIndex(where: { $0.path == path }) {
            var entry = entries.remove(at: index)
            entry.generation = max(entry.generation, generation)
            entry.heardAt = now
            entries.insert(entry, at: 0)
            return false
        }
        entries.insert(Entry(path: path, generation: generation, heardAt: now), at: 0)
        guard entries.count > Self.pathsMax else { return false }
        if let victim = entries.lastIndex(where: { $0.path != selected }) { entries.remove(at: victim) }
        return true
    }

    /// Forgets what only earlier credentials validated.
    mutating func removeAll(before generation: Int) { entries.removeAll { $0.generation < generation } }

    mutating func removeAll() { entries.removeAll() }
}

/// The requests seen, so that a copy that comes late or from elsewhere changes nothing.
///
/// MESSAGE-INTEGRITY does not cover the sender's address: without this, whoever sees a check could send a copy of it
/// from another address, or send it again to extend consent.
struct ICERecentRequests: Sendable {
    /// Requests that are answered again when they are retransmitted over the same pair: over 15 s of the checks that a
    /// browser with a handful of pairs sends.
    static let requestsMax = 64
    /// Older requests that are still recognised, 4 bytes each: the checks of about twenty minutes. A copy of one that is
    /// older than these passes for a new check, which selects no pair but can extend the consent of the pair that it
    /// comes over.
    static let olderRequestsMax = 512

    enum Novelty: Sendable {
        case first, repeated, repeatedElsewhere
        /// Seen too long ago for a retransmission.
        case replayed
    }

    private struct Entry: Sendable {
        let id: STUNTransactionID
        let path: NetworkPath
    }
    private var entries: [Entry] = []
    private var oldest = 0
    /// 32 bits of each older identifier. One new check in a million passes for an old one and is lost.
    private var older: ContiguousArray<UInt32> = []
    private var oldestOlder = 0

    mutating func note(_ id: STUNTransactionID, on path: NetworkPath) -> Novelty {
        if let known = entries.first(where: { $0.id == id }) {
            return known.path == path ? .repeated : .repeatedElsewhere
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
        return .first
    }

    private mutating func remember(_ id: STUNTransactionID) {
        if older.count < Self.olderRequestsMax {
            older.append(Self.digest(of: id))
        } else {
            older[oldestOlder] = Self.digest(of: id)
            oldestOlder = (oldestOlder + 1) % Self.olderRequestsMax
        }
    }

    /// Identifiers are random, so any of their bits will do; tests count them up from one.
    private static func digest(of id: STUNTransactionID) -> UInt32 {
        UInt32(truncatingIfNeeded: id.low ^ id.low >> 32) ^ id.high
    }
}
