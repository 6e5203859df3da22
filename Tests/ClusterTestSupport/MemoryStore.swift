package import Base
package import Cluster
package import MediaTypes
internal import TestSupport

/// A model of the store for virtual time, with its faults, repeatable from a seed.
package struct MemoryStore: Sendable {
    /// What the store answers, and when the answer arrives; `nil` when none ever does.
    package typealias Reply<Answer> = (at: Instant, result: Result<Answer, StoreError>)?

    /// Nothing that is sent arrives.
    package var isUnavailable = false
    /// Every request is refused so.
    package var trouble: StoreError?
    /// The longest time from a request to its answer. Each takes a random part of it.
    package var delayMax = Interval.milliseconds(2)
    /// How far the store's clock is ahead of the simulator's.
    package var clockOffset = Interval.seconds(1_000_000)
    /// The requests that arrived, by verb.
    package private(set) var counts: [String: Int] = [:]
    /// All requests that arrived.
    package var commandCount: Int { counts.values.reduce(0, +) }
    package private(set) var content = MemoryContent()

    /// Copies of the content, the oldest first.
    private var copies: [(at: Instant, content: MemoryContent)] = []
    private var generator: SeededGenerator

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    // MARK: Faults

    /// Forgets everything, as a restart without persistence does.
    package mutating func wipe() { content = MemoryContent() }

    /// Keeps a copy, as a snapshot on disk or a replica does.
    package mutating func copy(at now: Instant) { copies.append((now, content)) }

    /// Goes on with the last copy that is not younger than `time`, or empty when there is none: a restored snapshot, or a
    /// failover that lost the last writes.
    package mutating func restore(copyOf time: Instant) {
        content = copies.last { $0.at <= time }?.content ?? MemoryContent()
    }

    // MARK: Verbs

    package mutating func enlist(_ request: RegisterNode, at now: Instant) -> Reply<NodeIncarnation> {
        perform("enlist", now) { $0.enlist(request, $1) }
    }

    package mutating func beat(_ request: Heartbeat, at now: Instant) -> Reply<HeartbeatAnswer> {
        perform("beat", now) { .success($0.beat(request, $1)) }
    }

    package mutating func attach(_ request: Attach, at now: Instant) -> Reply<RoomEntry> {
        perform("attach", now) { .success($0.attach(request, $1)) }
    }

    package mutating func detach(_ request: Detach, at now: Instant) -> Reply<Bool> {
        perform("detach", now) { .success($0.detach(request, $1)) }
    }

    package mutating func sweep(_ request: Sweep, at now: Instant) -> Reply<Int> {
        perform("sweep", now) { .success($0.sweep(request, $1)) }
    }

    private mutating func perform<Answer>(
        _ verb: String,
        _ now: Instant,
        _ body: (inout MemoryContent, Int64) -> Result<Answer, StoreError>
    ) -> Reply<Answer> {
        guard !isUnavailable else { return nil }
        counts[verb, default: 0] += 1
        let delay = Interval(nanoseconds: Int64.random(in: 0...max(delayMax.nanoseconds, 0), using: &generator))
        if let trouble { return (now + delay, .failure(trouble)) }
        return (now + delay, body(&content, (now + clockOffset).nanoseconds / 1_000_000))
    }
}
