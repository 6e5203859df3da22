/// An SRTP protection profile as DTLS-SRTP negotiates it (RFC 5764 §4.1.2, RFC 7714 §14.2).
public enum SRTPProfile: UInt16, Hashable, Sendable, CaseIterable {
    case aes128CMHMACSHA1 = 0x0001
    case aeadAES128GCM = 0x0007
    case aeadAES256GCM = 0x0008

    /// Master key bytes.
    public var keyLength: Int { self == .aeadAES256GCM ? 32 : 16 }
    /// Master salt bytes.
    public var saltLength: Int { self == .aes128CMHMACSHA1 ? 14 : 12 }
    /// Bytes that protection adds to an RTP packet.
    public var tagLength: Int { self == .aes128CMHMACSHA1 ? 10 : 16 }
}

/// The keying material that DTLS exports for SRTP: a master key and salt for each direction (RFC 5764 §4.2). Never
/// printed.
public struct SRTPKeyingMaterial: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    public let profile: SRTPProfile
    /// Master key, then salt, for sending.
    public let local: [UInt8]
    /// Master key, then salt, for receiving.
    public let remote: [UInt8]

    /// `nil` unless both have the key and salt length of the profile.
    public init?(profile: SRTPProfile, local: [UInt8], remote: [UInt8]) {
        let length = profile.keyLength + profile.saltLength
        guard local.count == length, remote.count == length else { return nil }
        self.profile = profile
        self.local = local
        self.remote = remote
    }

    public var description: String { "SRTPKeyingMaterial(\(profile), keys hidden)" }
    public var debugDescription: String { description }
}
