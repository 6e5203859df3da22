/// A JSON value (RFC 8259): what clients, webhooks and operators say, where the node does not know or not trust its shape.
///
/// The order of an object's members is not kept.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// A whole number that fits.
    case integer(Int64)
    /// Any other number; it is finite.
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// A whole number; the nearest one that fits.
    @_disfavoredOverload
    public static func integer(_ value: some BinaryInteger) -> Self { .integer(Int64(clamping: value)) }

    /// A number; `null` when it is not finite, which JSON cannot say.
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

    /// `nil` unless the value is a whole number that fits.
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

    /// The member of this name; `nil` when there is none, or when the value is no object.
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

    /// Of members with one name the last counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
