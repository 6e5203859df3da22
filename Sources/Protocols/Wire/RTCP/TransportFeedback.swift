import Base

/// A transport-wide sequence number: counts the packets of all streams of a transport
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2). Order is modular.
public struct TransportSequenceNumber: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number on the wire.
    public let rawValue: UInt16
    /// Every 16-bit value is valid.
    public init(rawValue: UInt16) { self.rawValue = rawValue }
    /// Signed shortest distance; positive when `other` is newer.
    public func distance(to other: Self) -> Int { Int(Int16(bitPattern: other.rawValue &- rawValue)) }
    /// The number `count` later, modulo 2¹⁶.
    public func advanced(by count: Int) -> Self { Self(rawValue: rawValue &+ UInt16(truncatingIfNeeded: count)) }
    public var description: String { String(rawValue) }
}

/// The status of one packet in transport-wide feedback.
public struct TransportFeedbackStatus: Hashable, Sendable {
    /// The packet's number.
    public let sequence: TransportSequenceNumber
    /// The arrival time since the feedback's reference time, in ticks of 250 µs; `nil` when the packet was not
    /// received.
    public let arrivalTicks: Int?

    /// Creates the status of one packet.
    public init(sequence: TransportSequenceNumber, arrivalTicks: Int?) {
        self.sequence = sequence
        self.arrivalTicks = arrivalTicks
    }
}

/// The two-bit packet status symbols (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.1).
enum TransportFeedbackSymbol {
    static let notReceived: UInt16 = 0
    static let smallDelta: UInt16 = 1
    static let largeDelta: UInt16 = 2
    static let reserved: UInt16 = 3
}

/// Iterates over the packet statuses of one transport-wide feedback, in sequence order.
///
/// ```text
/// |      base sequence number     |      packet status count      |
/// |                 reference time                | fb pkt. count |
/// |          packet chunk         |         packet chunk          |
/// |         packet chunk          |  recv delta   |  recv delta   |
/// ```
public struct TransportFeedbackCursor: ~Escapable {
    static let headerLength = 8

    /// The first packet reported on.
    public let base: TransportSequenceNumber
    /// The number of packets reported on, 0…65,535.
    public let statusCount: Int
    /// The reference time of the deltas: signed, 24 bits, in units of 64 ms (256 ticks).
    public let referenceTime: Int
    /// One more than in the previous feedback, modulo 256.
    public let feedbackCount: UInt8

    private let bytes: RawSpan
    private var chunks: TransportFeedbackChunks
    private var deltaOffset: Int
    private var index = 0
    private var ticks = 0

    /// Reads the chunks to find the start of the deltas and to check that they are complete.
    @_lifetime(copy bytes)
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.headerLength else { return nil }
        base = TransportSequenceNumber(rawValue: bytes.bigEndianUInt16(at: 0))
        let statusCount = Int(bytes.bigEndianUInt16(at: 2))
        referenceTime = Int(Int32(bitPattern: bytes.bigEndianUInt24(at: 4) << 8) >> 8)
        feedbackCount = bytes.byte(at: 7)
        self.statusCount = statusCount
        self.bytes = bytes
        chunks = TransportFeedbackChunks()
        guard let deltas = TransportFeedbackChunks.deltas(bytes, statusCount: statusCount),
            deltas.length <= bytes.byteCount - deltas.offset
        else { return nil }
        deltaOffset = deltas.offset
    }

    /// The next packet's status; `nil` at the end. The reserved symbol means not received.
    @_lifetime(self: copy self)
    public mutating func next() -> TransportFeedbackStatus? {
        guard index < statusCount, let symbol = chunks.next(bytes) else { return nil }
        let sequence = base.advanced(by: index)
        index += 1
        switch symbol {
        case TransportFeedbackSymbol.smallDelta:
            ticks += Int(bytes.byte(at: deltaOffset))
            deltaOffset += 1
        case TransportFeedbackSymbol.largeDelta:
            ticks += Int(Int16(bitPattern: bytes.bigEndianUInt16(at: deltaOffset)))
            deltaOffset += 2
        default: return TransportFeedbackStatus(sequence: sequence, arrivalTicks: nil)
        }
        return TransportFeedbackStatus(sequence: sequence, arrivalTicks: ticks)
    }
}

/// Iterates over the status symbols of run length chunks and of status vector chunks with 14 one-bit or 7 two-bit
/// symbols (§3.1.3, §3.1.4).
struct TransportFeedbackChunks {
    private(set) var offset = TransportFeedbackCursor.headerLength
    private var chunk: UInt16 = 0
    private var remaining = 0

    /// The offset and the length of the deltas; `nil` when the chunks are truncated. A run is one step, so that a
    /// packet cannot make this slow.
    static func deltas(_ bytes: RawSpan, statusCount: Int) -> (offset: Int, length: Int)? {
        var length = 0
        var left = statusCount
        var chunks = TransportFeedbackChunks()
        while left > 0 {
            guard let symbol = chunks.next(bytes) else { return nil }
            var repeated = 1
            if chunks.chunk & 0x8000 == 0 {
                repeated = min(left, chunks.remaining + 1)
                chunks.remaining = 0
            }
            left -= repeated
            switch symbol {
            case TransportFeedbackSymbol.smallDelta: length += repeated
            case TransportFeedbackSymbol.largeDelta: length += 2 * repeated
            default: break
            }
        }
        return (chunks.offset, length)
    }

    /// The next symbol; `nil` when the chunks are truncated.
    mutating func next(_ bytes: RawSpan) -> UInt16? {
        while remaining == 0 {
            guard bytes.byteCount - offset >= 2 else { return nil }
            chunk = bytes.bigEndianUInt16(at: offset)
            offset += 2
            // A run of zero packets is legal and has no effect.
            remaining = chunk & 0x8000 == 0 ? Int(chunk & 0x1FFF) : chunk & 0x4000 == 0 ? 14 : 7
        }
        remaining -= 1
        if chunk & 0x8000 == 0 { return chunk >> 13 & 0x3 }
        return chunk & 0x4000 == 0 ? chunk >> UInt16(remaining) & 0x1 : chunk >> UInt16(2 * remaining) & 0x3
    }
}
