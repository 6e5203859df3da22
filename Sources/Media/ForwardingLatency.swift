import Metrics
import Wire

/// Measures the time from reading a datagram to handing the datagrams that it brought forth to the kernel.
///
/// A batch holds what several reads produced, one range after the other. Each range is remembered with the instant of
/// its read and counted when the batch is flushed, so that a packet costs nothing on its own.
struct ForwardingLatency {
    private(set) var histogram = DurationHistogram.shortTimes
    private var ranges: [(readAt: Instant, count: Int)] = []
    private var readAt: Instant?
    private var end = 0

    init() {}

    /// What the batch gets from now on comes of what was read at `readAt`, or with `nil` of nothing that was read
    /// (timers and calls), which is not counted. The batch holds `count` datagrams now.
    @inline(__always)
    mutating func produce(becauseOf readAt: Instant?, after count: Int) {
        guard readAt != self.readAt else { return }
        closeRange(at: count)
        self.readAt = readAt
    }

    /// The batch's `count` datagrams have been sent; the next one takes its first slot again.
    mutating func flushed(_ count: Int, at now: Instant) {
        closeRange(at: count)
        for range in ranges {
            histogram.observe(nanoseconds: (now - range.readAt).nanoseconds, count: UInt64(range.count))
        }
        ranges.removeAll(keepingCapacity: true)
        end = 0
    }

    private mutating func closeRange(at count: Int) {
        if let readAt, count > end { ranges.append((readAt, count - end)) }
        end = count
    }
}
