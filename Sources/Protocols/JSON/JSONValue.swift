/// A JSON value (RFC 8259) from a client, a webhook or an operator.
///
/// The order of an object's members is not kept.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// An integer that fits in 64 bits.
    case integer(Int64)
    /// Any other number; always finite.
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// An integer, clamped to 64 bits.
    @_disfavoredOverload
    public static func integer(_ value: some BinaryInteger) -> Self { .integer(Int64(clamping: value)) }

    /// A number; `null` when it is not finite, because JSON cannot represent it.
    public static func double(_ value: Double) -> Self {
        if let whole = Int64(exactly: value) { return .integer(whole) }
        return value.isFinite ? .number(value) : .null
    }

    public var isNull: Bool { self == .null }

    /// `nil` unless the value is a string.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// `nil` unless the value is `true` or `false`.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// `nil` unless the value is an integer that fits in an `Int`.
    public var integer: Int? {
        switch self {
        case .integer(let value): Int(exactly: value)
        case .number(let value): Int(exactly: value)
        default: nil
        }
    }

    /// `nil` unless the value is a number.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// `nil` unless the value is an array.
    public var array: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// `nil` unless the value is an object.
    public var object: [String: JSONValue]? {
        if case .object(let value) = self { value } else { nil }
    }

    /// The member with this name; `nil` when there is none, or when the value is not an object.
    public subscript(_ name: String) -> JSONValue? { object?[name] }
}

// MARK: - Literals

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral {
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension JSONValue: ExpressibleByFloatLiteral {
    public init(floatLiteral value: Double) { self = .double(value) }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self = .string(value) }
}

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// With duplicate names the last member counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
