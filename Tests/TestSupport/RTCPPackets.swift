/// RTCP packets that clients send and the product never writes.
public enum RTCPPackets {
    /// A goodbye of one source (RFC 3550 §6.6).
    public static func goodbye(_ ssrc: UInt32) -> [UInt8] { packet(203, 1, [ssrc]) }

    /// A full intra request (RFC 5104 §4.3.1).
    public static func fullIntraRequest(sender: UInt32, media: UInt32, sequence: UInt8) -> [UInt8] {
        packet(206, 4, [sender, 0, media, UInt32(sequence) << 24])
    }

    /// A REMB (draft-alvestrand-rmcat-remb-03 §2.2).
    /// - Parameters:
    ///   - bitrate: bit/s; rounded down to 18 significant bits.
    ///   - sources: at most 255.
    public static func remb(sender: UInt32, bitrate: UInt64, sources: [UInt32]) -> [UInt8] {
        let exponent = max(0, 64 - bitrate.leadingZeroBitCount - 18)
        let mantissa = UInt32(truncatingIfNeeded: bitrate >> UInt64(exponent))
        let rate = UInt32(sources.count) << 24 | UInt32(exponent) << 18 | mantissa
        return packet(206, 15, [sender, 0, 0x5245_4D42, rate] + sources)
    }

    /// An extended report with a receiver's reference time and an answer to another one's (RFC 3611 §4.4, §4.5).
    public static func extendedReport(sender: UInt32, receiver: UInt32) -> [UInt8] {
        packet(207, 0, [sender, 4 << 24 | 2, 0xE000_0000, 0x8000_0000, 5 << 24 | 3, receiver, 7, 9])
    }

    private static func packet(_ type: UInt32, _ format: UInt32, _ words: [UInt32]) -> [UInt8] {
        bigEndian([0x8000_0000 | format << 24 | type << 16 | UInt32(words.count)] + words)
    }
}
