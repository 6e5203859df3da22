import Base
import Wire

/// The pairs on which an authenticated check arrived. The least recently used one is evicted first.
struct ICEValidatedPaths: Sendable {
    /// Enough for a client with a few addresses behind one or two NATs each.
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

    /// When the last new check arrived over `path`; `nil` for an unknown pair.
    func lastHeard(on path: NetworkPath) -> Instant? { entries.first { $0.path == path }?.heardAt }

    /// Records a check.
    /// - Parameter selected: the pair that is never evicted.
    /// - Returns: whether another pair was evicted.
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

    /// Removes the pairs that only earlier credentials validated.
    mutating func removeAll(before generation: Int) { entries.removeAll { $0.generation < generation } }

    mutating func removeAll() { entries.removeAll() }
}
