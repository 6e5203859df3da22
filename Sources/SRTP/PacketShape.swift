import Wire

/// Length and version checks on packets, made before any byte reaches a backend.
enum PacketShape {
    /// The longest packet that is processed: what a UDP datagram over IPv4 carries.
    static let packetBytesMax = 65_507
    /// The fixed part of an RTCP packet that stays in the clear: header and sender SSRC (RFC 3711 §3.4).
    static let rtcpHeaderBytes = 8
    /// The `E` flag and the SRTCP index (RFC 3711 §3.4).
    static let rtcpIndexBytes = 4
    /// The `E` flag in front of the SRTCP index.
    static let encryptedFlag: UInt32 = 0x8000_0000

    /// What protection needs of an RTP packet's header.
    struct RTP {
        let source: SSRC
        let sequence: UInt16
        /// Bytes of the fixed header, the CSRC list and the header extension: what stays in the clear.
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

    /// Checks an RTCP packet's version and length, and returns its sender.
    static func rtcpSource(_ packet: borrowing MutableRawSpan, length: Int, trailer: Int) throws(SRTPError) -> SSRC {
        guard length >= rtcpHeaderBytes + trailer, length <= packet.byteCount, length <= packetBytesMax else {
            throw .malformed
        }
        let bytes = packet.bytes
        guard bytes.byte(at: 0) >> 6 == 2 else { throw .malformed }
        return SSRC(rawValue: bytes.bigEndianUInt32(at: 4))
    }
}
