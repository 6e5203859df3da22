import Base
import Wire

/// Checks the version and the lengths of packets before a backend processes them.
enum PacketLayout {
    /// The longest packet: the payload of a UDP datagram over IPv4.
    static let packetBytesMax = 65_507
    /// The unencrypted part of an RTCP packet: header and sender SSRC (RFC 3711 §3.4).
    static let rtcpHeaderBytes = 8
    /// The `E` flag and the SRTCP index (RFC 3711 §3.4).
    static let rtcpIndexBytes = 4
    /// The `E` flag, the most significant bit.
    static let encryptedFlag: UInt32 = 0x8000_0000

    /// The fields of an RTP header that SRTP needs.
    struct RTP {
        let source: SSRC
        let sequence: UInt16
        /// Bytes of the fixed header, the CSRC list and the header extension, which are not encrypted.
        let headerLength: Int
    }

    /// Checks an RTP packet's version, CSRC list and header extension against `length` less `trailer` bytes
    /// (RFC 3550 §5.1, §5.3.1).
    static func rtp(_ packet: borrowing MutableRawSpan, length: Int, trailer: Int) throws(SRTPError) -> RTP {
        guard length >= 12 + trailer, length <= packet.byteCount, length <= packetBytesMax else { throw .malformed }
        let bytes = packet.bytes
        let first = bytes.byte(at: 0)
        guard first >> 6 == 2 else { throw .malformed }
        let end = length - trailer
        var header = 12 + 4 * Int(first & 0x0F)
        if first & 0x10 != 0 {
            guard end >= header + 4 else { throw .malformed }
            header += 4 + 4 * Int(bytes.bigEndianUInt16(at: header + 2))
        }
        guard end >= header else { throw .malformed }
        return RTP(
            source: SSRC(rawValue: bytes.bigEndianUInt32(at: 8)),
            sequence: bytes.bigEndianUInt16(at: 2),
            headerLength: header
        )
    }

    /// Checks an RTCP packet's version and length, and returns its sender SSRC.
    static func rtcpSource(_ packet: borrowing MutableRawSpan, length: Int, trailer: Int) throws(SRTPError) -> SSRC {
        guard length >= rtcpHeaderBytes + trailer, length <= packet.byteCount, length <= packetBytesMax else {
            throw .malformed
        }
        let bytes = packet.bytes
        guard bytes.byte(at: 0) >> 6 == 2 else { throw .malformed }
        return SSRC(rawValue: bytes.bigEndianUInt32(at: 4))
    }
}
