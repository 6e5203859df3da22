/// The counters of a loop since its start. All only increase, except `gsoPausedSockets`, which is a gauge.
///
/// A *message* is one entry of a `sendmmsg` or `recvmmsg` call: one datagram, or several to one address (UDP GSO) or
/// from one address (UDP GRO).
public struct LoopCounters: Hashable, Sendable {
    /// Turns with at least one event.
    public var turns: UInt64 = 0
    /// Jobs of the loop's actors.
    public var jobs: UInt64 = 0
    /// Wake-ups by other threads: one per burst of jobs and one per burst of signals.
    public var wakeUps: UInt64 = 0

    public var datagramsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Calls of `recvmmsg` that returned datagrams.
    public var receiveCalls: UInt64 = 0
    /// Datagrams per such call.
    public var datagramsPerReceiveCall = SizeHistogram()
    /// Datagrams per received message: 1, or as many as the kernel coalesced (GRO).
    public var segmentsPerRead = SizeHistogram()
    /// Datagrams dropped because they were longer than `DatagramBatch.slotBytes` or empty.
    public var receiveSizeDrops: UInt64 = 0
    /// Datagrams dropped because their source has port 0 or is not a unicast address.
    public var receiveSourceDrops: UInt64 = 0
    /// Socket errors, mostly ICMP messages about sent datagrams. The sockets stay open.
    public var socketErrors: UInt64 = 0
    /// Datagrams that the kernel dropped because the receive buffer was full.
    public var kernelReceiveDrops: UInt64 = 0

    public var datagramsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// Calls of `sendmmsg` that sent something.
    public var sendCalls: UInt64 = 0
    /// Messages sent by these calls.
    public var messagesSent: UInt64 = 0
    /// Datagrams per sent message: 1, or as many as the kernel split (GSO).
    public var segmentsPerSend = SizeHistogram()
    /// Messages that the kernel refused to split (GSO); their datagrams were sent one by one.
    public var gsoFallbacks: UInt64 = 0
    /// How often a socket paused GSO toward one address after a refusal.
    public var gsoPathPauses: UInt64 = 0
    /// How often a socket paused GSO for all addresses after repeated refusals.
    public var gsoPauses: UInt64 = 0
    /// Sockets that currently pause GSO for all addresses.
    public var gsoPausedSockets: UInt64 = 0

    /// Datagrams queued because the kernel's send buffer was full.
    public var sendQueued: UInt64 = 0
    /// Datagrams dropped because the send queue was full or the loop was stopped.
    public var sendQueueDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were STUN, DTLS or RTCP: there was no media left to drop.
    public var sendQueueControlDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were audio: their share had no other media left to drop.
    public var sendQueueAudioDrops: UInt64 = 0
    /// Media dropped because it had been queued too long; not part of `sendQueueDrops`.
    public var sendQueueLateDrops: UInt64 = 0
    /// Datagrams that the system refused: no route, wrong address family, too long, forbidden.
    public var sendErrorDrops: UInt64 = 0
    /// Datagrams whose path does not begin at one of the loop's UDP sockets, and that nobody else took.
    public var sendEndpointDrops: UInt64 = 0

    public init() {}

    /// Adds another loop's counters.
    public mutating func merge(_ other: Self) {
        turns &+= other.turns
        jobs &+= other.jobs
        wakeUps &+= other.wakeUps
        datagramsReceived &+= other.datagramsReceived
        bytesReceived &+= other.bytesReceived
        receiveCalls &+= other.receiveCalls
        datagramsPerReceiveCall.merge(other.datagramsPerReceiveCall)
        segmentsPerRead.merge(other.segmentsPerRead)
        receiveSizeDrops &+= other.receiveSizeDrops
        receiveSourceDrops &+= other.receiveSourceDrops
        socketErrors &+= other.socketErrors
        kernelReceiveDrops &+= other.kernelReceiveDrops
        datagramsSent &+= other.datagramsSent
        bytesSent &+= other.bytesSent
        sendCalls &+= other.sendCalls
        messagesSent &+= other.messagesSent
        segmentsPerSend.merge(other.segmentsPerSend)
        gsoFallbacks &+= other.gsoFallbacks
        gsoPathPauses &+= other.gsoPathPauses
        gsoPauses &+= other.gsoPauses
        gsoPausedSockets &+= other.gsoPausedSockets
        sendQueued &+= other.sendQueued
        sendQueueDrops &+= other.sendQueueDrops
        sendQueueControlDrops &+= other.sendQueueControlDrops
        sendQueueAudioDrops &+= other.sendQueueAudioDrops
        sendQueueLateDrops &+= other.sendQueueLateDrops
        sendErrorDrops &+= other.sendErrorDrops
        sendEndpointDrops &+= other.sendEndpointDrops
    }
}
