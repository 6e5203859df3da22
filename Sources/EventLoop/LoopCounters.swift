/// What a loop has counted since its start. Every count only grows.
public struct LoopCounters: Hashable, Sendable {
    /// Turns in which there was something to do.
    public var turns: UInt64 = 0
    /// Jobs of the actors on the loop.
    public var jobs: UInt64 = 0
    /// How often another thread woke the loop: once for a burst of jobs.
    public var wakeUps: UInt64 = 0

    public var datagramsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Calls of `recvmmsg` that returned datagrams.
    public var receiveCalls: UInt64 = 0
    /// Datagrams dropped because they were longer than a slot or empty.
    public var receiveSizeDrops: UInt64 = 0
    /// Errors that sockets reported, mostly ICMP messages about what was sent; the sockets go on.
    public var socketErrors: UInt64 = 0
    /// Datagrams that the kernel dropped for want of receive buffer.
    public var kernelReceiveDrops: UInt64 = 0

    public var datagramsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// Calls of `sendmmsg` that sent something.
    public var sendCalls: UInt64 = 0
    /// Datagrams that had to wait because the kernel's send buffer was full.
    public var sendQueued: UInt64 = 0
    /// Datagrams dropped because the queue of those that wait was full, or because the loop was stopped.
    public var sendQueueDrops: UInt64 = 0
    /// Datagrams that the system refused: no route, wrong address family, too long, forbidden.
    public var sendErrorDrops: UInt64 = 0

    public init() {}

    /// Adds another loop's counters.
    public mutating func merge(_ other: Self) {
        turns &+= other.turns
        jobs &+= other.jobs
        wakeUps &+= other.wakeUps
        datagramsReceived &+= other.datagramsReceived
        bytesReceived &+= other.bytesReceived
        receiveCalls &+= other.receiveCalls
        receiveSizeDrops &+= other.receiveSizeDrops
        socketErrors &+= other.socketErrors
        kernelReceiveDrops &+= other.kernelReceiveDrops
        datagramsSent &+= other.datagramsSent
        bytesSent &+= other.bytesSent
        sendCalls &+= other.sendCalls
        sendQueued &+= other.sendQueued
        sendQueueDrops &+= other.sendQueueDrops
        sendErrorDrops &+= other.sendErrorDrops
    }
}
