import Wire

/// What a sender keeps of a packet until it is reported on.
package struct SentPacketRecord: BitwiseCopyable, Equatable, Sendable {
    /// When the packet left, in microseconds of the sender's clock modulo 2³².
    package var sentAt: UInt32
    /// UDP payload bytes.
    package var bytes: UInt16
    package var purpose: PacketResult.Purpose
    /// The probe cluster that the packet belongs to; 0 for none.
    package var cluster: UInt8

    package init(sentAt: UInt32, bytes: UInt16, purpose: PacketResult.Purpose = .video, cluster: UInt8 = 0) {
        self.sentAt = sentAt
        self.bytes = bytes
        self.purpose = purpose
        self.cluster = cluster
    }
}

extension PacketResult {
    /// - Parameters:
    ///   - headerBytes: bytes of the IP and UDP headers.
    ///   - now: when the report arrived, in microseconds of the sender's clock; the packet left within 71 minutes before it.
    init(
        _ record: SentPacketRecord,
        sequence: Int64,
        arrivedAt: Int64?,
        wasReportedLost: Bool,
        ecn: ECNCodepoint? = nil,
        headerBytes: Int,
        at now: Int64
    ) {
        let age = UInt32(truncatingIfNeeded: now) &- record.sentAt
        self.init(
            sequence: sequence,
            sentAt: now &- Int64(age),
            arrivedAt: arrivedAt,
            bytes: Int(record.bytes) + headerBytes,
            purpose: record.purpose,
            cluster: record.cluster,
            wasReportedLost: wasReportedLost,
            ecn: ecn
        )
    }
}
