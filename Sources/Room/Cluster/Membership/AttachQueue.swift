import Base
import ChannelTypes

/// The rooms of a node that the store may not know of, and when each is attached: spread over some seconds, so that all
/// nodes together do not flood a store that returned.
struct AttachQueue: Hashable, Sendable {
    /// The time over which the rooms are spread. With the heartbeat that finds out, the directory is whole in 10 s.
    static let spread = Interval.seconds(7)
    /// Channels are attached in batches, one in this time.
    static let batchInterval = Interval.milliseconds(100)

    /// In the reverse order of attaching; with rooms that ended and are not removed yet.
    private(set) var rooms: [ChannelName] = []
    private var queued: Set<ChannelName> = []
    private var nextBatch: Instant?
    private var batchCount = 1
    /// The rooms of the present batch that are not attached yet.
    private var batchRest = 1

    var count: Int { queued.count }
    var nextDeadline: Instant? { queued.isEmpty ? nil : nextBatch }

    /// Adds rooms at random places, because nodes that share rooms should not attach them in the same order. All that are
    /// queued then are spread from now on, but never slower than before: rooms whose attaching failed would hold up the rest.
    mutating func add(
        _ names: some Sequence<ChannelName>,
        using generator: inout some RandomNumberGenerator,
        at now: Instant
    ) {
        let (wasEmpty, before) = (queued.isEmpty, batchCount)
        for name in names where queued.insert(name).inserted {
            rooms.append(name)
            rooms.swapAt(Int.random(in: 0..<rooms.count, using: &generator), rooms.count - 1)
        }
        guard !queued.isEmpty else { return }
        // Channels that ended while they were queued.
        if rooms.count > 2 * queued.count + 64 {
            var kept = Set<ChannelName>()
            rooms.removeAll { !queued.contains($0) || !kept.insert($0).inserted }
        }
        let batches = max(Int(Self.spread.nanoseconds / Self.batchInterval.nanoseconds), 1)
        let needed = (queued.count + batches - 1) / batches
        batchCount = wasEmpty ? needed : max(before, needed)
        batchRest = wasEmpty ? needed : batchRest + batchCount - before
        nextBatch = max(nextBatch ?? now, now)
    }

    /// A room that ended is not attached.
    mutating func remove(_ name: ChannelName) {
        queued.remove(name)
        if queued.isEmpty { rooms = [] }
    }

    /// The rooms to attach now.
    /// - Parameter count: the most rooms to return. The rest of their batch does not wait for the next one.
    mutating func next(at now: Instant, max count: Int = .max) -> [ChannelName] {
        guard let due = nextBatch, now >= due, !queued.isEmpty else { return [] }
        var batch: [ChannelName] = []
        let most = min(batchRest, count)
        while batch.count < most, let name = rooms.popLast() {
            if queued.remove(name) != nil { batch.append(name) }
        }
        batchRest -= batch.count
        // A room whose attaching fails at once is queued again, and waits for the next batch.
        if batchRest <= 0 || queued.isEmpty {
            batchRest = batchCount
            nextBatch = max(due + Self.batchInterval, now)
        }
        if queued.isEmpty { rooms = [] }
        return batch
    }
}
