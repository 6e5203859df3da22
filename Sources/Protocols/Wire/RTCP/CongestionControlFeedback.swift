import Base

/// The two ECN bits of an IP header (RFC 3168 §5).
public enum ECNCodepoint: UInt8, Hashable, Sendable, BitwiseCopyable {
    case notCapable = 0b00
    case capable1 = 0b01
    case capable0 = 0b10
    case congestionExperienced = 0b11
}

/// The status of one RTP packet in congestion control feedback (RFC 8888 §3.1).
public struct CongestionControlFeedbackStatus: Hashable, Sendable {
    /// When a packet arrived.
    public enum Arrival: Hashable, Sendable {
        /// It did not.
        case lost
        /// This many units of 1/1024 s before the report's timestamp, 0…8189.
        case offset(Int)
        /// More than 8189 units before the report's timestamp.
        case early
        /// It arrived, but the time is not known.
        case unknown
    }

    /// The stream that the packet belongs to.
    public let ssrc: SSRC
    /// The packet's RTP sequence number.
    public let sequence: SequenceNumber
    public let arrival: Arrival
    /// As the packet arrived; `notCapable` for a lost one.
    public let ecn: ECNCodepoint

    public init(ssrc: SSRC, sequence: SequenceNumber, arrival: Arrival, ecn: ECNCodepoint = .notCapable) {
        self.ssrc = ssrc
        self.sequence = sequence
        self.arrival = arrival
        self.ecn = ecn
    }
}

/// Iterates over the packet statuses of one congestion control feedback, stream by stream in sequence order (RFC 8888 §3.1).
///
/// ```text
/// |                   SSRC of nth RTP Stream                      |
/// |          begin_seq            |          num_reports          |
/// |R|ECN|  Arrival time offset    | ...                           .
/// |                 Report Timestamp (32 bits)                    |
/// ```
public struct CongestionControlFeedbackCursor: ~Escapable {
    private static let streamHeaderLength = 8
    private static let timestampLength = 4
    private static let offsetEarly: UInt16 = 0x1FFE
    private static let offsetUnknown: UInt16 = 0x1FFF

    /// When the report was sent: the middle 32 bits of an NTP timestamp, on the receiver's clock.
    public let timestamp: UInt32

    private let bytes: RawSpan
    private let end: Int
    private var offset = 0
    /// The stream that `offset` is within, and its statuses that are left.
    private var ssrc = SSRC(rawValue: 0)
    private var sequence = SequenceNumber(rawValue: 0)
    private var remaining = 0

    /// Checks that all streams are complete.
    @_lifetime(copy bytes)
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.timestampLength else { return nil }
        let end = bytes.byteCount - Self.timestampLength
        var offset = 0
        while offset < end {
            guard end - offset >= Self.streamHeaderLength else { return nil }
            let count = Int(bytes.bigEndianUInt16(at: offset + 6))
            offset += Self.streamHeaderLength + Self.paddedLength(count)
        }
        guard offset == end else { return nil }
        self.bytes = bytes
        self.end = end
        timestamp = bytes.bigEndianUInt32(at: end)
    }

    /// The next packet's status; `nil` at the end.
    @_lifetime(self: copy self)
    public mutating func next() -> CongestionControlFeedbackStatus? {
        while remaining == 0 {
            guard offset < end else { return nil }
            ssrc = SSRC(rawValue: bytes.bigEndianUInt32(at: offset))
            sequence = SequenceNumber(rawValue: bytes.bigEndianUInt16(at: offset + 4))
            remaining = Int(bytes.bigEndianUInt16(at: offset + 6))
            offset += Self.streamHeaderLength
        }
        let block = bytes.bigEndianUInt16(at: offset)
        let status = CongestionControlFeedbackStatus(
            ssrc: ssrc,
            sequence: sequence,
            arrival: Self.arrival(block),
            ecn: block & 0x8000 == 0 ? .notCapable : ECNCodepoint(rawValue: UInt8(block >> 13 & 0x3)) ?? .notCapable
        )
        sequence = sequence.advanced(by: 1)
        remaining -= 1
        // A stream with an odd number of statuses is padded to 32 bits.
        offset += remaining == 0 && offset & 2 == 0 ? 4 : 2
        return status
    }

    private static func arrival(_ block: UInt16) -> CongestionControlFeedbackStatus.Arrival {
        guard block & 0x8000 != 0 else { return .lost }
        switch block & 0x1FFF {
        case offsetEarly: return .early
        case offsetUnknown: return .unknown
        case let offset: return .offset(Int(offset))
        }
    }

    private static func paddedLength(_ count: Int) -> Int { (2 * count + 3) & ~3 }
}

extension RTCPPacketView {
    /// The packet statuses of congestion control feedback (RFC 8888); `nil` for another kind, or when the streams do not fill
    /// the packet.
    @_lifetime(copy self)
    public func makeCongestionControlFeedbackCursor() -> CongestionControlFeedbackCursor? {
        guard kind == .congestionControlFeedback else { return nil }
        return CongestionControlFeedbackCursor(body(from: 8))
    }
}
