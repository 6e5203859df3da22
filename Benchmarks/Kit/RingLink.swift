internal import Forwarding
internal import Wire

/// The way from one forwarder to another over the ring that joins two loops, here within one thread.
final class RingLink: RelayLink {
    private let ring = RelayRing<RelayRecord>()

    override func send(_ record: RelayRecord, _ bytes: RawSpan) -> Bool { ring.append(record, bytes) }

    /// Hands over what was sent.
    /// - Returns: how many records.
    @inline(__always)
    func pass(to core: Forwarder, from link: LinkID, at now: Instant, into batch: DatagramBatch) -> Int {
        _ = ring.publish()
        return ring.drain(.max) { record, bytes in
            core.receiveRelayed(record, bytes, from: link, at: now, into: batch)
        }
    }
}
