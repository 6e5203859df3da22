#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Why a text is no JSON that can be taken.
public enum JSONError: Error, Hashable, Sendable {
    /// It breaks RFC 8259, is no UTF-8, or holds a number that is too large.
    case malformed
    /// Arrays and objects lie deeper in one another than ``JSONValue/depthMax``, there are more than
    /// ``JSONValue/containersMax`` of them, or they hold more than ``JSONValue/valuesMax`` values.
    case tooComplex
}

extension JSONValue {
    /// How deep arrays and objects may lie in one another: real messages stay below ten.
    public static let depthMax = 32
    /// How many arrays and objects one text may hold: the statistics of a call of a hundred streams have a thousand.
    public static let containersMax = 4_096
    /// How many values the arrays and objects of one text may hold: the statistics of a call of a hundred
    /// streams have 20,000.
    public static let valuesMax = 65_536

    /// Parses one JSON text. The caller bounds its length.
    ///
    /// The decoder's time grows with the product of containers and depth, to half a minute for 256 KiB of brackets, and
    /// a value takes it longer than a hundred bytes of a string, so all are bounded before it sees the text.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        guard Self.isSimple(bytes) else { throw .tooComplex }
        do {
            self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
        } catch {
            throw .malformed
        }
    }

    /// Whether the brackets and commas outside strings are within the bounds.
    private static func isSimple(_ bytes: [UInt8]) -> Bool {
        var (depth, containers, values) = (0, 0, 1)
        var (isInString, isEscaped) = (false, false)
        for byte in bytes {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\") where isInString: isEscaped = true
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                guard !isInString else { continue }
                depth += 1
                containers += 1
                guard depth <= depthMax, containers <= containersMax else { return false }
            case UInt8(ascii: ","):
                guard !isInString else { continue }
                values += 1
                guard values <= valuesMax else { return false }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                if !isInString { depth -= 1 }
            default: break
            }
        }
        return true
    }

    /// As ``init(parsing:)-([UInt8])`` for a text that is known to be Unicode.
    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }

    /// The value as JSON text without spaces, members sorted by name, so that equal values have equal texts.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// ``text`` in UTF-8.
    public var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a number that is not finite could not be encoded.
        return (try? encoder.encode(self)).map { Array($0) } ?? Array("null".utf8)
    }
}

extension JSONValue: CustomStringConvertible {
    public var description: String { text }
}

extension JSONValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if var elements = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(JSONValue.self)) }
            self = .array(array)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}
