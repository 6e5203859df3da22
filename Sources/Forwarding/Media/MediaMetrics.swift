public import EventLoop
public import Forwarding
public import Metrics
public import TURN

/// A snapshot of what one media loop has counted and measured.
public struct MediaMetrics: Sendable {
    /// Sockets and turns.
    public var loop: LoopCounters
    /// Packets, feedback, drops by reason.
    public var forwarder: ForwarderCounters
    /// What the loop carries at the moment.
    public var gauges: ForwarderGauges
    /// How long each turn took.
    public var iterationTime: DurationHistogram
    /// For each datagram of a turn that worked on something read: the time from the first of these reads, on this loop or
    /// on the one that handed it over, to the system call that sent the datagram. No datagram took longer.
    public var forwardingLatency: DurationHistogram
    /// Datagrams that wait for room in the kernel's send buffers at the moment.
    public var queuedDatagrams: Int
    /// Datagrams lost because the batch of one turn was full and could not be flushed.
    public var batchOverflows: Int
    /// The TURN server; `nil` without one.
    public var turn: TURNMetrics?
    /// ICE over TCP; `nil` without it.
    public var tcp: TCPMetrics?
    /// What went to and came from the node's other loops.
    public var relay: TransferCounters
    /// What went to and came from loops of other nodes.
    public var mediaLinks = MediaLinkMetrics()
}

/// A snapshot of one loop's links to loops of other nodes.
public struct MediaLinkMetrics: Sendable {
    public var counters: MediaLinkCounters
    /// The links that there are.
    public var links: [MediaLinkState]

    public init(counters: MediaLinkCounters = MediaLinkCounters(), links: [MediaLinkState] = []) {
        self.counters = counters
        self.links = links
    }
}

/// A snapshot of what the acceptor of TURN over TLS has counted.
public struct TLSAcceptorMetrics: Sendable {
    /// The connections that are not at a media loop: they count there from then on.
    public var tcp: TCPMetrics
    /// Requests without the user name of a session.
    public var turn: TURNMetrics

    public init(tcp: TCPMetrics = TCPMetrics(), turn: TURNMetrics = TURNMetrics()) {
        self.tcp = tcp
        self.turn = turn
    }
}

/// A snapshot of one loop's TURN server.
public struct TURNMetrics: Sendable {
    public var counters: TURNCounters
    /// The allocations that exist.
    public var allocations: Int
    /// Those of them over TCP and TLS.
    public var streamAllocations: Int

    public init(counters: TURNCounters = TURNCounters(), allocations: Int = 0, streamAllocations: Int = 0) {
        self.counters = counters
        self.allocations = allocations
        self.streamAllocations = streamAllocations
    }
}
