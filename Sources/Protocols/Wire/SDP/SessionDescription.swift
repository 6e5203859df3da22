/// An `a=` line: a property (`a=rtcp-mux`, no value) or a name with a value (RFC 8866 §5.13).
public struct SDPAttribute: Hashable, Sendable {
    public var name: String
    /// The text after the first colon; `nil` for a property. An empty value differs from no value.
    public var value: String?

    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

/// Lookups by name in a list of attributes.
extension [SDPAttribute] {
    /// The value of the first attribute with this name; `nil` if there is none or it has no value. O(n).
    public func value(of name: String) -> String? { first { $0.name == name }?.value }

    /// Whether there is an attribute with this name, with or without a value. O(n).
    public func has(_ name: String) -> Bool { contains { $0.name == name } }

    /// The values of all attributes with this name, in order. O(n).
    public func values(of name: String) -> [String] { compactMap { $0.name == name ? $0.value : nil } }
}

/// The `o=` line (RFC 8866 §5.2).
public struct SDPOrigin: Hashable, Sendable {
    public var username: String
    public var sessionID: String
    /// Incremented with each description of the same session (RFC 9429 §5.2.2).
    public var version: String
    /// Network type, address type and address, such as `IN IP4 127.0.0.1`.
    public var address: String

    public init(username: String = "-", sessionID: String, version: String, address: String = "IN IP4 127.0.0.1") {
        self.username = username
        self.sessionID = sessionID
        self.version = version
        self.address = address
    }

    /// Creates an origin. The top bit of `sessionID` is cleared, because some parsers read it as a signed integer.
    public init(sessionID: UInt64, version: UInt64) {
        self.init(sessionID: String(sessionID & 0x7FFF_FFFF_FFFF_FFFF), version: String(version))
    }
}

/// One `m=` section with its lines (RFC 8866 §5.14).
public struct MediaDescription: Hashable, Sendable {
    /// `audio`, `video`, `application` or another media type.
    public var type: String
    /// 0 for a rejected section, unless it has `a=bundle-only` (RFC 9143 §6).
    public var port: UInt16
    /// Such as `UDP/TLS/RTP/SAVPF`.
    public var protocolName: String
    /// The payload types of RTP; at least one.
    public var formats: [String]
    /// The value of `c=`.
    public var connection: String?
    /// The values of `b=`, such as `AS:2500`.
    public var bandwidths: [String]
    public var attributes: [SDPAttribute]

    public init(
        type: String,
        port: UInt16,
        protocolName: String,
        formats: [String],
        connection: String? = nil,
        bandwidths: [String] = [],
        attributes: [SDPAttribute] = []
    ) {
        self.type = type
        self.port = port
        self.protocolName = protocolName
        self.formats = formats
        self.connection = connection
        self.bandwidths = bandwidths
        self.attributes = attributes
    }
}

/// A session description (RFC 8866) with the lines that WebRTC uses: `v o s c b t a` and media sections.
///
/// Other lines (`i u e p r z k`) are ignored. A parsed description that is serialized and parsed again is equal.
/// Attributes are text; types such as ``RTPMapAttribute`` parse them. Their order is preserved.
public struct SessionDescription: Hashable, Sendable {
    public var origin: SDPOrigin
    /// The value of `s=`; `-` without a name.
    public var name: String
    /// The value of the session's `c=`.
    public var connection: String?
    public var bandwidths: [String]
    /// The value of `t=`.
    public var timing: String
    public var attributes: [SDPAttribute]
    public var media: [MediaDescription]

    public init(
        origin: SDPOrigin,
        name: String = "-",
        connection: String? = nil,
        bandwidths: [String] = [],
        timing: String = "0 0",
        attributes: [SDPAttribute] = [],
        media: [MediaDescription] = []
    ) {
        self.origin = origin
        self.name = name
        self.connection = connection
        self.bandwidths = bandwidths
        self.timing = timing
        self.attributes = attributes
        self.media = media
    }

    /// The description as text with CR LF line ends.
    public func serialized() -> String {
        var text =
            "v=0\r\no=\(origin.username) \(origin.sessionID) \(origin.version) \(origin.address)\r\ns=\(name)\r\n"
        if let connection { text += "c=\(connection)\r\n" }
        for bandwidth in bandwidths { text += "b=\(bandwidth)\r\n" }
        text += "t=\(timing)\r\n"
        for attribute in attributes { attribute.write(to: &text) }
        for section in media { section.write(to: &text) }
        return text
    }
}

extension MediaDescription {
    /// Appends the section's lines.
    package func write(to text: inout String) {
        text += "m=\(type) \(port) \(protocolName)"
        for format in formats {
            text += " "
            text += format
        }
        text += "\r\n"
        if let connection { text += "c=\(connection)\r\n" }
        for bandwidth in bandwidths { text += "b=\(bandwidth)\r\n" }
        for attribute in attributes { attribute.write(to: &text) }
    }
}

extension SDPAttribute {
    /// Appends the line.
    func write(to text: inout String) {
        text += "a="
        text += name
        if let value {
            text += ":"
            text += value
        }
        text += "\r\n"
    }
}
