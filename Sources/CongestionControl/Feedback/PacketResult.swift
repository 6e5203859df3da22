import Base
package import Wire

/// What a sender knows of one packet after feedback: when it left, and when it arrived, if it did.
package struct PacketResult: BitwiseCopyable, Equatable, Sendable {
    /// The transport-wide sequence number without its wraps.
    package var sequence: Int64
    /// Microseconds of the sender's clock.
    package var sentAt: Int64
    /// Microseconds of the receiver's clock, whose zero is arbitrary; meaningful while `isReceived`.
    package var arrivedAt: Int64
    /// Bytes on the wire, from the IP header on.
    package var bytes: Int
    /// The probe cluster that the packet belongs to; 0 for none.
    package var cluster: UInt8
    package var isReceived: Bool
    /// An earlier report named the packet as lost.
    package var wasReportedLost: Bool
    /// The ECN field with which it arrived; `nil` when the feedback does not tell.
    package var ecn: ECNCodepoint?

    package init(
        sequence: Int64,
        sentAt: Int64,
        arrivedAt: Int64?,
        bytes: Int,
        cluster: UInt8 = 0,
        wasReportedLost: Bool = false,
        ecn: ECNCodepoint? = nil
    ) {
        self.sequence = sequence
        self.sentAt = sentAt
        self.arrivedAt = arrivedAt ?? 0
        self.bytes = bytes
        self.cluster = cluster
        isReceived = arrivedAt != nil
        self.wasReportedLost = wasReportedLost
        self.ecn = ecn
    }
}

extension PacketResult {
    /// - Parameters:
    ///   - headerBytes: bytes of the IP and UDP headers.
    ///   - now: when the report arrived, in microseconds of the sender's clock; the packet left within 71 minutes before it.
    init(
        _ packet: SentPacket,
        sequence: Int64,
        arrivedAt: Int64?,
        wasReportedLost: Bool,
        ecn: ECNCodepoint? = nil,
        headerBytes: Int,
        at now: Int64
    ) {
        let age = UInt32(truncatingIfNeeded: now) &- packet.sentAt
        self.init(
            sequence: sequence,
            sentAt: now &- Int64(age),
            arrivedAt: arrivedAt,
            bytes: Int(packet.bytes) + headerBytes,
            cluster: packet.cluster,
            wasReportedLost: wasReportedLost,
            ecn: ecn
        )
    }
}
