import Base
import Wire

/// The queue before a viewer's bottleneck.
final class LinkLog {
    private struct Entry {
        let at: Instant
        let bytes: Int
        /// `nil` for a packet that the full queue dropped.
        let wait: Interval?
    }

    private var entries: [Entry] = []
    private let host: TransportAddress

    init(_ host: TransportAddress) { self.host = host }

    /// Looks at the datagrams of a world toward the viewers of some logs.
    static func attach(_ logs: [LinkLog], to world: World) {
        let byHost = Dictionary(uniqueKeysWithValues: logs.map { ($0.host, $0) })
        world.network.onBottleneck = { [unowned world] host, isInbound, bytes, wait in
            if isInbound { byHost[host]?.entries.append(Entry(at: world.now, bytes: bytes, wait: wait)) }
        }
    }

    private func entries(_ start: Instant, _ end: Instant, without pauses: [Range<Instant>]) -> [Entry] {
        entries.filter { entry in
            entry.at >= start && entry.at < end && !pauses.contains { $0.contains(entry.at) }
        }
    }

    /// The 95th percentile of the waits, in ms.
    func queue95(from start: Instant, until end: Instant, without pauses: [Range<Instant>] = []) -> Double {
        let waits = entries(start, end, without: pauses).map { $0.wait.map(\.seconds) ?? 10 }.sorted()
        return waits.isEmpty ? 0 : 1_000 * waits[min(waits.count * 95 / 100, waits.count - 1)]
    }

    /// The longest wait, in ms.
    func queueMax(from start: Instant, until end: Instant) -> Double {
        1_000 * (entries(start, end, without: []).compactMap { $0.wait?.seconds }.max() ?? 0)
    }

    /// The seconds from an instant until no packet waits for 50 ms for a second.
    func drainTime(from start: Instant) -> Double {
        var last = start
        for entry in entries where entry.at > start {
            if entry.at - last > .seconds(1) { break }
            if entry.wait.map({ $0 >= .milliseconds(50) }) ?? true { last = entry.at }
        }
        return (last - start).seconds
    }

    /// The share of packets that the full queue dropped, in %.
    func lossPercent(from start: Instant, until end: Instant, without pauses: [Range<Instant>] = []) -> Double {
        let seen = entries(start, end, without: pauses)
        return seen.isEmpty ? 0 : 100 * Double(seen.count { $0.wait == nil }) / Double(seen.count)
    }

    /// The bits that passed the link in a second.
    func passedRate(from start: Instant, until end: Instant) -> Double {
        let passed = entries(start, end, without: []).reduce(0) { $0 + ($1.wait == nil ? 0 : $1.bytes) }
        return 8 * Double(passed) / (end - start).seconds
    }

    /// The bytes that passed the link, in % of what it would have carried.
    func usedPercent(of rate: Int, from start: Instant, until end: Instant) -> Double {
        100 * passedRate(from: start, until: end) / Double(rate)
    }

    func bytes(from start: Instant, until end: Instant) -> Int {
        entries(start, end, without: []).reduce(0) { $0 + $1.bytes }
    }
}
