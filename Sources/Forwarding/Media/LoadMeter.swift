import Base
import MediaTypes

/// Computes the loop's load from running totals.
struct LoadMeter {
    private var measuredAt: Instant
    private var busyNanoseconds: Int64 = 0
    private var packets: UInt64 = 0

    init(at now: Instant) { measuredAt = now }

    /// The load since the last call. The arguments are totals. Two calls at one instant find no load.
    mutating func measure(busyNanoseconds: Int64, packets: UInt64, peers: Int, at now: Instant) -> LoopLoad {
        let elapsed = (now - measuredAt).nanoseconds
        let busy = busyNanoseconds &- self.busyNanoseconds
        let sent = packets &- self.packets
        guard elapsed > 0 else { return LoopLoad(peers: peers) }
        measuredAt = now
        self.busyNanoseconds = busyNanoseconds
        self.packets = packets
        return LoopLoad(
            packetsPerSecond: Double(sent) * 1e9 / Double(elapsed),
            busyShare: min(max(Double(busy) / Double(elapsed), 0), 1),
            peers: peers
        )
    }
}
