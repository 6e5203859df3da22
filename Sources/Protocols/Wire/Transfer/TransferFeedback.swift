import Base

/// What one end of a link between nodes tells the other, as contents of a datagram: what arrived and what is missing, and
/// times from which both ends compute the round trip and the difference of their clocks.
///
/// | bytes | |
/// |---|---|
/// | 8 | sent at |
/// | 8 | echo |
/// | 8 | echo delay |
/// | 8 | newest |
/// | 1 | ranges |
/// | 4 + 2 | for each: the distance of its first counter below the newest, its length |
public struct TransferFeedback: Hashable, Sendable {
    /// Datagrams that were not received, by their counters.
    public struct Missing: Hashable, Sendable, BitwiseCopyable {
        /// The first counter.
        public var first: UInt64
        /// Counters, at least 1.
        public var count: UInt16
        public init(first: UInt64, count: UInt16) {
            self.first = first
            self.count = count
        }
    }

    /// The most ranges of one report.
    public static let missingMax = 32
    private static let fixedBytes = 33
    private static let rangeBytes = 6
    /// The most bytes of a report.
    public static let bytesMax = fixedBytes + missingMax * rangeBytes

    /// The sender's wall clock when it sent the report, in nanoseconds.
    public var sentAt: Int64
    /// ``sentAt`` of the newest report that the sender received; `nil` before the first.
    public var echo: Int64?
    /// Nanoseconds between the arrival of that report and the sending of this one.
    public var echoDelay: Int64
    /// The greatest counter that the sender received; 0 before the first.
    public var newest: UInt64
    /// In any order, ``missingMax`` at most, all of them below ``newest``.
    public var missing: [Missing]

    public init(sentAt: Int64, echo: Int64?, echoDelay: Int64, newest: UInt64, missing: [Missing] = []) {
        self.sentAt = sentAt
        self.echo = echo
        self.echoDelay = echoDelay
        self.newest = newest
        self.missing = missing
    }

    /// Writes the report to `offset`. Ranges that are not below ``newest`` or too far below it are left out.
    /// - Returns: the bytes written; `nil` without room for a report of ``bytesMax``.
    @_lifetime(target: copy target)
    public func encode(at offset: Int, of target: inout MutableRawSpan) -> Int? {
        guard offset >= 0, target.byteCount - offset >= Self.bytesMax else { return nil }
        target.store(bigEndian: UInt64(bitPattern: sentAt), at: offset)
        target.store(bigEndian: UInt64(bitPattern: echo ?? 0), at: offset + 8)
        target.store(bigEndian: UInt64(bitPattern: echoDelay), at: offset + 16)
        target.store(bigEndian: newest, at: offset + 24)
        var count: UInt8 = 0
        var place = offset + Self.fixedBytes
        for range in missing.prefix(Self.missingMax) {
            guard range.count > 0, newest >= range.first, newest - range.first >= UInt64(range.count),
                let distance = UInt32(exactly: newest - range.first)
            else { continue }
            target.store(bigEndian: distance, at: place)
            target.store(bigEndian: range.count, at: place + 4)
            place += Self.rangeBytes
            count += 1
        }
        target.store(count, at: offset + 32)
        return place - offset
    }

    /// Reads a report; `nil` when the bytes are none.
    public init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.fixedBytes else { return nil }
        let count = Int(bytes.byte(at: 32))
        guard count <= Self.missingMax, bytes.byteCount == Self.fixedBytes + count * Self.rangeBytes else { return nil }
        sentAt = Int64(bitPattern: bytes.bigEndianUInt64(at: 0))
        let echo = Int64(bitPattern: bytes.bigEndianUInt64(at: 8))
        self.echo = echo == 0 ? nil : echo
        echoDelay = Int64(bitPattern: bytes.bigEndianUInt64(at: 16))
        newest = bytes.bigEndianUInt64(at: 24)
        missing = []
        for index in 0..<count {
            let place = Self.fixedBytes + index * Self.rangeBytes
            let distance = UInt64(bytes.bigEndianUInt32(at: place))
            let length = bytes.bigEndianUInt16(at: place + 4)
            guard length > 0, distance >= UInt64(length), distance <= newest else { return nil }
            missing.append(Missing(first: newest - distance, count: length))
        }
    }
}
