import Base

/// How packets are told apart on a TCP or TLS connection.
public enum StreamFraming: Hashable, Sendable {
    /// Two bytes of length before each packet (RFC 4571 §2), for ICE over TCP (RFC 6544 §3).
    case rfc4571
    /// STUN and ChannelData with the lengths that they have, ChannelData padded to four bytes (RFC 8656 §12.5).
    case turn
}

extension StreamFraming {
    /// The first bytes of a connection that tell its framing at the latest.
    public static let openingBytesMax = 8

    /// The framing of a connection where ICE over TCP and TURN share a port, by its first bytes.
    ///
    /// TURN begins with a STUN message, whose cookie stands in bytes 4...7 (RFC 8489 §5). With RFC 4571 the length of a
    /// STUN message stands in bytes 4 and 5, and no packet is as long as the cookie would say. What is neither is taken for
    /// RFC 4571.
    /// - Returns: `nil` when more bytes are needed.
    public init?(opening bytes: RawSpan) {
        let cookie: [UInt8] = [0x21, 0x12, 0xA4, 0x42]
        for offset in 0..<min(bytes.byteCount, Self.openingBytesMax) {
            let byte = bytes.byte(at: offset)
            let isPossible =
                switch offset {
                case 0: PacketProtocol(firstByte: byte) == .stun
                case 4...: byte == cookie[offset - 4]
                default: true
                }
            guard isPossible else {
                self = .rfc4571
                return
            }
        }
        guard bytes.byteCount >= Self.openingBytesMax else { return nil }
        self = .turn
    }
}

/// Why a connection cannot be read any further: after a wrong length nothing tells where the next packet starts.
public enum StreamFramingError: Error, Hashable, Sendable {
    /// The packet is longer than ``StreamDeframer/packetBytesMax``.
    case tooLong(Int)
    /// The bytes are neither STUN nor ChannelData.
    case unknownProtocol(firstByte: UInt8)
}

/// Cuts the bytes of a connection into packets. Holds at most one incomplete packet.
public struct StreamDeframer: Sendable {
    /// The most bytes of a packet, its RFC 4571 length not counted.
    public static let packetBytesMax = DatagramBatch.slotBytes

    private let framing: StreamFraming
    /// The start of an incomplete frame.
    private var pending: [UInt8] = []
    /// Bytes of padding that have not arrived yet.
    private var padding = 0
    private var failure: StreamFramingError?

    public init(_ framing: StreamFraming) { self.framing = framing }

    /// Bytes that wait for the rest of their packet.
    public var pendingBytes: Int { pending.count }

    /// Takes the next bytes of the connection and passes each packet that they complete to `receive`.
    /// - Throws: why the connection must be closed; again at each later call.
    public mutating func append(_ bytes: RawSpan, receive: (RawSpan) -> Void) throws(StreamFramingError) {
        if let failure { throw failure }
        do throws(StreamFramingError) {
            var offset = 0
            while offset < bytes.byteCount {
                if padding > 0 {
                    let skipped = min(padding, bytes.byteCount - offset)
                    padding -= skipped
                    offset += skipped
                } else {
                    offset += try take(bytes.extracting(offset..<bytes.byteCount), receive)
                }
            }
        } catch {
            failure = error
            pending = []
            throw error
        }
    }

    private struct Frame {
        /// Where the packet is in the frame.
        let packet: Range<Int>
        let padding: Int
    }

    /// Bytes from which the length of a frame is known, of which STUN's cookie is checked too.
    private func headerBytes(_ first: UInt8) -> Int {
        switch framing {
        case .rfc4571: 2
        case .turn: PacketProtocol(firstByte: first) == .stun ? 8 : 4
        }
    }

    private func frame(_ header: RawSpan) throws(StreamFramingError) -> Frame {
        let frame: Frame
        switch framing {
        case .rfc4571: frame = Frame(packet: 2..<2 + Int(header.bigEndianUInt16(at: 0)), padding: 0)
        case .turn:
            let length = Int(header.bigEndianUInt16(at: 2))
            switch PacketProtocol(firstByte: header.byte(at: 0)) {
            case .turnChannel: frame = Frame(packet: 0..<4 + length, padding: -length & 3)
            case .stun where header.bigEndianUInt32(at: 4) == STUNFormat.magicCookie:
                frame = Frame(packet: 0..<STUNFormat.headerBytes + length, padding: 0)
            default: throw .unknownProtocol(firstByte: header.byte(at: 0))
            }
        }
        guard frame.packet.count <= Self.packetBytesMax else { throw .tooLong(frame.packet.count) }
        return frame
    }

    /// Takes the bytes of one frame, or all of `bytes` when it is incomplete.
    /// - Returns: how many were taken.
    private mutating func take(_ bytes: RawSpan, _ receive: (RawSpan) -> Void) throws(StreamFramingError) -> Int {
        let first = pending.first ?? bytes.byte(at: 0)
        if framing == .turn {
            let known = PacketProtocol(firstByte: first)
            guard known == .stun || known == .turnChannel else { throw .unknownProtocol(firstByte: first) }
        }
        let header = headerBytes(first)
        if pending.isEmpty, bytes.byteCount >= header {
            // The usual case: the frame is complete, and nothing is copied.
            let frame = try frame(bytes)
            if frame.packet.upperBound <= bytes.byteCount {
                deliver(bytes.extracting(frame.packet), frame, receive)
                return frame.packet.upperBound
            }
        }
        var taken = 0
        if pending.count < header {
            taken = min(header - pending.count, bytes.byteCount)
            pending += bytes.extracting(0..<taken).array()
            guard pending.count == header else { return taken }
        }
        let frame = try frame(unsafe pending.span.bytes)
        let rest = min(frame.packet.upperBound - pending.count, bytes.byteCount - taken)
        if rest > 0 { pending += bytes.extracting(taken..<taken + rest).array() }
        if pending.count >= frame.packet.upperBound {
            let complete = pending
            pending.removeAll(keepingCapacity: true)
            deliver(unsafe complete.span.bytes.extracting(frame.packet), frame, receive)
        }
        return taken + rest
    }

    private mutating func deliver(_ packet: RawSpan, _ frame: Frame, _ receive: (RawSpan) -> Void) {
        padding = frame.padding
        // Frames without content keep a connection open (RFC 4571 §2).
        if packet.byteCount > 0 { receive(packet) }
    }
}
