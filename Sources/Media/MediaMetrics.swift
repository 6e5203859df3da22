public import EventLoop
public import Forwarding
public import Metrics

/// What one media loop has counted and measured, as it was at one moment.
public struct MediaMetrics: Sendable {
    /// Sockets and turns.
    public var loop: LoopCounters
    /// Packets, feedback, drops by reason.
    public var forwarder: ForwarderCounters
    /// What the loop carries at the moment.
    public var gauges: ForwarderGauges
    /// How long each turn took.
    public var turnTime: DurationHistogram
    /// For each datagram that was sent because of one that was read: the time from the one system call to the other.
    public var forwardingLatency: DurationHistogram
    /// Datagrams that wait for room in the kernel's send buffers at the moment.
    public var queuedDatagrams: Int
    /// Datagrams lost because the batch of one turn was full and could not be flushed.
    public var batchOverflows: Int
}
