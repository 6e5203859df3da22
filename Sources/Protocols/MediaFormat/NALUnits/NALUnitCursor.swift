import Base

/// A walk over the NAL units of a byte stream with start codes (H.264 annex B, H.265 annex B), at most
/// ``FormatLimits/unitsMax``. Bytes before the first start code are left out.
package struct AnnexBCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset: Int
    private var count = 0

    /// Creates a walk from the first start code.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan) {
        self.bytes = bytes
        offset = Self.startCode(in: bytes, from: 0)?.upperBound ?? bytes.byteCount
    }

    /// The next NAL unit, which is not empty, without start code and trailing zeros; `nil` after the last.
    @_lifetime(self: copy self)
    @_lifetime(copy self)
    package mutating func next() throws(FormatError) -> RawSpan? {
        while offset < bytes.byteCount {
            let start = offset
            let code = Self.startCode(in: bytes, from: start)
            var end = code?.lowerBound ?? bytes.byteCount
            offset = code?.upperBound ?? bytes.byteCount
            while end > start, bytes.byte(at: end - 1) == 0 { end -= 1 }
            guard end > start else { continue }
            guard count < FormatLimits.unitsMax else { throw .limit("NAL units of an access unit") }
            count += 1
            return bytes.extracting(start..<end)
        }
        return nil
    }

    /// The three bytes 0, 0, 1 at or behind an offset.
    private static func startCode(in bytes: RawSpan, from start: Int) -> Range<Int>? {
        var offset = start
        while offset + 3 <= bytes.byteCount {
            // The third byte tells how far to go: above 1 it is in no start code.
            switch bytes.byte(at: offset + 2) {
            case 0: offset += 1
            case 1 where bytes.byte(at: offset) == 0 && bytes.byte(at: offset + 1) == 0: return offset..<(offset + 3)
            default: offset += 3
            }
        }
        return nil
    }
}

/// A walk over NAL units with their lengths before them (ISO/IEC 14496-15 §5.3.3), at most ``FormatLimits/unitsMax``.
package struct LengthPrefixedCursor: ~Escapable {
    private let bytes: RawSpan
    private let lengthBytes: Int
    private var offset = 0
    private var count = 0

    /// - Parameter lengthBytes: 1, 2 or 4; another value counts as 4.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan, lengthBytes: Int) {
        self.bytes = bytes
        self.lengthBytes = lengthBytes == 1 || lengthBytes == 2 ? lengthBytes : 4
    }

    /// The next NAL unit, which is not empty; `nil` after the last.
    @_lifetime(self: copy self)
    @_lifetime(copy self)
    package mutating func next() throws(FormatError) -> RawSpan? {
        while offset < bytes.byteCount {
            guard bytes.byteCount - offset >= lengthBytes else { throw .truncated("the length of a NAL unit") }
            let length: Int =
                switch lengthBytes {
                case 1: Int(bytes.byte(at: offset))
                case 2: Int(bytes.bigEndianUInt16(at: offset))
                default: Int(bytes.bigEndianUInt32(at: offset))
                }
            let start = offset + lengthBytes
            guard length <= bytes.byteCount - start else { throw .truncated("a NAL unit") }
            offset = start + length
            guard length > 0 else { continue }
            guard count < FormatLimits.unitsMax else { throw .limit("NAL units of an access unit") }
            count += 1
            return bytes.extracting(start..<offset)
        }
        return nil
    }
}

/// Rewrites NAL units with lengths of four bytes, as ``MediaFrame/bytes`` has them, to start codes of four bytes.
package func makeAnnexB(lengthPrefixed bytes: RawSpan) throws(FormatError) -> [UInt8] {
    var stream: [UInt8] = []
    stream.reserveCapacity(bytes.byteCount)
    var cursor = LengthPrefixedCursor(bytes, lengthBytes: 4)
    while let unit = try cursor.next() {
        stream += [0, 0, 0, 1]
        stream.append(unit)
    }
    return stream
}
