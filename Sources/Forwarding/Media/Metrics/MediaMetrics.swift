package import EventLoop
package import Forwarding
package import Metrics
package import TURN

/// A snapshot of what one media loop has counted and measured.
package struct MediaMetrics: Sendable {
    /// Sockets and turns.
    package var loop: LoopCounters
    /// Packets, feedback, drops by reason.
    package var forwarder: ForwarderCounters
    /// What the loop carries at the moment.
    package var gauges: ForwarderGauges
    /// How long each turn took.
    package var iterationTime: DurationHistogram
    /// For each datagram of a turn that worked on something read: the time from the first of these reads, on this loop or
    /// on the one that handed it over, to the system call that sent the datagram. No datagram took longer.
    package var forwardingLatency: DurationHistogram
    /// Datagrams that wait for room in the kernel's send buffers at the moment.
    package var queuedDatagrams: Int
    /// Datagrams lost because the batch of one turn was full and could not be flushed.
    package var batchOverflows: Int
    /// The TURN server; `nil` without one.
    package var turn: TURNMetrics?
    /// ICE over TCP; `nil` without it.
    package var tcp: TCPMetrics?
    /// What went to and came from the node's other loops.
    package var relay: TransferCounters
    /// What went to and came from loops of other nodes.
    package var mediaLinks = MediaLinkMetrics()
}

/// A snapshot of one loop's links to loops of other nodes.
package struct MediaLinkMetrics: Sendable {
    package var counters: MediaLinkCounters
    /// The links that there are.
    package var links: [MediaLinkState]

    package init(counters: MediaLinkCounters = MediaLinkCounters(), links: [MediaLinkState] = []) {
        self.counters = counters
        self.links = links
    }
}

/// A snapshot of what the acceptor of TURN over TLS has counted.
package struct TLSAcceptorMetrics: Sendable {
    /// The connections that are not at a media loop: they count there from then on.
    package var tcp: TCPMetrics
    /// Requests without the user name of a session.
    package var turn: TURNMetrics

    package init(tcp: TCPMetrics = TCPMetrics(), turn: TURNMetrics = TURNMetrics()) {
        self.tcp = tcp
        self.turn = turn
    }
}

/// A snapshot of one loop's TURN server.
package struct TURNMetrics: Sendable {
    package var counters: TURNCounters
    /// The allocations that exist.
    package var allocations: Int
    /// Those of them over TCP and TLS.
    package var streamAllocations: Int
    /// The calls whose members have credentials.
    package var calls: Int
    /// The allocations of their members.
    package var callAllocations: Int

    package init(
        counters: TURNCounters = TURNCounters(),
        allocations: Int = 0,
        streamAllocations: Int = 0,
        calls: Int = 0,
        callAllocations: Int = 0
    ) {
        self.counters = counters
        self.allocations = allocations
        self.streamAllocations = streamAllocations
        self.calls = calls
        self.callAllocations = callAllocations
    }
}
