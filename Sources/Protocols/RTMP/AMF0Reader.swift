import Base

/// Reads the values of a message one after the other.
package struct AMF0Reader: Sendable {
    /// Objects and arrays within each other. Encoders send two.
    package static let depthMax = 8
    /// Members of one object or array. OBS sends about 20 in its metadata.
    package static let membersMax = 64
    /// Values of one message, of all depths.
    package static let valuesMax = 512

    private let bytes: [UInt8]
    private var offset = 0
    private var values = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether all values were read.
    package var isAtEnd: Bool { offset >= bytes.count }

    /// Skips a byte of a value, if it is the next one.
    mutating func skip(_ byte: UInt8) {
        if offset < bytes.count, bytes[offset] == byte { offset += 1 }
    }

    /// The next value.
    package mutating func read() throws(AMF0Error) -> AMF0Value { try read(depth: 0) }

    /// The next value, which is a string.
    mutating func readName() throws(AMF0Error) -> String {
        guard let name = try read().string else { throw .missingName }
        return name
    }

    private mutating func read(depth: Int) throws(AMF0Error) -> AMF0Value {
        guard depth <= Self.depthMax else { throw .tooDeep }
        values += 1
        guard values <= Self.valuesMax else { throw .tooManyValues }
        let raw = try byte()
        switch AMF0Marker(rawValue: raw) {
        case .number: return .number(try double())
        case .boolean: return .boolean(try byte() != 0)
        case .string: return .string(try text(length: Int(try uint16())))
        case .longString: return .string(try text(length: Int(try uint32())))
        case .object: return .object(try members(depth: depth, isArray: false))
        case .null: return .null
        case .undefined: return .undefined
        case .ecmaArray:
            // The count is only a hint (AMF0 §2.10).
            _ = try uint32()
            return .ecmaArray(try members(depth: depth, isArray: true))
        case .strictArray: return .strictArray(try elements(depth: depth))
        case .date:
            let date = try double()
            // The time zone, which must be zero.
            _ = try uint16()
            return .date(date)
        case .objectEnd, nil: throw .unknownMarker(raw)
        }
    }

    /// - Parameter isArray: whether the end of the message also ends the members, as some old encoders have it.
    private mutating func members(depth: Int, isArray: Bool) throws(AMF0Error) -> [AMF0Member] {
        var members: [AMF0Member] = []
        while !(isArray && isAtEnd) {
            let length = Int(try uint16())
            if length == 0, offset < bytes.count, bytes[offset] == AMF0Marker.objectEnd.rawValue {
                offset += 1
                break
            }
            guard members.count < Self.membersMax else { throw .tooManyMembers }
            let name = try text(length: length)
            members.append(AMF0Member(name, try read(depth: depth + 1)))
        }
        return members
    }

    private mutating func elements(depth: Int) throws(AMF0Error) -> [AMF0Value] {
        let count = try uint32()
        guard count <= UInt32(Self.membersMax) else { throw .tooManyMembers }
        var elements: [AMF0Value] = []
        for _ in 0..<count { elements.append(try read(depth: depth + 1)) }
        return elements
    }

    // MARK: - Bytes

    /// Moves on by `count` bytes.
    /// - Returns: where they begin.
    private mutating func advance(_ count: Int) throws(AMF0Error) -> Int {
        guard count <= bytes.count - offset else { throw .truncated }
        defer { offset += count }
        return offset
    }

    private mutating func byte() throws(AMF0Error) -> UInt8 { bytes[try advance(1)] }

    private mutating func uint16() throws(AMF0Error) -> UInt16 {
        let start = try advance(2)
        return unsafe bytes.span.bytes.bigEndianUInt16(at: start)
    }

    private mutating func uint32() throws(AMF0Error) -> UInt32 {
        let start = try advance(4)
        return unsafe bytes.span.bytes.bigEndianUInt32(at: start)
    }

    private mutating func double() throws(AMF0Error) -> Double {
        let start = try advance(8)
        return Double(bitPattern: unsafe bytes.span.bytes.bigEndianUInt64(at: start))
    }

    private mutating func text(length: Int) throws(AMF0Error) -> String {
        let start = try advance(length)
        return String(decoding: bytes[start..<start + length], as: UTF8.self)
    }
}
