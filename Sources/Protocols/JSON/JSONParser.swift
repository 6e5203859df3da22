/// The limits of one JSON text.
public struct JSONLimits: Hashable, Sendable {
    /// The longest text, in bytes.
    public var bytesMax: Int
    /// The deepest nesting of arrays and objects. Real messages have fewer than ten levels.
    public var depthMax: Int
    /// The most arrays and objects. The statistics of a call with 100 streams have 1,000.
    public var containersMax: Int
    /// The most values in arrays and objects. The statistics of a call with 100 streams have 20,000.
    public var valuesMax: Int
    /// The longest member name, in bytes after unescaping. Names are hashed, and hashing a string takes time that is
    /// quadratic in a run of combining marks.
    public var nameBytesMax: Int
    /// The longest number in bytes. The largest `Double` has 309 digits.
    public var numberBytesMax: Int

    public init(
        bytesMax: Int = 4 << 20,
        depthMax: Int = 32,
        containersMax: Int = 4_096,
        valuesMax: Int = 65_536,
        nameBytesMax: Int = 256,
        numberBytesMax: Int = 512
    ) {
        self.bytesMax = bytesMax
        self.depthMax = depthMax
        self.containersMax = containersMax
        self.valuesMax = valuesMax
        self.nameBytesMax = nameBytesMax
        self.numberBytesMax = numberBytesMax
    }

    /// For authenticated clients, operators and webhooks.
    public static let standard = JSONLimits()
    /// For the first message of a client that is not authenticated yet.
    public static let unauthenticated = JSONLimits(bytesMax: 128 * 1024, containersMax: 2_048, valuesMax: 16_384)
    /// For the header of a token, which is read before the signature is verified (RFC 7515 §4); it has at most six
    /// short members.
    package static let tokenHeader = JSONLimits(bytesMax: 1_024, depthMax: 3, containersMax: 4, valuesMax: 16)
}

/// Parses one JSON text (RFC 8259) in linear time, whatever the depth.
///
/// Foundation's `JSONDecoder` takes time proportional to values × depth, because each type mismatch creates an error
/// with the whole path. `JSONSerialization` is linear, but accepts trailing commas and loses digits of numbers.
struct JSONParser {
    private let bytes: [UInt8]
    private let limits: JSONLimits
    private var index = 0
    private var containers = 0
    private var values = 0
    /// The number of bytes examined, for tests of the cost.
    private(set) var work = 0

    init(_ bytes: [UInt8], limits: JSONLimits) {
        self.bytes = bytes
        self.limits = limits
    }

    /// The text's value.
    mutating func parse() throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.bytesMax else { throw .tooComplex }
        skipSpace()
        let value = try self.value(depth: 0)
        skipSpace()
        guard index == bytes.count else { throw .malformed }
        return value
    }

    // MARK: Structure

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard let byte = peek() else { throw .malformed }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try string(bytesMax: .max))
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw .malformed
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        try open(depth: depth)
        var elements: [JSONValue] = []
        guard !take(UInt8(ascii: "]")) else { return elements }
        while true {
            try countValue()
            elements.append(try value(depth: depth))
            skipSpace()
            guard take(UInt8(ascii: ",")) else { break }
            skipSpace()
        }
        guard take(UInt8(ascii: "]")) else { throw .malformed }
        return elements
    }

    /// With duplicate names the last member counts, as in JavaScript.
    private mutating func object(depth: Int) throws(JSONError) -> [String: JSONValue] {
        try open(depth: depth)
        var members: [String: JSONValue] = [:]
        guard !take(UInt8(ascii: "}")) else { return members }
        while true {
            try countValue()
            guard peek() == UInt8(ascii: "\"") else { throw .malformed }
            let name = try string(bytesMax: limits.nameBytesMax)
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw .malformed }
            skipSpace()
            members[name] = try value(depth: depth)
            skipSpace()
            guard take(UInt8(ascii: ",")) else { break }
            skipSpace()
        }
        guard take(UInt8(ascii: "}")) else { throw .malformed }
        return members
    }

    /// Skips an opening bracket.
    private mutating func open(depth: Int) throws(JSONError) {
        index += 1
        containers += 1
        guard depth <= limits.depthMax, containers <= limits.containersMax else { throw .tooComplex }
        skipSpace()
    }

    private mutating func countValue() throws(JSONError) {
        values += 1
        guard values <= limits.valuesMax else { throw .tooComplex }
    }

    private mutating func literal(_ text: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let count = text.utf8.count
        guard bytes.count - index >= count, bytes[index..<index + count].elementsEqual(text.utf8) else {
            throw .malformed
        }
        index += count
        work += count
        return value
    }

    // MARK: Numbers

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = index
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        guard index - start <= limits.numberBytesMax else { throw .tooComplex }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else { throw .malformed }
        return .double(number)
    }

    /// At least one digit.
    private mutating func digits() throws(JSONError) {
        let start = index
        while let byte = peek(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        guard index > start else { throw .malformed }
    }

    // MARK: Strings

    private mutating func string(bytesMax: Int) throws(JSONError) -> String {
        index += 1
        var start = index
        // The text before the last escape; empty when there was none.
        var unescaped: [UInt8] = []
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""):
                guard index - start + unescaped.count <= bytesMax else { throw .tooComplex }
                let text: String? =
                    if unescaped.isEmpty {
                        String(validating: bytes[start..<index], as: UTF8.self)
                    } else {
                        String(validating: unescaped + bytes[start..<index], as: UTF8.self)
                    }
                work += index - start + unescaped.count
                guard let text else { throw .malformed }
                index += 1
                return text
            case UInt8(ascii: "\\"):
                unescaped += bytes[start..<index]
                work += index - start
                index += 1
                try escape(into: &unescaped)
                start = index
            case 0x00...0x1F: throw .malformed
            default: index += 1
            }
        }
        throw .malformed
    }

    /// Reads the rest of an escape, after the backslash.
    private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
        guard let byte = peek() else { throw .malformed }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var value = UInt32(try codeUnit())
            if (0xD800...0xDBFF).contains(value) {
                guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw .malformed }
                let low = UInt32(try codeUnit())
                guard (0xDC00...0xDFFF).contains(low) else { throw .malformed }
                value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(value) else { throw .malformed }
            text += UTF8.encode(scalar).map { Array($0) } ?? []
        default: throw .malformed
        }
    }

    /// Four hexadecimal digits.
    private mutating func codeUnit() throws(JSONError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = peek() else { throw .malformed }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw .malformed
            }
            index += 1
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    // MARK: Bytes

    private mutating func peek() -> UInt8? {
        work += 1
        return index < bytes.count ? bytes[index] : nil
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }
}
