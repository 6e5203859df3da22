package import Wire

/// What a sender knows of one packet after feedback: when it left, and when it arrived, if it did.
package struct PacketResult: BitwiseCopyable, Equatable, Sendable {
    /// What a packet was sent for.
    package enum Purpose: UInt8, BitwiseCopyable, Sendable {
        case audio, video, retransmission, padding
        /// Media that left a second time under the same number. It counts as lost whenever it is reported: nobody knows which of the
        /// two arrived (Karn's rule, RFC 6298 §3).
        case repeated
    }

    /// The transport-wide sequence number without its wraps.
    package var sequence: Int64
    /// Microseconds of the sender's clock.
    package var sentAt: Int64
    /// Microseconds of the receiver's clock, whose zero is arbitrary; meaningful while `isReceived`.
    package var arrivedAt: Int64
    /// Bytes on the wire, from the IP header on.
    package var bytes: Int
    package var purpose: Purpose
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
        purpose: Purpose = .video,
        cluster: UInt8 = 0,
        wasReportedLost: Bool = false,
        ecn: ECNCodepoint? = nil
    ) {
        self.sequence = sequence
        self.sentAt = sentAt
        self.arrivedAt = arrivedAt ?? 0
        self.bytes = bytes
        self.purpose = purpose
        self.cluster = cluster
        isReceived = arrivedAt != nil
        self.wasReportedLost = wasReportedLost
        self.ecn = ecn
    }
}
