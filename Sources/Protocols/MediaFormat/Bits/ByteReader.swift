import Base

/// A cursor over bytes that throws where they end. Integers are big-endian unless the name says otherwise.
package struct ByteReader: ~Escapable {
    private let bytes: RawSpan
    /// The offset of the next byte.
    package private(set) var offset = 0
    /// The name of what is read, for errors.
    private let part: String

    /// Creates a cursor at the first byte.
    /// - Parameter part: the name of what is read, for errors.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan, _ part: String) {
        self.bytes = bytes
        self.part = part
    }

    /// The bytes that are left.
    package var remaining: Int { bytes.byteCount - offset }

    /// The next byte.
    @_lifetime(self: copy self)
    package mutating func uint8() throws(FormatError) -> UInt8 {
        let start = try advance(1)
        return bytes.byte(at: start)
    }
    /// The next two bytes.
    @_lifetime(self: copy self)
    package mutating func uint16() throws(FormatError) -> UInt16 {
        let start = try advance(2)
        return bytes.bigEndianUInt16(at: start)
    }
    /// The next three bytes, in the low 24 bits.
    @_lifetime(self: copy self)
    package mutating func uint24() throws(FormatError) -> UInt32 {
        let start = try advance(3)
        return bytes.bigEndianUInt24(at: start)
    }
    /// Three bytes of two's complement.
    @_lifetime(self: copy self)
    package mutating func int24() throws(FormatError) -> Int32 {
        Int32(bitPattern: try uint24() << 8) >> 8
    }
    /// The next four bytes.
    @_lifetime(self: copy self)
    package mutating func uint32() throws(FormatError) -> UInt32 {
        let start = try advance(4)
        return bytes.bigEndianUInt32(at: start)
    }
    /// The next eight bytes.
    @_lifetime(self: copy self)
    package mutating func uint64() throws(FormatError) -> UInt64 {
        let start = try advance(8)
        return bytes.bigEndianUInt64(at: start)
    }
    /// The next `count` bytes. A negative count throws as one that is too large does.
    @_lifetime(self: copy self)
    @_lifetime(copy self)
    package mutating func span(_ count: Int) throws(FormatError) -> RawSpan {
        let start = try advance(count)
        return bytes.extracting(start..<(start + count))
    }
    /// All bytes that are left.
    @_lifetime(self: copy self)
    @_lifetime(copy self)
    package mutating func rest() -> RawSpan {
        let start = offset
        offset = bytes.byteCount
        return bytes.extracting(start..<bytes.byteCount)
    }
    /// Moves past `count` bytes.
    @_lifetime(self: copy self)
    package mutating func skip(_ count: Int) throws(FormatError) {
        _ = try advance(count)
    }

    /// - Returns: the offset before the move.
    @_lifetime(self: copy self)
    private mutating func advance(_ count: Int) throws(FormatError) -> Int {
        guard count >= 0, count <= bytes.byteCount - offset else { throw .truncated(part) }
        let start = offset
        offset += count
        return start
    }
}

/// Four ASCII characters that name a codec or a box.
package struct FourCC: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The characters, the first in the highest byte.
    package let rawValue: UInt32
    /// The code of four bytes.
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The first four bytes of the text; a shorter one is filled with spaces.
    package init(stringLiteral text: StaticString) {
        var value: UInt32 = 0
        var count = 0
        for byte in text.description.utf8.prefix(4) {
            value = value << 8 | UInt32(byte)
            count += 1
        }
        while count < 4 {
            value = value << 8 | 0x20
            count += 1
        }
        rawValue = value
    }

    /// The characters, with a dot for each byte that is not printable.
    package var description: String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: rawValue >> UInt32(24 - 8 * $0)) }
        return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x2E }, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Appends the low 24 bits.
    mutating func append(bigEndian24 value: UInt32) {
        append(UInt8(truncatingIfNeeded: value >> 16))
        append(bigEndian: UInt16(truncatingIfNeeded: value))
    }
    mutating func append(_ code: FourCC) { append(bigEndian: code.rawValue) }
    mutating func append(littleEndian value: UInt16) {
        append(UInt8(truncatingIfNeeded: value))
        append(UInt8(truncatingIfNeeded: value >> 8))
    }
    mutating func append(littleEndian value: UInt32) {
        append(littleEndian: UInt16(truncatingIfNeeded: value))
        append(littleEndian: UInt16(truncatingIfNeeded: value >> 16))
    }
    /// Appends all of `source`.
    mutating func append(_ source: RawSpan) {
        unsafe source.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
    /// Overwrites four existing bytes; does nothing where they do not exist.
    mutating func store(bigEndian value: UInt32, at offset: Int) {
        guard offset >= 0, offset + 4 <= count else { return }
        store(bigEndian: UInt16(truncatingIfNeeded: value >> 16), at: offset)
        store(bigEndian: UInt16(truncatingIfNeeded: value), at: offset + 2)
    }
}
