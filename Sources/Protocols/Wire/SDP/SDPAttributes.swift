/// The direction of a media section, as seen by the author of the description (RFC 8866 §6.7).
public enum MediaDirection: String, Hashable, Sendable, CaseIterable {
    case sendrecv, sendonly, recvonly, inactive

    public var sends: Bool { self == .sendrecv || self == .sendonly }
    public var receives: Bool { self == .sendrecv || self == .recvonly }
}

/// `a=setup` (RFC 8842 §5.3): which side starts the DTLS handshake.
public enum SetupRole: String, Hashable, Sendable, CaseIterable { case active, passive, actpass, holdconn }

/// `a=rtpmap:<pt> <name>/<clock>[/<channels>]` (RFC 8866 §6.6).
public struct RTPMapAttribute: Hashable, Sendable {
    public var payloadType: PayloadType
    public var encodingName: String
    /// In Hz.
    public var clockRate: Int
    /// 1 when the line has none.
    public var channels: Int

    public init(payloadType: PayloadType, encodingName: String, clockRate: Int, channels: Int = 1) {
        self.payloadType = payloadType
        self.encodingName = encodingName
        self.clockRate = clockRate
        self.channels = channels
    }

    /// From the attribute's value; `nil` when it is malformed.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 2)
        guard fields.count == 2, let payloadType = UInt8(fields[0]).flatMap(PayloadType.init(rawValue:)) else {
            return nil
        }
        let parts = fields[1].parts(separatedBy: "/", maxSplits: 3)
        guard parts.count == 2 || parts.count == 3, let clockRate = UInt32(parts[1]), clockRate > 0 else { return nil }
        let channels = parts.count == 3 ? UInt8(parts[2]) : 1
        guard let channels, channels > 0 else { return nil }
        self.init(
            payloadType: payloadType,
            encodingName: String(parts[0]),
            clockRate: Int(clockRate),
            channels: Int(channels)
        )
    }

    /// The attribute's value.
    public var text: String {
        "\(payloadType) \(encodingName)/\(clockRate)" + (channels > 1 ? "/\(channels)" : "")
    }
}

/// `a=fmtp:<pt> <key>=<value>;…` (RFC 8866 §6.15).
public struct FormatParametersAttribute: Hashable, Sendable {
    /// The most parameters; no payload format that the server negotiates has half as many.
    public static let parametersMax = 32

    public var payloadType: PayloadType
    /// In the order of the line. Keys are lower case. A parameter without `=` (as `111/111` of RED) has an empty key;
    /// one with an empty name before `=` is ignored.
    public var parameters: [Parameter]

    /// One parameter of the line.
    public struct Parameter: Hashable, Sendable {
        public var key: String
        public var value: String
        public init(key: String, value: String) {
            self.key = key
            self.value = value
        }
    }

    public init(payloadType: PayloadType, parameters: [Parameter]) {
        self.payloadType = payloadType
        self.parameters = parameters
    }

    /// From the attribute's value; `nil` without a payload type or with more than ``parametersMax`` parameters.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 1)
        guard let first = fields.first, let payloadType = UInt8(first).flatMap(PayloadType.init(rawValue:)) else {
            return nil
        }
        parameters = []
        self.payloadType = payloadType
        guard fields.count == 2 else { return }
        let parts = fields[1].parts(separatedBy: ";", maxSplits: Self.parametersMax)
        guard parts.count <= Self.parametersMax else { return nil }
        for part in parts {
            let trimmed = part.trimmingSpaces
            guard !trimmed.isEmpty else { continue }
            guard let (name, value) = trimmed.divided(at: "=") else {
                parameters.append(Parameter(key: "", value: String(trimmed)))
                continue
            }
            let key = name.trimmingSpaces
            // A value without a name is ignored.
            guard !key.isEmpty else { continue }
            parameters.append(Parameter(key: key.lowercased(), value: String(value.trimmingSpaces)))
        }
    }

    /// The attribute's value.
    public var text: String {
        let list = parameters.map { $0.key.isEmpty ? $0.value : "\($0.key)=\($0.value)" }
        return "\(payloadType) \(list.joined(separator: ";"))"
    }
}

/// `a=rtcp-fb:<pt|*> <feedback>` (RFC 4585 §4.2).
public struct FeedbackAttribute: Hashable, Sendable {
    /// `nil` for `*`: every payload type of the section.
    public var payloadType: PayloadType?
    /// Such as `nack pli`, lower case, single spaces.
    public var feedback: String

    public init(payloadType: PayloadType?, feedback: String) {
        self.payloadType = payloadType
        self.feedback = feedback
    }

    /// From the attribute's value; `nil` when it is malformed.
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 8)
        guard fields.count >= 2 else { return nil }
        if fields[0] == "*" {
            payloadType = nil
        } else {
            guard let parsed = UInt8(fields[0]).flatMap(PayloadType.init(rawValue:)) else { return nil }
            payloadType = parsed
        }
        feedback = fields.dropFirst().joined(separator: " ").lowercased()
    }

    /// The attribute's value.
    public var text: String { "\(payloadType.map(\.description) ?? "*") \(feedback)" }
}

/// `a=extmap:<id>[/<direction>] <uri>` (RFC 8285 §8).
public struct ExtensionMapAttribute: Hashable, Sendable {
    public var id: HeaderExtensionID
    /// `nil` when the line has none; then that of the section applies.
    public var direction: MediaDirection?
    public var uri: String

    public init(id: HeaderExtensionID, direction: MediaDirection? = nil, uri: String) {
        self.id = id
        self.direction = direction
        self.uri = uri
    }

    /// From the attribute's value; `nil` when it is malformed or its identifier is above 255. Offerers use 4096 and up
    /// when no identifier is left (RFC 8285 §8).
    public init?(_ value: String) {
        let fields = value.parts(separatedBy: " ", maxSplits: 2)
        guard fields.count >= 2 else { return nil }
        let parts = fields[0].parts(separatedBy: "/", maxSplits: 1)
        guard let first = parts.first, let id = UInt8(first).flatMap(HeaderExtensionID.init(rawValue:)) else {
            return nil
        }
        if parts.count == 2 {
            guard let parsed = MediaDirection(rawValue: String(parts[1])) else { return nil }
            direction = parsed
        } else {
            direction = nil
        }
        self.id = id
        uri = String(fields[1])
    }

    /// The attribute's value.
    public var text: String { "\(id)\(direction.map { "/\($0.rawValue)" } ?? "") \(uri)" }
}

extension StringProtocol where SubSequence == Substring {
    /// The parts that are not empty. What follows the last of `maxSplits` separators is one part.
    ///
    /// SDP is divided by bytes: a separator before a combining mark is no character of its own, and characters take four times
    /// as long to find.
    /// - Parameter separator: An ASCII character.
    func parts(separatedBy separator: Unicode.Scalar, maxSplits: Int) -> [Substring] {
        self[...].utf8.split(separator: UInt8(ascii: separator), maxSplits: maxSplits).map(Substring.init)
    }

    /// What is before the first separator, and what follows it; `nil` without a separator.
    /// - Parameter separator: An ASCII character.
    func divided(at separator: Unicode.Scalar) -> (Substring, Substring)? {
        guard let index = utf8.firstIndex(of: UInt8(ascii: separator)) else { return nil }
        return (self[..<index], self[utf8.index(after: index)...])
    }

    /// Without spaces and tabs at both ends.
    var trimmingSpaces: Substring {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var rest = self[...]
        while let last = rest.utf8.last, isSpace(last) { rest.unicodeScalars.removeLast() }
        while let first = rest.utf8.first, isSpace(first) { rest.unicodeScalars.removeFirst() }
        return rest
    }
}
