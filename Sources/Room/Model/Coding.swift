public import MediaTypes
public import Wire

// Codings of the types of other modules that a ``ChannelModel`` holds. Text is checked again when it is decoded.

extension MediaKind: Codable {}
extension CodecName: Codable {}
extension PayloadType: Codable {}
extension FeedbackTypes: Codable {}
extension PeerID: Codable {}
extension ListenerID: Codable {}

extension Decoder {
    func text<Value>(_ make: (String) -> Value?) throws -> Value {
        let container = try singleValueContainer()
        guard let value = make(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a \(Value.self)")
        }
        return value
    }
}

extension Encoder {
    func encode(text: String) throws {
        var container = singleValueContainer()
        try container.encode(text)
    }
}

extension MID: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.text { MID($0) } }
    public func encode(to encoder: any Encoder) throws { try encoder.encode(text: value) }
}

extension RID: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.text { RID($0) } }
    public func encode(to encoder: any Encoder) throws { try encoder.encode(text: value) }
}

extension ChannelName: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.text { ChannelName($0) } }
    public func encode(to encoder: any Encoder) throws { try encoder.encode(text: value) }
}

extension ParticipantID: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.text { ParticipantID($0) } }
    public func encode(to encoder: any Encoder) throws { try encoder.encode(text: value) }
}

extension ChannelSessionID: Codable {
    public init(from decoder: any Decoder) throws { self = try decoder.text { ChannelSessionID($0) } }
    public func encode(to encoder: any Encoder) throws { try encoder.encode(text: value) }
}

extension Instant: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(nanoseconds: try decoder.singleValueContainer().decode(Int64.self))
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(nanoseconds)
    }
}

extension IPAddress: Codable {
    private enum CodingKeys: CodingKey { case high, low }
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            high: try container.decode(UInt64.self, forKey: .high),
            low: try container.decode(UInt64.self, forKey: .low)
        )
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(high, forKey: .high)
        try container.encode(low, forKey: .low)
    }
}

extension TrackID: Codable {
    private enum CodingKeys: CodingKey { case peer, mid }
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            peer: try container.decode(PeerID.self, forKey: .peer),
            mid: try container.decode(MID.self, forKey: .mid)
        )
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(peer, forKey: .peer)
        try container.encode(mid, forKey: .mid)
    }
}

extension LayerChoice: Codable {
    private enum CodingKeys: CodingKey { case level, isNothing }
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let level = try container.decodeIfPresent(Int.self, forKey: .level) {
            self = .level(level)
        } else {
            self = try container.decode(Bool.self, forKey: .isNothing) ? .nothing : .richest
        }
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .level(let level): try container.encode(level, forKey: .level)
        case .richest: try container.encode(false, forKey: .isNothing)
        case .nothing: try container.encode(true, forKey: .isNothing)
        }
    }
}

extension FormatParameter: Codable {
    private enum CodingKeys: CodingKey { case key, value }
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            key: try container.decode(String.self, forKey: .key),
            value: try container.decode(String.self, forKey: .value)
        )
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(key, forKey: .key)
        try container.encode(value, forKey: .value)
    }
}

extension CodecParameters: Codable {
    private enum CodingKeys: CodingKey {
        case name, payloadType, rtxPayloadType, clockRate, channels, format, feedback
    }
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            name: try container.decode(CodecName.self, forKey: .name),
            payloadType: try container.decode(PayloadType.self, forKey: .payloadType),
            rtxPayloadType: try container.decodeIfPresent(PayloadType.self, forKey: .rtxPayloadType),
            clockRate: try container.decode(Int.self, forKey: .clockRate),
            channels: try container.decode(Int.self, forKey: .channels),
            format: try container.decode([FormatParameter].self, forKey: .format),
            feedback: try container.decode(FeedbackTypes.self, forKey: .feedback)
        )
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(payloadType, forKey: .payloadType)
        try container.encodeIfPresent(rtxPayloadType, forKey: .rtxPayloadType)
        try container.encode(clockRate, forKey: .clockRate)
        try container.encode(channels, forKey: .channels)
        try container.encode(format, forKey: .format)
        try container.encode(feedback, forKey: .feedback)
    }
}
