import Base

/// The lowest rate of the last half second: what the path is known to carry for that long.
struct ProvenRate: Sendable {
    static let window = Interval.milliseconds(500)
    private static let entriesMax = 8

    /// A rate, and until when it was in force; the last one still is.
    private struct Entry {
        var rate: Int
        var end: Instant
    }

    /// In the order of time, which is the order of rates.
    private var entries: [Entry] = []

    mutating func note(_ rate: Int, at now: Instant) {
        if let last = entries.indices.last { entries[last].end = now }
        while let last = entries.last, last.rate >= rate { entries.removeLast() }
        entries.append(Entry(rate: rate, end: now))
        while entries.count > 1, entries[0].end + Self.window <= now { entries.removeFirst() }
        // The lower one of two counts for both.
        if entries.count > Self.entriesMax {
            entries[0].end = entries[1].end
            entries.remove(at: 1)
        }
    }

    /// Of the last half second before the newest note.
    var rate: Int { entries.first?.rate ?? 0 }

    /// When the rate rises by time alone.
    var risesAt: Instant? { entries.count > 1 ? entries[0].end + Self.window : nil }
}
