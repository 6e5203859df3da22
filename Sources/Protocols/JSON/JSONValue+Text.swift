#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Why a text was not accepted as JSON.
public enum JSONError: Error, Hashable, Sendable {
    /// It violates RFC 8259, is not UTF-8, or contains a number that is too large.
    case malformed
    /// It exceeds its ``JSONLimits``.
    case tooComplex
}

extension JSONValue {
    /// Parses one JSON text in linear time.
    public init(parsing bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
        var parser = JSONParser(bytes, limits: limits)
        self = try parser.parse()
    }

    /// Parses one JSON text; see ``init(parsing:limits:)-([UInt8],_)``.
    public init(parsing text: String, limits: JSONLimits = .standard) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), limits: limits)
    }

    /// The value as JSON text without white space and with sorted members, so that equal values have equal texts.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// ``text`` in UTF-8.
    public var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding fails only for a number that is not finite.
        return (try? encoder.encode(self)).map { Array($0) } ?? Array("null".utf8)
    }
}

extension JSONValue: CustomStringConvertible {
    public var description: String { text }
}

extension JSONValue: Encodable {
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
