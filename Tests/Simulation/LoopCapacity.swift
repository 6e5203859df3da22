import Base
import Forwarding

/// What one loop of the node can do: datagrams received and sent, a second. While it is behind, what arrives is dropped, as
/// by a kernel whose receive buffer is full.
struct LoopCapacity {
    var datagramsPerSecond: Double
    /// Datagrams that were dropped.
    private(set) var drops: UInt64 = 0
    /// Whether the core is told how its loop fares.
    var isSampled = true
    /// Datagrams that the loop could work on now; below 0 while it is behind.
    private var room: Double = 0
    private var updatedAt: Instant
    private var sampledAt: Instant
    private var worked: Double = 0
    private var dropsAtSample: UInt64 = 0

    /// Seconds of idleness that the loop may make good later, and of work that may wait in the receive buffer.
    private static let idleMax = 0.02
    private static let backlogMax = 0.1
    private static let sampleInterval = Interval.milliseconds(100)

    init(datagramsPerSecond: Double, at now: Instant) {
        self.datagramsPerSecond = datagramsPerSecond
        updatedAt = now
        sampledAt = now
    }

    var nextSample: Instant { sampledAt + Self.sampleInterval }

    /// - Returns: `false` when the datagram is dropped.
    mutating func receive(at now: Instant) -> Bool {
        room = min(room + datagramsPerSecond * (now - updatedAt).seconds, datagramsPerSecond * Self.idleMax)
        updatedAt = now
        guard room >= -datagramsPerSecond * Self.backlogMax else {
            drops += 1
            return false
        }
        work(1)
        return true
    }

    mutating func work(_ datagrams: Int) {
        // What other loops hand over is not refused here; no loop falls behind for ever.
        room = max(room - Double(datagrams), -2 * datagramsPerSecond * Self.backlogMax)
        worked += Double(datagrams)
    }

    mutating func sample(at now: Instant) -> LoopSample {
        let elapsed = now - sampledAt
        let share = min(worked / max(datagramsPerSecond * elapsed.seconds, 1), 1)
        let sample = LoopSample(
            elapsed: elapsed,
            busy: Interval(nanoseconds: Int64(Double(elapsed.nanoseconds) * share)),
            receiveDrops: drops - dropsAtSample,
            delayMax: .zero
        )
        sampledAt = now
        worked = 0
        dropsAtSample = drops
        return sample
    }
}
