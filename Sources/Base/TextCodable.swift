/// A value that is written as text. It is encoded as that text, and decoding checks the text again.
public protocol TextCodable: Codable {
    var value: String { get }
    /// `nil` when `value` is not the text of one.
    init?(_ value: String)
}

extension TextCodable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let decoded = Self(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a \(Self.self)")
        }
        self = decoded
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
