/// The PictureID of a VP8 or VP9 payload descriptor with its position (RFC 7741 §4.2, RFC 9628 §4.2).
public struct PictureIDField: Hashable, Sendable {
    /// Wraps at 2⁷ or 2¹⁵.
    public let value: UInt16
    /// 7 or 15.
    public let bits: Int
    /// The offset in the payload of its first byte, whose top bit is set for 15 bits.
    public let offset: Int
}

/// The TL0PICIDX of a VP8 or VP9 payload descriptor with its position.
public struct TL0PictureIndexField: Hashable, Sendable {
    /// Wraps at 256.
    public let value: UInt8
    /// The offset of its byte in the payload.
    public let offset: Int
}
