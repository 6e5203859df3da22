// Public, because Swift 6.3.1 inlines no `package` declaration of another module, and one is made for each packet.

/// Why a packet was sent.
public enum SentKind: UInt8, BitwiseCopyable, Sendable {
    case media, retransmission, padding
    /// Media that left a second time under the same number. It counts as lost whenever it is reported: nobody knows which of the
    /// two arrived (Karn's rule, RFC 6298 §3).
    case repeated
}

/// One packet that left, as a sender keeps it until it is reported on.
public struct SentPacket: BitwiseCopyable, Equatable, Sendable {
    /// When it left, in microseconds of the sender's clock modulo 2³²: 71 minutes.
    public let sentAt: UInt32
    /// UDP payload bytes.
    public let bytes: UInt16
    public let kind: SentKind
    /// The probe cluster that it is of; 0 for none.
    public let cluster: UInt8

    @inlinable @inline(__always)
    public init(sentAt: UInt32, bytes: Int, kind: SentKind = .media, cluster: UInt8 = 0) {
        self.sentAt = sentAt
        self.bytes = UInt16(truncatingIfNeeded: bytes)
        self.kind = kind
        self.cluster = cluster
    }
}
