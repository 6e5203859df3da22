import Base

/// One entry of a full intra request (RFC 5104 §4.3.1.1).
public struct FullIntraRequest: Hashable, Sendable {
    /// The media sender that the request is for.
    public let ssrc: SSRC
    /// The command sequence number; the same number is a repetition of the request.
    public let sequence: UInt8

    /// A request for a key frame of one source.
    public init(ssrc: SSRC, sequence: UInt8) {
        self.ssrc = ssrc
        self.sequence = sequence
    }
}

/// Iterates over the entries of a full intra request.
public struct FullIntraRequestCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The next entry; `nil` at the end.
    @_lifetime(self: copy self)
    public mutating func next() -> FullIntraRequest? {
        guard bytes.byteCount - offset >= 8 else { return nil }
        defer { offset += 8 }
        return FullIntraRequest(
            ssrc: SSRC(rawValue: bytes.bigEndianUInt32(at: offset)),
            sequence: bytes.byte(at: offset + 4)
        )
    }
}

/// Iterates over the sequence numbers of a generic NACK, at most 17 per entry (RFC 4585 §6.2.1).
public struct LostSequenceCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0
    private var base = SequenceNumber(rawValue: 0)
    /// Bit n stands for `base` + n; 17 bits.
    private var pending: UInt32 = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The next sequence number; `nil` at the end.
    @_lifetime(self: copy self)
    public mutating func next() -> SequenceNumber? {
        if pending == 0 {
            guard bytes.byteCount - offset >= 4 else { return nil }
            base = SequenceNumber(rawValue: bytes.bigEndianUInt16(at: offset))
            pending = UInt32(bytes.bigEndianUInt16(at: offset + 2)) << 1 | 1
            offset += 4
        }
        let index = pending.trailingZeroBitCount
        pending &= pending &- 1
        return base.advanced(by: index)
    }
}

/// One block of an extended report, or one sub-block of a DLRR block (RFC 3611 §4.4, §4.5).
public enum ExtendedReportItem: Hashable, Sendable {
    /// The reference time of a receiver, which can thus measure the round-trip time without sending media.
    case receiverReferenceTime(NTPTimestamp)
    /// For receiver `ssrc`: the middle 32 bits of its newest reference time, and the time since its arrival in 2⁻¹⁶ s.
    case delaySinceLastReceiverReport(ssrc: SSRC, lastRR: UInt32, delay: UInt32)
}

/// Iterates over the blocks of an extended report that ``ExtendedReportItem`` represents; others are skipped.
public struct ExtendedReportCursor: ~Escapable {
    static let receiverReferenceTimeType: UInt8 = 4
    static let delaySinceLastReceiverReportType: UInt8 = 5

    private let bytes: RawSpan
    private var offset = 0
    /// The end of the current DLRR block; at most `offset` outside one.
    private var subBlocksEnd = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The next known block or sub-block; `nil` at the end, or where a block is cut short.
    @_lifetime(self: copy self)
    public mutating func next() -> ExtendedReportItem? {
        while true {
            if offset < subBlocksEnd {
                guard subBlocksEnd - offset >= 12 else {
                    offset = subBlocksEnd
                    continue
                }
                defer { offset += 12 }
                return .delaySinceLastReceiverReport(
                    ssrc: SSRC(rawValue: bytes.bigEndianUInt32(at: offset)),
                    lastRR: bytes.bigEndianUInt32(at: offset + 4),
                    delay: bytes.bigEndianUInt32(at: offset + 8)
                )
            }
            guard bytes.byteCount - offset >= 4 else { return nil }
            let type = bytes.byte(at: offset)
            let start = offset + 4
            let length = 4 * Int(bytes.bigEndianUInt16(at: offset + 2))
            guard length <= bytes.byteCount - start else {
                offset = bytes.byteCount
                return nil
            }
            if type == Self.delaySinceLastReceiverReportType {
                offset = start
                subBlocksEnd = start + length
            } else {
                offset = start + length
                if type == Self.receiverReferenceTimeType, length >= 8 {
                    return .receiverReferenceTime(NTPTimestamp(rawValue: bytes.bigEndianUInt64(at: start)))
                }
            }
        }
    }
}

extension RTCPPacketView {
    /// The entries of a full intra request.
    @_lifetime(copy self)
    public func makeFullIntraRequestCursor() -> FullIntraRequestCursor {
        FullIntraRequestCursor(body(from: kind == .fullIntraRequest ? 12 : bytes.byteCount))
    }

    /// The sequence numbers that a generic NACK requests.
    @_lifetime(copy self)
    public func makeLostSequenceCursor() -> LostSequenceCursor {
        LostSequenceCursor(body(from: kind == .nack ? 12 : bytes.byteCount))
    }

    /// The bitrate of a REMB in bit/s, clamped to 64 bits.
    public var rembBitrate: UInt64? {
        guard kind == .remb else { return nil }
        let word = bytes.bigEndianUInt32(at: 16)
        let mantissa = UInt64(word & 0x3FFFF)
        let exponent = Int(word >> 18 & 0x3F)
        return mantissa.leadingZeroBitCount >= exponent ? mantissa << UInt64(exponent) : .max
    }

    /// The sources that a REMB's bitrate applies to.
    @_lifetime(copy self)
    public func makeREMBSourceCursor() -> SSRCCursor {
        SSRCCursor(body(from: 20), count: kind == .remb ? Int(bytes.byte(at: 16)) : 0)
    }

    /// The blocks of an extended report.
    @_lifetime(copy self)
    public func makeExtendedReportCursor() -> ExtendedReportCursor {
        ExtendedReportCursor(body(from: kind == .extendedReport ? 8 : bytes.byteCount))
    }

    /// The packet statuses of transport-wide feedback; `nil` for another kind, or when the status chunks or the deltas
    /// are truncated.
    @_lifetime(copy self)
    public func makeTransportFeedbackCursor() -> TransportFeedbackCursor? {
        guard kind == .transportFeedback else { return nil }
        return TransportFeedbackCursor(body(from: 12))
    }
}
