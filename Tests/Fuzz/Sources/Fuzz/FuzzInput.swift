import Base

/// Reads decisions and messages from the bytes of an input. After the end everything reads as zero or empty, so every
/// input is valid.
struct FuzzInput {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: RawSpan) { self.bytes = bytes.array() }

    var isAtEnd: Bool { offset >= bytes.count }

    mutating func byte() -> UInt8 {
        guard offset < bytes.count else { return 0 }
        defer { offset += 1 }
        return bytes[offset]
    }
    mutating func uint16() -> UInt16 {
        let high = UInt16(byte())
        return high << 8 | UInt16(byte())
    }
    mutating func uint32() -> UInt32 {
        let high = UInt32(uint16())
        return high << 16 | UInt32(uint16())
    }
    /// 0..<`limit`, from one byte.
    mutating func choice(_ limit: Int) -> Int { Int(byte()) % limit }
    mutating func flag() -> Bool { byte() & 1 != 0 }
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[choice(elements.count)] }

    /// A length of two bytes, then at most as many bytes.
    mutating func chunk(max: Int = 1_400) -> [UInt8] {
        let count = min(Int(uint16()) % (max + 1), bytes.count - offset)
        defer { offset += count }
        return Array(bytes[offset..<offset + count])
    }
    /// The rest of the input.
    mutating func rest() -> [UInt8] {
        defer { offset = bytes.count }
        return Array(bytes[offset...])
    }
}

/// Writes what ``FuzzInput`` reads, for seeds.
struct SeedWriter {
    private(set) var bytes: [UInt8] = []

    mutating func byte(_ value: some BinaryInteger) { bytes.append(UInt8(truncatingIfNeeded: value)) }
    mutating func uint16(_ value: some BinaryInteger) { bytes.append(bigEndian: UInt16(truncatingIfNeeded: value)) }
    mutating func uint32(_ value: some BinaryInteger) { bytes.append(bigEndian: UInt32(truncatingIfNeeded: value)) }
    mutating func chunk(_ value: [UInt8]) {
        uint16(value.count)
        bytes += value
    }

    static func make(_ body: (inout SeedWriter) -> Void) -> [UInt8] {
        var writer = SeedWriter()
        body(&writer)
        return writer.bytes
    }
}

/// A seeded generator (SplitMix64): the same input runs the same way.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}

/// Passes `bytes` to `body` as a span.
func withSpan<Result>(_ bytes: [UInt8], _ body: (RawSpan) throws -> Result) rethrows -> Result {
    try body(unsafe bytes.span.bytes)
}
