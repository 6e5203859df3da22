import Base

/// The class of a STUN message (RFC 8489 §5).
public enum STUNMessageClass: UInt8, Hashable, Sendable, CaseIterable {
    case request = 0
    case indication = 1
    case success = 2
    case error = 3
}

/// A STUN method: 12 bits (RFC 8489 §5). ICE uses Binding alone; TURN uses the others (RFC 8656 §17).
public struct STUNMethod: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16
    /// `nil` above 0xFFF.
    public init?(rawValue: UInt16) {
        guard rawValue <= 0x0FFF else { return nil }
        self.rawValue = rawValue
    }
    init(wire bits: UInt16) { rawValue = bits & 0x0FFF }
    public static let binding = STUNMethod(wire: 1)
    public static let allocate = STUNMethod(wire: 3)
    public static let refresh = STUNMethod(wire: 4)
    /// An indication from the client.
    public static let send = STUNMethod(wire: 6)
    /// An indication to the client.
    public static let data = STUNMethod(wire: 7)
    public static let createPermission = STUNMethod(wire: 8)
    public static let channelBind = STUNMethod(wire: 9)
}

/// The 96-bit transaction identifier that matches a response with its request (RFC 8489 §5).
public struct STUNTransactionID: Hashable, Sendable {
    /// The first four bytes, big-endian.
    public let high: UInt32
    /// The other eight bytes, big-endian.
    public let low: UInt64

    public init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }
    /// A random identifier.
    public init(using generator: inout some RandomNumberGenerator) {
        self.init(high: generator.next(), low: generator.next())
    }
}

/// A STUN attribute's type (RFC 8489 §14, RFC 8445 §16.1, RFC 8656 §18).
public struct STUNAttributeType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Whether a receiver that does not know the attribute must reject the message (RFC 8489 §14).
    public var isComprehensionRequired: Bool { rawValue < 0x8000 }
    public var description: String { "0x" + String(rawValue, radix: 16) }

    public static let mappedAddress = Self(rawValue: 0x0001)
    public static let username = Self(rawValue: 0x0006)
    public static let messageIntegrity = Self(rawValue: 0x0008)
    public static let errorCode = Self(rawValue: 0x0009)
    public static let unknownAttributes = Self(rawValue: 0x000A)
    public static let channelNumber = Self(rawValue: 0x000C)
    public static let lifetime = Self(rawValue: 0x000D)
    public static let xorPeerAddress = Self(rawValue: 0x0012)
    public static let data = Self(rawValue: 0x0013)
    public static let realm = Self(rawValue: 0x0014)
    public static let nonce = Self(rawValue: 0x0015)
    public static let xorRelayedAddress = Self(rawValue: 0x0016)
    public static let requestedAddressFamily = Self(rawValue: 0x0017)
    public static let evenPort = Self(rawValue: 0x0018)
    public static let requestedTransport = Self(rawValue: 0x0019)
    public static let dontFragment = Self(rawValue: 0x001A)
    public static let xorMappedAddress = Self(rawValue: 0x0020)
    public static let reservationToken = Self(rawValue: 0x0022)
    public static let priority = Self(rawValue: 0x0024)
    public static let useCandidate = Self(rawValue: 0x0025)
    public static let software = Self(rawValue: 0x8022)
    public static let fingerprint = Self(rawValue: 0x8028)
    public static let iceControlled = Self(rawValue: 0x8029)
    public static let iceControlling = Self(rawValue: 0x802A)
}

/// Why bytes are not a STUN message.
public enum STUNParseError: Error, Hashable, Sendable {
    /// The message is shorter than the header, or than the header's length.
    case truncated(needed: Int, available: Int)
    /// The first byte is not 0…3, or the magic cookie is missing.
    case notSTUN
    /// The header's length is not a multiple of four, or bytes follow the message.
    case length
    /// An attribute reaches past the end, or its value has a length or form that its type forbids.
    case attribute(STUNAttributeType)
    /// An attribute follows FINGERPRINT, which must be the last one (RFC 8489 §14.7).
    case attributeAfterFingerprint
    /// More attributes than `STUNMessageView.attributesMax`.
    case tooManyAttributes
}

/// Constants of the wire format.
enum STUNFormat {
    static let headerBytes = 20
    static let attributeHeaderBytes = 4
    /// RFC 8489 §5.
    static let magicCookie: UInt32 = 0x2112_A442
    /// ASCII "STUN", so that FINGERPRINT differs from the CRC-32 of another protocol on the same port (RFC 8489 §14.7).
    static let fingerprintXOR: UInt32 = 0x5354_554E
    /// MESSAGE-INTEGRITY with its header.
    static var integrityBytes: Int { attributeHeaderBytes + SHA1.digestBytes }
    /// FINGERPRINT with its header.
    static let fingerprintBytes = attributeHeaderBytes + 4

    /// The HMAC over a message whose MESSAGE-INTEGRITY is at `offset`. The header's length field counts as if the
    /// message ended with this attribute (RFC 8489 §14.5).
    static func integrity(of bytes: RawSpan, before offset: Int, key: RawSpan) -> [20 of UInt8] {
        let length = UInt16(truncatingIfNeeded: offset - headerBytes + integrityBytes)
        var code = HMACSHA1(key: key)
        code.update(bytes.extracting(0..<2))
        code.update(UInt8(truncatingIfNeeded: length >> 8))
        code.update(UInt8(truncatingIfNeeded: length))
        code.update(bytes.extracting(4..<offset))
        return code.finalize()
    }
}
