import Base
import Forwarding
import MediaTypes
import Metrics

/// What a loop measures of its turns.
struct LoopMeasurements {
    /// From the reading of a datagram to the end of the call that sends what it caused.
    private(set) var forwardingLatency = DurationHistogram.shortTimes
    private(set) var iterationTime = DurationHistogram.shortTimes
    private var loadMeter: LoadMeter
    private var overloadSampler: OverloadSampler

    init(at now: Instant) {
        loadMeter = LoadMeter(at: now)
        overloadSampler = OverloadSampler(at: now)
    }

    /// A turn took so long.
    mutating func turned(_ length: Interval) { iterationTime.observe(nanoseconds: length.nanoseconds) }

    /// Datagrams left so long after the first datagram of the turn was read.
    mutating func sent(_ count: Int, after latency: Interval) {
        overloadSampler.note(delay: latency)
        forwardingLatency.observe(nanoseconds: latency.nanoseconds, count: UInt64(count))
    }

    /// The forwarder's next sample of the load; `nil` when it is not due.
    /// - Parameter receiveDrops: datagrams that the kernel has dropped since the start.
    mutating func sample(receiveDrops: @autoclosure () -> UInt64, at now: Instant) -> LoopSample? {
        guard overloadSampler.isDue(at: now) else { return nil }
        return overloadSampler.sample(
            busyNanoseconds: iterationTime.sumNanoseconds,
            receiveDrops: receiveDrops(),
            at: now
        )
    }

    /// What the loop carries, measured since the last call, or since the start.
    /// - Parameter packets: that were sent since the start.
    mutating func load(packets: UInt64, peers: Int, at now: Instant) -> LoopLoad {
        loadMeter.measure(busyNanoseconds: iterationTime.sumNanoseconds, packets: packets, peers: peers, at: now)
    }
}
