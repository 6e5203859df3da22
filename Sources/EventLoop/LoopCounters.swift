/// The counters of a loop since its start. All only increase, except `gsoPausedSockets`, which is a gauge.
///
/// A *message* is one entry of a `sendmmsg` or `recvmmsg` call: one datagram, or several to one address (UDP GSO) or
/// from one address (UDP GRO).
package struct LoopCounters: Hashable, Sendable {
    /// Turns with at least one event.
    package var turns: UInt64 = 0
    /// Jobs of the loop's actors.
    package var jobs: UInt64 = 0
    /// Wake-ups by other threads: one per burst of jobs and one per burst of signals.
    package var wakeUps: UInt64 = 0

    package var datagramsReceived: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    /// Calls of `recvmmsg` that returned datagrams.
    package var receiveCalls: UInt64 = 0
    /// Datagrams per such call.
    package var datagramsPerReceiveCall = SizeHistogram()
    /// Datagrams per received message: 1, or as many as the kernel coalesced (GRO).
    package var segmentsPerRead = SizeHistogram()
    /// Datagrams dropped because they were longer than `DatagramBatch.slotBytes` or empty.
    package var receiveSizeDrops: UInt64 = 0
    /// Datagrams dropped because their source has port 0 or is not a unicast address.
    package var receiveSourceDrops: UInt64 = 0
    /// Socket errors, mostly ICMP messages about sent datagrams. The sockets stay open.
    package var socketErrors: UInt64 = 0
    /// Datagrams that the kernel dropped because the receive buffer was full.
    package var kernelReceiveDrops: UInt64 = 0

    package var datagramsSent: UInt64 = 0
    package var bytesSent: UInt64 = 0
    /// Calls of `sendmmsg` that sent something.
    package var sendCalls: UInt64 = 0
    /// Messages sent by these calls.
    package var messagesSent: UInt64 = 0
    /// Datagrams per sent message: 1, or as many as the kernel split (GSO).
    package var segmentsPerSend = SizeHistogram()
    /// Messages that the kernel refused to split (GSO); their datagrams were sent one by one.
    package var gsoFallbacks: UInt64 = 0
    /// How often a socket paused GSO toward one address after a refusal.
    package var gsoPathPauses: UInt64 = 0
    /// How often a socket paused GSO for all addresses after repeated refusals.
    package var gsoPauses: UInt64 = 0
    /// Sockets that currently pause GSO for all addresses.
    package var gsoPausedSockets: UInt64 = 0

    /// Datagrams queued because the kernel's send buffer was full.
    package var sendQueued: UInt64 = 0
    /// Datagrams dropped because the send queue was full or the loop was stopped.
    package var sendQueueDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were STUN, DTLS or RTCP: there was no media left to drop.
    package var sendQueueControlDrops: UInt64 = 0
    /// Those of `sendQueueDrops` that were audio: their share had no other media left to drop.
    package var sendQueueAudioDrops: UInt64 = 0
    /// Media dropped because it had been queued too long; not part of `sendQueueDrops`.
    package var sendQueueLateDrops: UInt64 = 0
    /// Datagrams that the system refused: no route, wrong address family, too long, forbidden.
    package var sendErrorDrops: UInt64 = 0
    /// Datagrams whose path does not begin at one of the loop's UDP sockets, and that nobody else took.
    package var sendEndpointDrops: UInt64 = 0

    package init() {}

    /// Adds another loop's counters.
    package mutating func merge(_ other: Self) {
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
