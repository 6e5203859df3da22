import Base

/// The state cookie of an INIT ACK (RFC 9260 §5.1.3): all that is needed to create the association when it comes back, so that
/// an INIT costs no memory. A keyed MAC proves that it is ours and unchanged.
struct StateCookie: Hashable, Sendable {
    /// The tags of the association that existed when an INIT came (RFC 9260 §5.2.2); 0 for none.
    struct TieTags: Hashable, Sendable {
        var local: UInt32 = 0
        var peer: UInt32 = 0
        var isEmpty: Bool { local == 0 && peer == 0 }
    }

    var local: Initiation
    var peer: Initiation
    var tieTags = TieTags()
    var createdAt: Instant

    static let lifetime = Interval.seconds(60)
    private static let macBytes = 16
    private static let byteCount = 8 + 2 * 17 + 8 + macBytes

    func encoded(key: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(bigEndian: UInt64(bitPattern: createdAt.nanoseconds))
        for side in [local, peer] {
            bytes.append(bigEndian: side.tag)
            bytes.append(bigEndian: side.window)
            bytes.append(bigEndian: side.outgoingStreams)
            bytes.append(bigEndian: side.incomingStreams)
            bytes.append(bigEndian: side.firstTSN)
            bytes.append(side.capabilities.rawValue)
        }
        bytes.append(bigEndian: tieTags.local)
        bytes.append(bigEndian: tieTags.peer)
        bytes += Self.mac(unsafe bytes.span.bytes, key: key)
        return bytes
    }

    /// - Returns: `nil` unless `bytes` is a cookie made with `key`.
    static func decode(_ bytes: RawSpan, key: [UInt8]) -> StateCookie? {
        guard bytes.byteCount == byteCount else { return nil }
        let content = bytes.extracting(0..<byteCount - macBytes)
        var difference: UInt8 = 0
        for (index, byte) in mac(content, key: key).enumerated() {
            difference |= byte ^ bytes.byte(at: byteCount - macBytes + index)
        }
        guard difference == 0 else { return nil }
        func side(at offset: Int) -> Initiation {
            Initiation(
                tag: content.bigEndianUInt32(at: offset),
                window: content.bigEndianUInt32(at: offset + 4),
                outgoingStreams: content.bigEndianUInt16(at: offset + 8),
                incomingStreams: content.bigEndianUInt16(at: offset + 10),
                firstTSN: content.bigEndianUInt32(at: offset + 12),
                capabilities: Capabilities(rawValue: content.byte(at: offset + 16))
            )
        }
        return StateCookie(
            local: side(at: 8),
            peer: side(at: 25),
            tieTags: TieTags(local: content.bigEndianUInt32(at: 42), peer: content.bigEndianUInt32(at: 46)),
            createdAt: Instant(nanoseconds: Int64(bitPattern: content.bigEndianUInt64(at: 0)))
        )
    }

    private static func mac(_ content: RawSpan, key: [UInt8]) -> [UInt8] {
        var mac = HMACSHA1(key: unsafe key.span.bytes)
        mac.update(content)
        let digest = mac.finalize()
        return (0..<macBytes).map { digest[$0] }
    }
}
