/// What a loop has counted since its start. Every count only grows, but for `gsoPausedSockets`, which tells how it is.
///
/// A *message* is what one entry of a `sendmmsg` or `recvmmsg` call carries: one datagram, or with segmentation offload
/// several to one address (sent: UDP GSO) or from one address (received: UDP GRO).
public struct LoopCounters: Hashable, Sendable {
    /// Turns in which there was something to do.
    public var turns: UInt64 = 0
    /// Jobs of the actors on the loop.
    public var jobs: UInt64 = 0
    /// How often another thread woke the loop: once for a burst of jobs, once for a burst of signals.
    public var wakeUps: UInt64 = 0

    public var datagramsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Calls of `recvmmsg` that returned datagrams.
    public var receiveCalls: UInt64 = 0
    /// Datagrams of each such call.
    public var datagramsPerReceiveCall = SizeHistogram()
    /// Datagrams of each message read: 1, or as many as the kernel coalesced (GRO).
    public var segmentsPerRead = SizeHistogram()
    /// Datagrams dropped because they were longer than `DatagramBatch.slotBytes` or empty.
    public var receiveSizeDrops: UInt64 = 0
    /// Datagrams dropped because nothing can be sent to the address that they came from: port 0, or no host's address.
    public var receiveSourceDrops: UInt64 = 0
    /// Errors that sockets reported, mostly ICMP messages about what was sent; the sockets go on.
    public var socketErrors: UInt64 = 0
    /// Datagrams that the kernel dropped for want of receive buffer.
    public var kernelReceiveDrops: UInt64 = 0

    public var datagramsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// Calls of `sendmmsg` that sent something.
    public var sendCalls: UInt64 = 0
    /// Messages that these calls sent.
    public var messagesSent: UInt64 = 0
    /// Datagrams of each message sent: 1, or as many as the kernel was given to split (GSO).
    public var segmentsPerSend = SizeHistogram()
    /// Messages of several datagrams that the kernel refused to split; their datagrams were sent one by one.
    public var gsoFallbacks: UInt64 = 0
    /// How often a socket stopped giving the kernel several datagrams at once to one address, because it refused them.
    public var gsoPathPauses: UInt64 = 0
    /// How often a socket stopped giving the kernel several datagrams at once, because it refused time after time.
    public var gsoPauses: UInt64 = 0
    /// Sockets that have stopped so and have not begun again; not a count of events.
    public var gsoPausedSockets: UInt64 = 0

    /// Datagrams that had to wait because the kernel's send buffer was full.
    public var sendQueued: UInt64 = 0
    /// Datagrams dropped because the queue of those that wait was full, or because the loop was stopped.
    public var sendQueueDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were not media but STUN, DTLS or RTCP: there was no media left to drop for them.
    public var sendQueueControlDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were audio: their share of the queue had no other media left to drop for them.
    public var sendQueueAudioDrops: UInt64 = 0
    /// Media dropped because it had waited too long when its turn came; not part of `sendQueueDrops`.
    public var sendQueueLateDrops: UInt64 = 0
    /// Datagrams that the system refused: no route, wrong address family, too long, forbidden.
    public var sendErrorDrops: UInt64 = 0
    /// Datagrams whose path does not begin at one of the loop's UDP sockets.
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
