import Base

/// Puts messages together from chunks (RTMP 1.0 §5.3.1).
///
/// Each chunk stream collects its message in one buffer, which leaves with the message. Each byte is copied once into it, and
/// looked at as often; how the bytes are cut into pieces changes nothing.
struct RTMPChunkReader: Sendable {
    /// What incomplete messages may cost.
    struct Limits: Hashable, Sendable {
        let messageBytesMax: Int
        let incompleteBytesMax: Int
        /// Room for a message before its bytes are there. With 16 chunk streams, a publisher gets at most 1 MiB for nothing.
        let reservedBytesMax: Int

        static let early = Limits(
            messageBytesMax: RTMPLimits.earlyMessageBytesMax,
            incompleteBytesMax: RTMPLimits.earlyIncompleteBytesMax,
            reservedBytesMax: 256
        )
        static let publisher = Limits(
            messageBytesMax: RTMPLimits.messageBytesMax,
            incompleteBytesMax: RTMPLimits.incompleteBytesMax,
            reservedBytesMax: 65_536
        )
    }

    /// The last header of a chunk stream, and its incomplete message.
    private struct ChunkStream: Sendable {
        let id: Int
        var timestamp: UInt32 = 0
        /// The time field of the last header of type 0, 1 or 2. Type 3 adds it again.
        var delta: UInt32 = 0
        /// Whether that field was an extended one.
        var isExtended = false
        var length = 0
        var rawType: UInt8 = 0
        var messageStream: UInt32 = 0
        var isIncomplete = false
        var body: [UInt8] = []

        /// Reads the complete header of a message's first chunk.
        /// - Parameter basic: where its message header begins.
        mutating func readHeader(_ bytes: RawSpan, _ type: UInt8, _ basic: Int, _ isExtended: Bool) {
            if type < 3 {
                let fixed = basic + RTMPChunkReader.messageHeaderBytes(type)
                self.isExtended = isExtended
                delta = isExtended ? bytes.bigEndianUInt32(at: fixed) : bytes.bigEndianUInt24(at: basic)
            }
            if type < 2 {
                length = Int(bytes.bigEndianUInt24(at: basic + 3))
                rawType = bytes.byte(at: basic + 6)
            }
            if type == 0 {
                messageStream = bytes.bigEndianUInt32(at: basic + 7).byteSwapped
                timestamp = delta
            } else {
                timestamp &+= delta
            }
        }
    }

    private enum Position: Sendable {
        case header
        /// - Parameter missing: bytes of the chunk that have not come yet, at least one.
        case payload(index: Int, missing: Int)
    }

    var limits = Limits.early
    /// The client's chunk size in bytes: 128 until it sets another (§5.4.1).
    private(set) var chunkBytes = 128
    /// The bytes of all incomplete messages.
    private(set) var incompleteBytes = 0
    private var streams: [ChunkStream] = []
    private var position = Position.header
    /// The bytes of a header as far as they came, at most 18.
    private var header: [UInt8] = []
    /// Bytes that were taken for an extended timestamp but are none, at most three. They come before the input.
    private var returned: [UInt8] = []
    /// Whether type 3 repeats the extended timestamp; `nil` until the first time. It must (§5.3.1.3), but old encoders do not.
    private var repeatsExtended: Bool?

    /// Takes bytes from `offset` up to the end of the next message.
    /// - Returns: the message; `nil` when all bytes were taken and none is complete.
    mutating func read(_ bytes: RawSpan, _ offset: inout Int) throws(RTMPError) -> RTMPMessage? {
        while offset < bytes.byteCount || !returned.isEmpty {
            switch position {
            case .header:
                if let message = try readHeader(bytes, &offset) { return message }
            case .payload(let index, let missing):
                if let message = try readPayload(bytes, &offset, index, missing) { return message }
            }
        }
        return nil
    }

    /// A message of the client that sets its chunk size.
    mutating func setChunkSize(_ message: RTMPMessage) throws(RTMPError) {
        let size = try message.number()
        guard size > 0, size <= UInt32(RTMPLimits.chunkBytesMax) else { throw .chunkSize(size) }
        chunkBytes = Int(size)
    }

    /// A message of the client that gives up an incomplete message (§5.4.2). An unknown chunk stream is ignored.
    mutating func abort(_ message: RTMPMessage) throws(RTMPError) {
        let id = try message.number()
        guard let index = streams.firstIndex(where: { $0.id == Int(id) }) else { return }
        _ = takeBody(index)
    }

    // MARK: - Payload

    private mutating func readPayload(
        _ bytes: RawSpan,
        _ offset: inout Int,
        _ index: Int,
        _ missing: Int
    ) throws(RTMPError) -> RTMPMessage? {
        let count: Int
        if returned.isEmpty {
            count = min(missing, bytes.byteCount - offset)
            streams[index].body.append(contentsOf: bytes, from: offset, count: count)
            offset += count
        } else {
            count = min(missing, returned.count)
            streams[index].body += returned.prefix(count)
            returned.removeFirst(count)
        }
        incompleteBytes += count
        guard incompleteBytes <= limits.incompleteBytesMax else {
            throw .tooMuchIncomplete(max: limits.incompleteBytesMax)
        }
        guard count == missing else {
            position = .payload(index: index, missing: missing - count)
            return nil
        }
        position = .header
        return streams[index].body.count == streams[index].length ? completed(index) : nil
    }

    private mutating func completed(_ index: Int) -> RTMPMessage {
        let body = takeBody(index)
        let stream = streams[index]
        return RTMPMessage(
            rawType: stream.rawType,
            stream: stream.messageStream,
            timestamp: stream.timestamp,
            body: body
        )
    }

    private mutating func takeBody(_ index: Int) -> [UInt8] {
        var body: [UInt8] = []
        swap(&body, &streams[index].body)
        incompleteBytes -= body.count
        streams[index].isIncomplete = false
        return body
    }

    // MARK: - Headers

    /// The bytes of the basic header by its first one (§5.3.1.1).
    private static func basicBytes(_ first: UInt8) -> Int {
        switch first & 0x3F {
        case 0: 2
        case 1: 3
        default: 1
        }
    }

    /// The bytes of the message header by its type (§5.3.1.2).
    private static func messageHeaderBytes(_ type: UInt8) -> Int {
        switch type {
        case 0: 11
        case 1: 7
        case 2: 3
        default: 0
        }
    }

    /// Takes one byte of a header, or acts on the complete one.
    private mutating func readHeader(_ bytes: RawSpan, _ offset: inout Int) throws(RTMPError) -> RTMPMessage? {
        let byte = returned.first ?? bytes.byte(at: offset)
        guard let first = header.first else {
            header.reserveCapacity(18)
            take(byte, &offset)
            return try Self.basicBytes(byte) == 1 ? continueHeader() : nil
        }
        let fixed = Self.basicBytes(first) + Self.messageHeaderBytes(first >> 6)
        // Behind the fixed part of type 3, the next byte may be one of the extended timestamp, or of the payload.
        if first >> 6 == 3, header.count >= fixed, repeatsExtended == nil, !isRepeated(byte, at: header.count - fixed) {
            repeatsExtended = false
            returned = Array(header[fixed...]) + returned
            header.removeLast(header.count - fixed)
            return try continueHeader()
        }
        take(byte, &offset)
        return try continueHeader()
    }

    private mutating func take(_ byte: UInt8, _ offset: inout Int) {
        header.append(byte)
        if returned.isEmpty { offset += 1 } else { returned.removeFirst() }
    }

    /// Whether a byte can be one of the extended timestamp that type 3 repeats: that of the last header, or the message's time.
    private func isRepeated(_ byte: UInt8, at place: Int) -> Bool {
        guard let stream = streams.first(where: { $0.id == chunkStreamID }) else { return false }
        let begun = header.suffix(place)
        return [stream.delta, stream.timestamp].contains { value in
            var expected: [UInt8] = []
            expected.append(bigEndian: value)
            return expected.prefix(place + 1).elementsEqual(begun + [byte])
        }
    }

    /// The chunk stream of a header whose basic part is complete.
    private var chunkStreamID: Int {
        guard let first = header.first else { return 0 }
        let low = Int(first & 0x3F)
        switch low {
        case 0: return 64 + Int(header.dropFirst(1).first ?? 0)
        case 1: return 64 + Int(header.dropFirst(1).first ?? 0) + Int(header.dropFirst(2).first ?? 0) << 8
        default: return low
        }
    }

    /// Begins the chunk when its header is complete.
    private mutating func continueHeader() throws(RTMPError) -> RTMPMessage? {
        guard let first = header.first else { return nil }
        let basic = Self.basicBytes(first)
        let type = first >> 6
        let fixed = basic + Self.messageHeaderBytes(type)
        guard header.count >= fixed else { return nil }
        let id = chunkStreamID
        let known = streams.firstIndex { $0.id == id }
        let isExtended: Bool
        if type < 3 {
            isExtended = header[basic..<basic + 3].allSatisfy { $0 == 0xFF }
        } else {
            guard let known else { throw .missingHeader(chunkStream: id) }
            isExtended = streams[known].isExtended && repeatsExtended != false
        }
        guard header.count >= fixed + (isExtended ? 4 : 0) else { return nil }
        if type == 3, isExtended { repeatsExtended = true }
        let index = if let known { known } else { try addStream(id, type) }
        if type < 3 || !streams[index].isIncomplete { try beginMessage(index, type, basic, isExtended) }
        header.removeAll(keepingCapacity: true)
        return beginChunk(index)
    }

    /// A new chunk stream. Some clients begin one with type 1, which then means message stream 0 and a time from zero.
    private mutating func addStream(_ id: Int, _ type: UInt8) throws(RTMPError) -> Int {
        guard type < 2 else { throw .missingHeader(chunkStream: id) }
        guard streams.count < RTMPLimits.chunkStreamsMax else { throw .tooManyChunkStreams }
        streams.append(ChunkStream(id: id))
        return streams.count - 1
    }

    private mutating func beginMessage(
        _ index: Int,
        _ type: UInt8,
        _ basic: Int,
        _ isExtended: Bool
    ) throws(RTMPError) {
        guard !streams[index].isIncomplete else { throw .brokenMessage(chunkStream: streams[index].id) }
        let header = header
        streams[index].readHeader(unsafe header.span.bytes, type, basic, isExtended)
        let length = streams[index].length
        guard length <= limits.messageBytesMax else { throw .messageTooLong(length, max: limits.messageBytesMax) }
        streams[index].isIncomplete = true
        streams[index].body.reserveCapacity(min(length, limits.reservedBytesMax))
    }

    /// - Returns: a message without bytes, which is complete now.
    private mutating func beginChunk(_ index: Int) -> RTMPMessage? {
        let missing = min(streams[index].length - streams[index].body.count, chunkBytes)
        guard missing > 0 else { return completed(index) }
        position = .payload(index: index, missing: missing)
        return nil
    }
}
