import Base
import Forwarding

/// Makes the forwarder's load samples from running totals.
struct OverloadSampler {
    private var sampledAt: Instant
    private var busyNanoseconds: Int64 = 0
    private var receiveDrops: UInt64 = 0
    private var delayMax = Interval.zero

    private static let interval = Interval.milliseconds(100)

    init(at now: Instant) { sampledAt = now }

    /// Notes how long a datagram took through a turn.
    @inline(__always)
    mutating func note(delay: Interval) { delayMax = max(delayMax, delay) }

    @inline(__always)
    func isDue(at now: Instant) -> Bool { now - sampledAt >= Self.interval }

    /// The sample since the last call. The arguments are totals of the loop.
    mutating func sample(busyNanoseconds: Int64, receiveDrops: UInt64, at now: Instant) -> LoopSample {
        let elapsed = now - sampledAt
        let busy = Interval(nanoseconds: busyNanoseconds &- self.busyNanoseconds)
        let sample = LoopSample(
            elapsed: elapsed,
            busy: min(max(busy, .zero), elapsed),
            receiveDrops: receiveDrops &- self.receiveDrops,
            delayMax: delayMax
        )
        sampledAt = now
        self.busyNanoseconds = busyNanoseconds
        self.receiveDrops = receiveDrops
        delayMax = .zero
        return sample
    }
}
