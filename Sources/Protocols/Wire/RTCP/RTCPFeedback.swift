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

    /// The packet statuses of transport-wide feedback; `nil` for another kind, or when the status chunks or the deltas
    /// are truncated.
    @_lifetime(copy self)
    public func makeTransportFeedbackCursor() -> TransportFeedbackCursor? {
        guard kind == .transportFeedback else { return nil }
        return TransportFeedbackCursor(body(from: 12))
    }
}
