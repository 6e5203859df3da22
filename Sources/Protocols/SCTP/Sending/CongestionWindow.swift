/// How many bytes may be in flight (RFC 9260 §7.2).
struct CongestionWindow: Sendable {
    static let unit = PacketLayout.bytesMax
    /// RFC 6928. RFC 9260 §7.2.1 has 4404 bytes; Chromium's dcsctp starts with ten packets too.
    static let initialBytes = 10 * unit
    static let bytesMin = 4 * unit
    /// More is never useful: no peer announces a larger receive window.
    private static let bytesMax = 16 << 20

    private(set) var bytes = initialBytes
    private(set) var threshold: Int
    private var partialBytes = 0

    /// - Parameter threshold: the peer's receive window, where slow start ends without a loss.
    init(threshold: Int) { self.threshold = max(threshold, Self.bytesMin) }

    var isSlowStart: Bool { bytes <= threshold }

    /// The cumulative number moved, outside of a recovery.
    /// - Parameters:
    ///   - acked: the bytes that the SACK acknowledged.
    ///   - wasFull: whether the window limited the sender.
    ///   - isAllAcked: whether nothing is in flight any more.
    mutating func acknowledged(_ acked: Int, wasFull: Bool, isAllAcked: Bool) {
        if isSlowStart {
            if wasFull { bytes += min(acked, Self.unit) }
        } else {
            partialBytes += acked
            if partialBytes >= bytes {
                partialBytes = wasFull ? partialBytes - bytes : 0
                if wasFull { bytes += Self.unit }
            }
        }
        if isAllAcked { partialBytes = 0 }
        bytes = min(bytes, Self.bytesMax)
    }

    /// A loss was seen by gaps in what arrived; once per recovery.
    ///
    /// Deviation: RFC 9260 §7.2.3 halves the window. Without a queue on the path the loss is likely not from congestion (radio), and
    /// halving would limit 1 % loss at 60 ms to 1.9 Mbit/s; the window keeps 85 %. It still falls with every recovery, so flows
    /// at a bottleneck with a short buffer converge. The estimate of the media's bandwidth bounds the rate besides.
    mutating func lost(hasQueue: Bool) {
        threshold = max(hasQueue ? bytes / 2 : bytes * 85 / 100, Self.bytesMin)
        bytes = threshold
        partialBytes = 0
    }

    /// The retransmission timer expired.
    mutating func timedOut() {
        threshold = max(bytes / 2, Self.bytesMin)
        bytes = Self.unit
        partialBytes = 0
    }

    /// Nothing was sent for a whole timeout (RFC 9260 §7.2.1).
    ///
    /// Slow start leads back to where the window was. Deviation: the RFC lowers the threshold to it, too, and a first short message
    /// would end the slow start of all that follow.
    mutating func idled() {
        threshold = max(threshold, bytes)
        bytes = max(bytes / 2, min(bytes, Self.bytesMin))
    }

    /// The path changed, and nothing is known of the new one: not where the old one's slow start ended, either.
    mutating func pathChanged() {
        bytes = min(bytes, Self.initialBytes)
        threshold = Self.bytesMax
        partialBytes = 0
    }
}
