import Base
import EventLoop
import Forwarding
import MediaTypes

/// What goes through a ring from one loop to another: the forwarder's record, and when its cause was read from the
/// network, for the forwarding latency.
struct TimedTransferRecord: BitwiseCopyable, Sendable {
    var record: TransferRecord
    /// Nanoseconds of the monotonic clock; of no meaning for a record without bytes.
    var readAtNanoseconds: Int64
}

/// Another loop of the node: the rings to it and from it, and how to wake it.
struct LoopNeighbour: Sendable {
    let location: MediaLocation
    /// What this loop's forwarder calls the link to it.
    let link: LinkID
    let eventLoop: EventLoop
    let outgoing: LoopRing<TimedTransferRecord>
    let incoming: LoopRing<TimedTransferRecord>
}

/// When what a loop's turn works on was read from the network. One for the loop and all its links.
final class ReceiveTime {
    /// Of what was read first; `nil` while there is nothing.
    private(set) var readAt: Instant?

    /// The turn works on something that was read at `instant`, here or by another loop.
    @inline(__always)
    func note(_ instant: Instant) {
        guard let first = readAt, first <= instant else {
            readAt = instant
            return
        }
    }

    func turnEnded() { readAt = nil }
}

/// The writing end of the way to one other loop. It belongs to the loop that writes.
final class LoopLink: TransferLink {
    private let ring: LoopRing<TimedTransferRecord>
    private let receiver: EventLoop
    private let cause: ReceiveTime

    init(to neighbour: LoopNeighbour, cause: ReceiveTime) {
        ring = neighbour.outgoing
        receiver = neighbour.eventLoop
        self.cause = cause
    }

    override func send(_ record: TransferRecord, _ bytes: RawSpan) -> Bool {
        let readAt = cause.readAt?.nanoseconds ?? EventLoop.now().nanoseconds
        guard ring.append(TimedTransferRecord(record: record, readAtNanoseconds: readAt), bytes) else { return false }
        // A long turn gives the other loop something to do before its end.
        if ring.unpublishedBytes > ring.capacity / 8 { publish() }
        return true
    }

    override func flush() { publish() }

    /// Lets the other loop take what was sent. Called at the turn's end; without anything new it does nothing.
    func publish() {
        if ring.publish() { receiver.signal() }
    }

    func count(in counters: inout TransferCounters) { counters.add(ring) }
}

/// What a loop handed to other loops and took from them, since its start.
package struct TransferCounters: Hashable, Sendable {
    /// Records sent to other loops: a packet is one for each loop that it goes to.
    package var recordsSent: UInt64 = 0
    /// Of the records sent, as they lie in the rings.
    package var bytesSent: UInt64 = 0
    /// Packets dropped because another loop did not take what waits for it.
    package var packetDrops: UInt64 = 0
    /// Records about transfers, key frame requests among them, dropped for the same reason.
    package var controlDrops: UInt64 = 0
    /// Records taken from other loops.
    package var recordsReceived: UInt64 = 0
    /// What waits to be taken by other loops at the moment.
    package var waitingBytes: Int = 0
    /// The most that ever waited for one loop.
    package var waitingBytesMax: Int = 0
    /// Memory of the rings to other loops.
    package var allocatedBytes: Int = 0

    package init() {}

    mutating func add(_ ring: LoopRing<TimedTransferRecord>) {
        guard ring.isAllocated else { return }
        recordsSent &+= ring.counters.records
        bytesSent &+= ring.counters.bytes
        packetDrops &+= ring.counters.droppedPackets
        controlDrops &+= ring.counters.droppedControl
        waitingBytes += ring.waitingBytes
        waitingBytesMax = max(waitingBytesMax, ring.counters.waitingMax)
        allocatedBytes += ring.capacity
    }
}
