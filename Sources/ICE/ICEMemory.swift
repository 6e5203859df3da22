import Wire

/// The pairs on which an authenticated check arrived, the least recently used forgotten first.
struct ICEValidatedPaths: Sendable {
    /// A client has a few addresses, each seen through one or two NATs.
    static let pathsMax = 8

    private struct Entry: Sendable {
        let path: NetworkPath
        var generation: Int
    }
    /// The most recently used first.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    func contains(_ path: NetworkPath) -> Bool { entries.contains { $0.path == path } }

    /// Notes a check.
    /// - Parameter selected: never forgotten.
    /// - Returns: whether another pair had to be forgotten.
    mutating func use(_ path: NetworkPath, generation: Int, keeping selected: NetworkPath?) -> Bool {
        if let index = entries.firstIndex(where: { $0.path == path }) {
            var entry = entries.remove(at: index)
            entry.generation = max(entry.generation, generation)
            entries.insert(entry, at: 0)
            return false
        }
        entries.insert(Entry(path: path, generation: generation), at: 0)
        guard entries.count > Self.pathsMax else { return false }
        if let victim = entries.lastIndex(where: { $0.path != selected }) { entries.remove(at: victim) }
        return true
    }

    /// Forgets what only earlier credentials validated.
    mutating func removeAll(before generation: Int) { entries.removeAll { $0.generation < generation } }

    mutating func removeAll() { entries.removeAll() }
}

/// The requests seen last, so that a copy that comes late or from elsewhere moves nothing.
///
/// MESSAGE-INTEGRITY does not cover the sender's address: without this, whoever sees a nominating check could send
/// a copy of it from an address of their own and have the media follow.
struct ICERecentRequests: Sendable {
    /// Over 15 s of the checks that a browser with a handful of pairs sends.
    static let requestsMax = 64

    enum Novelty: Sendable { case first, repeated, repeatedElsewhere }

    private struct Entry: Sendable {
        let id: STUNTransactionID
        let path: NetworkPath
    }
    private var entries: [Entry] = []
    private var oldest = 0

    mutating func note(_ id: STUNTransactionID, on path: NetworkPath) -> Novelty {
        if let known = entries.first(where: { $0.id == id }) {
            return known.path == path ? .repeated : .repeatedElsewhere
        }
        let entry = Entry(id: id, path: path)
        if entries.count < Self.requestsMax {
            entries.append(entry)
        } else {
            entries[oldest] = entry
            oldest = (oldest + 1) % Self.requestsMax
        }
        return .first
    }
}
