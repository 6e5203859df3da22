/// The protocol of a packet by its first byte, where several share one transport: a UDP socket, an ICE-TCP connection or a
/// relayed address (RFC 7983 §7, with QUIC by RFC 9443 §3).
public enum PacketProtocol: Hashable, Sendable, CaseIterable {
    case stun, zrtp, dtls
    /// A ChannelData message when it comes from a TURN server, or from a TURN client (RFC 8656 §12.4).
    case turnChannel
    case quic
    /// A media link between two nodes (``TransferEnvelope``). Deviation: these bytes are QUIC's by RFC 9443 §3, which none of
    /// our transports carries.
    case relay
    /// RTP or RTCP, which the second byte tells apart (RFC 5761 §4); SRTP and SRTCP leave both bytes in the clear.
    case rtp

    /// `nil` for a byte that no protocol begins with.
    @inlinable
    @inline(__always)
    public init?(firstByte: UInt8) {
        switch firstByte {
        case 128...191: self = .rtp
        case 0...3: self = .stun
        case 20...63: self = .dtls
        case 16...19: self = .zrtp
        case 64...79: self = .turnChannel
        case TransferEnvelope.firstBytes: self = .relay
        case 80...127, 192...255: self = .quic
        default: return nil
        }
    }
}
