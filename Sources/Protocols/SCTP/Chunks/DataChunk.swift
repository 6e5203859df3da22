import Base

/// A DATA or I-DATA chunk as it came (RFC 9260 §3.3.1, RFC 8260 §2.1).
struct DataChunk {
    let tsn: UInt32
    let stream: StreamID
    let flags: DataFlags
    /// The stream sequence number of DATA (16 bits), the message identifier of I-DATA.
    let messageNumber: UInt32
    /// 0 for the first fragment; of I-DATA only.
    let fragment: UInt32
    /// Of DATA, and of the first fragment of I-DATA.
    let payloadProtocol: PayloadProtocol?
    /// Where the payload is in the packet; may be empty, which is an error.
    let payload: Range<Int>

    static let headerBytes = 16
    static let interleavedHeaderBytes = 20

    /// - Returns: `nil` when the chunk is too short for its header.
    init?(_ chunk: ChunkRange, in packet: RawSpan) {
        let isInterleaved = chunk.type == .interleavedData
        let header = isInterleaved ? Self.interleavedHeaderBytes : Self.headerBytes
        guard chunk.whole.count >= header else { return nil }
        let start = chunk.whole.lowerBound
        tsn = packet.bigEndianUInt32(at: start + 4)
        stream = StreamID(rawValue: packet.bigEndianUInt16(at: start + 8))
        flags = DataFlags(rawValue: chunk.flags)
        if isInterleaved {
            messageNumber = packet.bigEndianUInt32(at: start + 12)
            let word = packet.bigEndianUInt32(at: start + 16)
            let isFirst = flags.contains(.beginning)
            fragment = isFirst ? 0 : word
            payloadProtocol = isFirst ? PayloadProtocol(rawValue: word) : nil
        } else {
            messageNumber = UInt32(packet.bigEndianUInt16(at: start + 10))
            fragment = 0
            payloadProtocol = PayloadProtocol(rawValue: packet.bigEndianUInt32(at: start + 12))
        }
        payload = start + header..<chunk.whole.upperBound
    }
}

/// FORWARD-TSN or I-FORWARD-TSN (RFC 3758 §3.2, RFC 8260 §2.3.1).
struct ForwardedNumbers: Equatable {
    struct Skipped: Equatable {
        var stream: StreamID
        /// Always `false` in FORWARD-TSN.
        var isUnordered: Bool
        /// The last number skipped: 16 bits in FORWARD-TSN.
        var messageNumber: UInt32
    }

    var tsn: UInt32
    var skipped: [Skipped]

    init(tsn: UInt32, skipped: [Skipped]) {
        self.tsn = tsn
        self.skipped = skipped
    }

    /// The most entries that one packet has room for beside the other chunks.
    static let skippedMax = 128

    init?(_ chunk: ChunkRange, in packet: RawSpan) {
        guard chunk.body.count >= 4 else { return nil }
        tsn = packet.bigEndianUInt32(at: chunk.body.lowerBound)
        skipped = []
        let isInterleaved = chunk.type == .interleavedForwardTSN
        let size = isInterleaved ? 8 : 4
        var offset = chunk.body.lowerBound + 4
        while chunk.body.upperBound - offset >= size {
            let stream = StreamID(rawValue: packet.bigEndianUInt16(at: offset))
            let word = packet.bigEndianUInt16(at: offset + 2)
            skipped.append(
                Skipped(
                    stream: stream,
                    isUnordered: isInterleaved && word & 1 != 0,
                    messageNumber: isInterleaved ? packet.bigEndianUInt32(at: offset + 4) : UInt32(word)
                )
            )
            offset += size
        }
    }

    func encoded(isInterleaved: Bool) -> [UInt8] {
        var value: [UInt8] = []
        value.append(bigEndian: tsn)
        for entry in skipped {
            value.append(bigEndian: entry.stream.rawValue)
            if isInterleaved {
                value.append(bigEndian: UInt16(entry.isUnordered ? 1 : 0))
                value.append(bigEndian: entry.messageNumber)
            } else {
                value.append(bigEndian: UInt16(truncatingIfNeeded: entry.messageNumber))
            }
        }
        return .chunk(isInterleaved ? .interleavedForwardTSN : .forwardTSN, value)
    }
}
