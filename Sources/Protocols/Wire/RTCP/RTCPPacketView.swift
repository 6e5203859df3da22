import Base

/// Why bytes are not an RTCP packet (RFC 3550 §6.4, appendix A.2).
public enum RTCPParseError: Error, Hashable, Sendable {
    case truncated(needed: Int, available: Int)
    /// The version field is not 2.
    case version(UInt8)
    /// The padding count is zero or larger than the packet's body.
    case padding(count: Int, available: Int)
}

/// The kind of an RTCP packet, from its packet type and feedback message type.
public enum RTCPKind: Hashable, Sendable {
    case senderReport, receiverReport, sourceDescription, goodbye, applicationDefined, extendedReport
    /// Generic NACK (RFC 4585 §6.2.1).
    case nack
    /// Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
    case transportFeedback
    /// Congestion control feedback (RFC 8888 §3.1).
    case congestionControlFeedback
    /// Picture loss indication (RFC 4585 §6.3.1).
    case pictureLoss
    /// Full intra request (RFC 5104 §4.3.1).
    case fullIntraRequest
    /// Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb-03 §2).
    case remb
    case other
}

/// Iterates over the packets of a compound or reduced-size RTCP datagram (RFC 3550 §6.1, RFC 5506).
public struct RTCPCompoundCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0

    /// - Parameter bytes: the whole decrypted datagram.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The next packet; `nil` at the end and after an error.
    @_lifetime(copy self)
    public mutating func next() throws(RTCPParseError) -> RTCPPacketView? {
        let start = offset
        offset = bytes.byteCount
        guard start < bytes.byteCount else { return nil }
        let packet = try RTCPPacketView(bytes.extracting(start..<bytes.byteCount))
        offset = start + packet.lengthWithPadding
        return packet
    }
}

/// A read-only view of one RTCP packet.
///
/// ```text
///  0                   1                   2                   3
/// |V=2|P|  count  |      PT       |  length in words, minus one   |
/// ```
/// Accessors return `nil` or an empty cursor for a packet of another kind or one that is too short.
public struct RTCPPacketView: ~Escapable {
    /// Header and body, without padding.
    public let bytes: RawSpan
    /// The bytes of the packet in the datagram, with padding.
    public let lengthWithPadding: Int
    /// From the packet type and the feedback message type, for REMB also its identifier.
    public let kind: RTCPKind

    /// Views the packet at the start of `bytes`; others may follow.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) throws(RTCPParseError) {
        let available = bytes.byteCount
        guard available >= 4 else { throw .truncated(needed: 4, available: available) }
        let first = bytes.byte(at: 0)
        guard first >> 6 == 2 else { throw .version(first >> 6) }
        let length = 4 + 4 * Int(bytes.bigEndianUInt16(at: 2))
        guard available >= length else { throw .truncated(needed: length, available: available) }
        var padding = 0
        if first & 0x20 != 0 {
            padding = length > 4 ? Int(bytes.byte(at: length - 1)) : 0
            guard padding > 0, padding <= length - 4 else {
                throw .padding(count: padding, available: length - 4)
            }
        }
        self.bytes = bytes.extracting(0..<(length - padding))
        lengthWithPadding = length
        kind = Self.kind(of: self.bytes)
    }

    private static func kind(of bytes: RawSpan) -> RTCPKind {
        switch (bytes.byte(at: 1), bytes.byte(at: 0) & 0x1F) {
        case (RTCPPacketType.senderReport, _): .senderReport
        case (RTCPPacketType.receiverReport, _): .receiverReport
        case (RTCPPacketType.sourceDescription, _): .sourceDescription
        case (RTCPPacketType.goodbye, _): .goodbye
        case (RTCPPacketType.applicationDefined, _): .applicationDefined
        case (RTCPPacketType.extendedReport, _): .extendedReport
        case (RTCPPacketType.transportFeedback, RTCPFormat.nack): .nack
        case (RTCPPacketType.transportFeedback, RTCPFormat.transportCC): .transportFeedback
        case (RTCPPacketType.transportFeedback, RTCPFormat.congestionControl): .congestionControlFeedback
        case (RTCPPacketType.payloadFeedback, RTCPFormat.pictureLoss): .pictureLoss
        case (RTCPPacketType.payloadFeedback, RTCPFormat.fullIntraRequest): .fullIntraRequest
        case (RTCPPacketType.payloadFeedback, RTCPFormat.applicationLayer)
        where bytes.byteCount >= 20 && bytes.bigEndianUInt32(at: 12) == RTCPFormat.rembIdentifier: .remb
        default: .other
        }
    }

    /// Whether an SRTCP datagram begins with a report on the arrival of packets: transport-wide feedback, or that of RFC 8888. SRTCP
    /// leaves the first header as it is (RFC 3711 §3.4).
    public static func reportsArrivals(_ datagram: RawSpan) -> Bool {
        guard datagram.byteCount >= 2, datagram.byte(at: 1) == RTCPPacketType.transportFeedback else { return false }
        let format = datagram.byte(at: 0) & 0x1F
        return format == RTCPFormat.transportCC || format == RTCPFormat.congestionControl
    }

    /// The packet type, such as 200 for a sender report.
    public var packetType: UInt8 { bytes.byte(at: 1) }
    /// The 5-bit count of reports or chunks, or the feedback message type (FMT).
    public var count: Int { Int(bytes.byte(at: 0) & 0x1F) }
    /// The SSRC of the packet's sender; `nil` when the body is empty, and for SDES.
    public var senderSSRC: SSRC? {
        guard bytes.byteCount >= 8, kind != .sourceDescription else { return nil }
        return SSRC(rawValue: bytes.bigEndianUInt32(at: 4))
    }
    /// The SSRC of the media source of a feedback packet (RFC 4585 §6.1); 0 in FIR and REMB, that of the first stream in
    /// congestion control feedback.
    public var mediaSSRC: SSRC? {
        let isFeedback = (RTCPPacketType.transportFeedback...RTCPPacketType.payloadFeedback).contains(packetType)
        guard isFeedback, bytes.byteCount >= 12 else { return nil }
        return SSRC(rawValue: bytes.bigEndianUInt32(at: 8))
    }

    /// The bytes from `offset`; empty when the packet is shorter.
    @_lifetime(copy self)
    func body(from offset: Int) -> RawSpan {
        bytes.extracting(min(offset, bytes.byteCount)..<bytes.byteCount)
    }
}

/// RTCP packet types (RFC 3550 §12.1, RFC 4585 §6.1, RFC 3611 §2).
enum RTCPPacketType {
    static let senderReport: UInt8 = 200
    static let receiverReport: UInt8 = 201
    static let sourceDescription: UInt8 = 202
    static let goodbye: UInt8 = 203
    static let applicationDefined: UInt8 = 204
    static let transportFeedback: UInt8 = 205
    static let payloadFeedback: UInt8 = 206
    static let extendedReport: UInt8 = 207
}

/// Feedback message types, FMT (RFC 4585 §6.2, §6.3; RFC 5104 §4.3; RFC 8888 §3.1;
/// draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
enum RTCPFormat {
    static let nack: UInt8 = 1
    static let congestionControl: UInt8 = 11
    static let transportCC: UInt8 = 15
    static let pictureLoss: UInt8 = 1
    static let fullIntraRequest: UInt8 = 4
    static let applicationLayer: UInt8 = 15
    /// "REMB"
    static let rembIdentifier: UInt32 = 0x5245_4D42
}
