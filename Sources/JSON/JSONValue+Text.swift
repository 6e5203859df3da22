#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Why a text is no JSON that can be taken.
public enum JSONError: Error, Hashable, Sendable {
    /// It breaks RFC 8259, is no UTF-8, or holds a number that is too large.
    case malformed
    /// It has more than its ``JSONLimits`` permit.
    case tooComplex
}

extension JSONValue {
    /// Parses one JSON text, in a time that grows with its length and with nothing else.
    public init(parsing bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
        var parser = JSONParser(bytes, limits: limits)
        self = try parser.parse()
    }

    /// As ``init(parsing:limits:)-([UInt8],_)`` for a text that is known to be Unicode.
    public init(parsing text: String, limits: JSONLimits = .standard) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), limits: limits)
    }

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
