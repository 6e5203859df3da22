/// A picture's number in a VP8 or VP9 payload descriptor (RFC 7741 §4.2, RFC 9628 §4.2), and where it stands.
public struct PictureIDField: Hashable, Sendable {
    /// Wraps at 2⁷ or 2¹⁵.
    public let value: UInt16
    /// 7 or 15.
    public let bits: Int
    /// Of its first byte in the payload, whose top bit says that there are 15 bits.
    public let offset: Int
}

/// The number of the base layer frame in a VP8 or VP9 payload descriptor, and where it stands.
public struct TL0PictureIndexField: Hashable, Sendable {
    /// Wraps at 256.
    public let value: UInt8
    /// Of its byte in the payload.
    public let offset: Int
}
