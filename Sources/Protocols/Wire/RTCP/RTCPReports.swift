import Base

/// The sender information of a sender report (RFC 3550 §6.4.1).
public struct SenderInfo: Hashable, Sendable {
    /// The sender's wall clock when the report was sent.
    public var ntp: NTPTimestamp
    /// The RTP timestamp of the same instant.
    public var rtp: RTPTimestamp
    /// Packets sent since the start, modulo 2³².
    public var packetCount: UInt32
    /// Payload bytes sent since the start, modulo 2³².
    public var octetCount: UInt32

    /// Creates a sender information block from its fields.
    public init(ntp: NTPTimestamp, rtp: RTPTimestamp, packetCount: UInt32, octetCount: UInt32) {
        self.ntp = ntp
        self.rtp = rtp
        self.packetCount = packetCount
        self.octetCount = octetCount
    }
}

/// The report block of one source (RFC 3550 §6.4.1).
public struct ReportBlock: Hashable, Sendable {
    /// The bytes of one block.
    public static let length = 24

    /// The source reported on.
    public var ssrc: SSRC
    /// Packets lost since the previous report, in 1/256.
    public var fractionLost: UInt8
    /// Packets lost since the start; negative with duplicates. Written clamped to 24 bits.
    public var cumulativeLost: Int32
    /// The extended highest sequence number: the cycles in the high 16 bits.
    public var highestSequence: UInt32
    /// Interarrival jitter in clock ticks.
    public var jitter: UInt32
    /// The middle 32 bits of the newest sender report's NTP timestamp; 0 before the first.
    public var lastSR: UInt32
    /// The time from the arrival of the newest sender report to this report, in 2⁻¹⁶ s; 0 before the first.
    public var delaySinceLastSR: UInt32

    /// Creates a report block; omitted fields are 0.
    public init(
        ssrc: SSRC,
        fractionLost: UInt8 = 0,
        cumulativeLost: Int32 = 0,
        highestSequence: UInt32 = 0,
        jitter: UInt32 = 0,
        lastSR: UInt32 = 0,
        delaySinceLastSR: UInt32 = 0
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.highestSequence = highestSequence
        self.jitter = jitter
        self.lastSR = lastSR
        self.delaySinceLastSR = delaySinceLastSR
    }

    /// - Precondition: there are ``length`` bytes at `offset`.
    init(_ bytes: RawSpan, at offset: Int) {
        ssrc = SSRC(rawValue: bytes.bigEndianUInt32(at: offset))
        fractionLost = bytes.byte(at: offset + 4)
        cumulativeLost = Int32(bitPattern: bytes.bigEndianUInt24(at: offset + 5) << 8) >> 8
        highestSequence = bytes.bigEndianUInt32(at: offset + 8)
        jitter = bytes.bigEndianUInt32(at: offset + 12)
        lastSR = bytes.bigEndianUInt32(at: offset + 16)
        delaySinceLastSR = bytes.bigEndianUInt32(at: offset + 20)
    }
}

/// Iterates over the report blocks of a sender or receiver report.
public struct ReportBlockCursor: ~Escapable {
    private let bytes: RawSpan
    private var remaining: Int
    private var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, count: Int) {
        self.bytes = bytes
        remaining = min(count, bytes.byteCount / ReportBlock.length)
    }

    /// The next block; `nil` at the end.
    @_lifetime(self: copy self)
    public mutating func next() -> ReportBlock? {
        guard remaining > 0 else { return nil }
        defer {
            remaining -= 1
            offset += ReportBlock.length
        }
        return ReportBlock(bytes, at: offset)
    }
}

extension RTCPPacketView {
    /// The sender information of a sender report.
    public var senderInfo: SenderInfo? {
        guard kind == .senderReport, bytes.byteCount >= 28 else { return nil }
        return SenderInfo(
            ntp: NTPTimestamp(rawValue: bytes.bigEndianUInt64(at: 8)),
            rtp: RTPTimestamp(rawValue: bytes.bigEndianUInt32(at: 16)),
            packetCount: bytes.bigEndianUInt32(at: 20),
            octetCount: bytes.bigEndianUInt32(at: 24)
        )
    }

    /// The blocks of a sender or receiver report.
    @_lifetime(copy self)
    public func makeReportBlockCursor() -> ReportBlockCursor {
        switch kind {
        case .senderReport: ReportBlockCursor(body(from: 28), count: count)
        case .receiverReport: ReportBlockCursor(body(from: 8), count: count)
        default: ReportBlockCursor(bytes, count: 0)
        }
    }
}
