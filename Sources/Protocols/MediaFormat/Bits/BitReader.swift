import Base

/// Reads bits, most significant first, and the variable codes of H.264, H.265 and AV1. Throws where the bytes end.
struct BitReader: ~Escapable {
    private let bytes: RawSpan
    private(set) var position = 0
    /// The name of what is read, for errors.
    private let part: String

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ part: String) {
        self.bytes = bytes
        self.part = part
    }

    /// The bits that are left.
    var remaining: Int { 8 * bytes.byteCount - position }

    /// The next `count` bits, 0…32.
    @_lifetime(self: copy self)
    mutating func bits(_ count: Int) throws(FormatError) -> UInt32 {
        guard (0...32).contains(count), count <= remaining else { throw .truncated(part) }
        var value: UInt32 = 0
        for index in position..<(position + count) {
            value = value << 1 | UInt32(bytes.byte(at: index >> 3) >> UInt8(7 - index & 7) & 1)
        }
        position += count
        return value
    }

    @_lifetime(self: copy self)
    mutating func flag() throws(FormatError) -> Bool { try bits(1) == 1 }

    @_lifetime(self: copy self)
    mutating func skip(_ count: Int) throws(FormatError) {
        guard count >= 0, count <= remaining else { throw .truncated(part) }
        position += count
    }

    /// ue(v), an Exp-Golomb code of at most 32 bits (H.264 §9.1, H.265 §9.2).
    @_lifetime(self: copy self)
    mutating func unsigned() throws(FormatError) -> UInt32 {
        var zeros = 0
        while try !flag() {
            zeros += 1
            guard zeros < 32 else { throw .invalid("an Exp-Golomb code") }
        }
        return (1 as UInt32) << UInt32(zeros) - 1 + (try bits(zeros))
    }

    /// ue(v) that must be at most `max`.
    @_lifetime(self: copy self)
    mutating func unsigned(max: UInt32, _ field: String) throws(FormatError) -> Int {
        let value = try unsigned()
        guard value <= max else { throw .invalid(field) }
        return Int(value)
    }

    /// se(v), a signed Exp-Golomb code (H.264 §9.1.1).
    @_lifetime(self: copy self)
    mutating func signed() throws(FormatError) -> Int {
        let code = Int(try unsigned())
        return code & 1 == 1 ? code / 2 + 1 : -(code / 2)
    }

    /// uvlc(), AV1 §4.10.3, of less than 32 leading zeros.
    @_lifetime(self: copy self)
    mutating func uvlc() throws(FormatError) -> UInt32 { try unsigned() }
}

/// Writes bits, most significant first.
struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var used = 0

    /// Appends the low `count` bits, 0…32.
    mutating func append(_ value: some BinaryInteger, bits count: Int) {
        let value = UInt32(truncatingIfNeeded: value)
        for index in stride(from: count - 1, through: 0, by: -1) {
            if used & 7 == 0 { bytes.append(0) }
            let bit = UInt8(truncatingIfNeeded: value >> UInt32(index)) & 1
            bytes[bytes.count - 1] |= bit << UInt8(7 - used & 7)
            used += 1
        }
    }
    mutating func append(_ flag: Bool) { append(flag ? 1 : 0, bits: 1) }
}

/// Copies a NAL unit without its emulation prevention bytes (H.264 §7.3.1, H.265 §7.3.1.1).
/// - Parameter bytesMax: the bytes of the unit that are looked at.
func removeEmulationPrevention(_ unit: RawSpan, bytesMax: Int) -> [UInt8] {
    var payload: [UInt8] = []
    let count = min(unit.byteCount, bytesMax)
    payload.reserveCapacity(count)
    var zeros = 0
    for offset in 0..<count {
        let byte = unit.byte(at: offset)
        if zeros >= 2, byte == 3 {
            zeros = 0
            continue
        }
        zeros = byte == 0 ? zeros + 1 : 0
        payload.append(byte)
    }
    return payload
}
