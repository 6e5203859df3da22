/// What is to be done for participants at given seconds of the monotonic clock.
struct Agenda: Sendable {
    private var pages: [Int64: Roster] = [:]
    /// Nothing is entered for an earlier second.
    private var next: Int64 = .min

    var isEmpty: Bool { pages.isEmpty }

    /// Returns the second that it is entered for: `second`, or the next one that is not over.
    mutating func enter(_ id: ParticipantID, order: UInt64, at second: Int64) -> Int64 {
        let second = max(second, next)
        pages[second, default: Roster()].insert(id, order: order)
        return second
    }

    /// Takes an entry back.
    mutating func cancel(order: UInt64, at second: Int64) {
        pages[second]?.remove(order: order)
        if pages[second]?.isEmpty == true { pages[second] = nil }
    }

    /// Takes out all that is due, the earliest first.
    mutating func due(through second: Int64) -> [ParticipantID] {
        guard second >= next else { return [] }
        // Time goes on by about a second from one look to the next; after a longer gap the pages are fewer than the
        // seconds.
        let isNear = next != .min && second - next < 60
        let seconds = isNear ? Array(next...second) : pages.keys.filter { $0 <= second }.sorted()
        next = second + 1
        return seconds.flatMap { pages.removeValue(forKey: $0) ?? Roster() }
    }
}
