import Base
internal import Forwarding
internal import Wire

/// A relay link from one forwarder to another, over the ring between two loops. Here both ends are on one thread.
final class RingLink: TransferLink {
    private let ring = LoopRing<TransferRecord>()

    override func send(_ record: TransferRecord, _ bytes: RawSpan) -> Bool { ring.append(record, bytes) }

    /// Delivers the sent records to `forwarder`.
    /// - Returns: the number of records.
    @inline(__always)
    func deliver(to forwarder: Forwarder, from link: LinkID, at now: Instant, into batch: DatagramBatch) -> Int {
        _ = ring.publish()
        return ring.drain(.max) { record, bytes in
            forwarder.receiveTransferred(record, bytes, from: link, at: now, into: batch)
        }
    }
}
