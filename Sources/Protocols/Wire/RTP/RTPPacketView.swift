import Base

/// Why bytes are not an RTP packet (RFC 3550 §5.1, appendix A.1).
public enum RTPParseError: Error, Hashable, Sendable {
    case truncated(needed: Int, available: Int)
    /// The version field is not 2.
    case version(UInt8)
    /// The padding count is 0 or larger than the rest of the packet after the header.
    case padding(count: Int, available: Int)
}

/// A read-only view of one RTP packet (RFC 3550 §5.1). It cannot outlive the datagram.
///
/// ```text
///  0                   1                   2                   3
/// |V=2|P|X|  CC   |M|     PT      |       sequence number         |
/// |                           timestamp                           |
/// |           synchronization source (SSRC) identifier            |
/// |            contributing source (CSRC) identifiers             |
/// |  header extension: 16-bit profile, 16-bit length in words, …  |
/// ```
public struct RTPPacketView: ~Escapable {
    /// The length of the fixed header, the shortest packet.
    public static let fixedHeaderLength = 12

    /// The whole packet.
    public let bytes: RawSpan
    /// The bytes before the payload: fixed header, contributing sources and header extension.
    public let headerLength: Int
    /// The position of the payload without padding; empty for a padding-only packet.
    public let payloadRange: Range<Int>

    /// Validates all lengths.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) throws(RTPParseError) {
        let available = bytes.byteCount
        guard available >= Self.fixedHeaderLength else {
            throw .truncated(needed: Self.fixedHeaderLength, available: available)
        }
        let first = bytes.byte(at: 0)
        guard first >> 6 == 2 else { throw .version(first >> 6) }
        var length = Self.fixedHeaderLength + 4 * Int(first & 0x0F)
        if first & 0x10 != 0 {
            guard available >= length + 4 else { throw .truncated(needed: length + 4, available: available) }
            length += 4 + 4 * Int(bytes.bigEndianUInt16(at: length + 2))
        }
        guard available >= length else { throw .truncated(needed: length, available: available) }
        var padding = 0
        if first & 0x20 != 0 {
            padding = available > length ? Int(bytes.byte(at: available - 1)) : 0
            guard padding > 0, padding <= available - length else {
                throw .padding(count: padding, available: available - length)
            }
        }
        self.bytes = bytes
        headerLength = length
        payloadRange = length..<(available - padding)
    }

    /// Whether an RTP or RTCP datagram is RTCP: its second byte is 192…223 (RFC 5761 §4).
    public static func isRTCP(_ bytes: RawSpan) -> Bool {
        bytes.byteCount >= 2 && (192...223).contains(bytes.byte(at: 1))
    }

    /// M: the last packet of a video picture, or the first packet of an audio talkspurt.
    public var marker: Bool { bytes.byte(at: 1) & 0x80 != 0 }
    /// PT.
    public var payloadType: PayloadType { PayloadType(wire: bytes.byte(at: 1)) }
    /// The sequence number.
    public var sequenceNumber: SequenceNumber { SequenceNumber(rawValue: bytes.bigEndianUInt16(at: 2)) }
    /// The sampling instant, in ticks of the codec's clock.
    public var timestamp: RTPTimestamp { RTPTimestamp(rawValue: bytes.bigEndianUInt32(at: 4)) }
    /// The synchronization source.
    public var ssrc: SSRC { SSRC(rawValue: bytes.bigEndianUInt32(at: 8)) }
    /// CC: the number of contributing sources, 0…15.
    public var contributingSourceCount: Int { Int(bytes.byte(at: 0) & 0x0F) }
    /// X: whether there is a header extension.
    public var hasExtension: Bool { bytes.byte(at: 0) & 0x10 != 0 }
    /// The offset of the header extension, present or not.
    public var extensionOffset: Int { Self.fixedHeaderLength + 4 * contributingSourceCount }

    /// The bytes of `payloadRange`.
    public var payload: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(payloadRange) }
    }

    /// Iterates over the elements of the header extension; empty without one or when its form is unknown.
    @_lifetime(copy self)
    public func makeExtensionCursor() -> HeaderExtensionCursor { HeaderExtensionCursor(self) }

    /// The bytes of one extension element.
    @_lifetime(copy self)
    public func data(of element: HeaderExtensionElement) -> RawSpan { bytes.extracting(element.range) }
}
