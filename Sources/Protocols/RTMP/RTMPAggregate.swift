import Base

/// Several messages in one (RTMP 1.0 §7.1.6): FLV tags, each with its length behind it.
enum RTMPAggregate {
    /// The header of a tag, and the length behind it, in bytes.
    private static let headerBytes = 11
    private static let trailerBytes = 4
    /// Messages of one aggregate. A server that has any collects fractions of a second.
    static let partsMax = 512

    /// The messages within. Their times move with that of the aggregate: the first one has it. The last may lack the length
    /// behind it.
    static func parts(of aggregate: RTMPMessage) throws(RTMPError) -> [RTMPMessage] {
        let bytes = unsafe aggregate.body.span.bytes
        var parts: [RTMPMessage] = []
        var first: UInt32?
        var offset = 0
        while offset < bytes.byteCount {
            guard bytes.byteCount - offset >= headerBytes, parts.count < partsMax else { throw .brokenAggregate }
            let length = Int(bytes.bigEndianUInt24(at: offset + 1))
            let body = offset + headerBytes
            guard length <= bytes.byteCount - body else { throw .brokenAggregate }
            // The highest byte of the time stands behind the other three.
            let time = bytes.bigEndianUInt24(at: offset + 4) | UInt32(bytes.byte(at: offset + 7)) << 24
            let start = first ?? time
            first = start
            parts.append(
                RTMPMessage(
                    rawType: bytes.byte(at: offset),
                    stream: aggregate.stream,
                    timestamp: aggregate.timestamp &+ (time &- start),
                    body: bytes.extracting(body..<body + length).array()
                )
            )
            offset = body + length + trailerBytes
        }
        return parts
    }
}
