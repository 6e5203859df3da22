import Base

@testable import RTMP

/// Encodes messages with every form of header that a client may choose.
struct ChunkEncoder {
    private struct State {
        var timestamp: UInt32
        /// The time of the last header of type 0, 1 or 2.
        var field: UInt32
        let length: Int
        let rawType: UInt8
        let stream: UInt32
    }

    var chunkBytes = 128
    /// Whether chunks of type 3 repeat the extended timestamp.
    var repeatsExtended = true
    private var states: [Int: State] = [:]

    /// The most compact type of header that says all of the message.
    func shortest(_ message: RTMPMessage, on id: Int) -> UInt8 {
        guard let state = states[id], state.stream == message.stream else { return 0 }
        guard state.length == message.body.count, state.rawType == message.rawType else { return 1 }
        return message.timestamp &- state.timestamp == state.field ? 3 : 2
    }

    /// The chunks of one message.
    /// - Parameter type: of the first header; the shortest by default.
    mutating func chunks(_ message: RTMPMessage, on id: Int, type: UInt8? = nil) -> [[UInt8]] {
        let type = type ?? shortest(message, on: id)
        let state = states[id] ?? State(timestamp: 0, field: 0, length: 0, rawType: 0, stream: 0)
        let field =
            switch type {
            case 0: message.timestamp
            case 3: state.field
            default: message.timestamp &- state.timestamp
            }
        states[id] = State(
            timestamp: message.timestamp,
            field: field,
            length: message.body.count,
            rawType: message.rawType,
            stream: message.stream
        )
        let isExtended = field >= 0xFF_FFFF
        var chunk = Self.basic(type, id)
        if type < 3 { chunk += Self.bytes(min(field, 0xFF_FFFF), 3) }
        if type < 2 { chunk += Self.bytes(UInt32(message.body.count), 3) + [message.rawType] }
        if type < 1 { chunk += Self.bytes(message.stream, 4).reversed() }
        if isExtended, type < 3 || repeatsExtended { chunk += Self.bytes(field, 4) }
        var rest = message.body[...]
        var chunks = [chunk + rest.prefix(chunkBytes)]
        rest = rest.dropFirst(chunkBytes)
        while !rest.isEmpty {
            let time = isExtended && repeatsExtended ? Self.bytes(field, 4) : []
            chunks.append(Self.basic(3, id) + time + rest.prefix(chunkBytes))
            rest = rest.dropFirst(chunkBytes)
        }
        return chunks
    }

    /// All chunks of one message.
    mutating func bytes(_ message: RTMPMessage, on id: Int, type: UInt8? = nil) -> [UInt8] {
        Array(chunks(message, on: id, type: type).joined())
    }

    private static func basic(_ type: UInt8, _ id: Int) -> [UInt8] {
        switch id {
        case ..<64: [type << 6 | UInt8(id)]
        case ..<320: [type << 6, UInt8(id - 64)]
        default: [type << 6 | 1, UInt8((id - 64) & 0xFF), UInt8((id - 64) >> 8)]
        }
    }

    private static func bytes(_ value: UInt32, _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: value)
        return bytes.suffix(count)
    }
}

extension RTMPChunkReader {
    /// Reads all of `bytes` in pieces.
    mutating func readAll(_ bytes: [UInt8], pieceBytes: Int = .max) throws(RTMPError) -> [RTMPMessage] {
        var messages: [RTMPMessage] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieceBytes))
            rest = rest.dropFirst(piece.count)
            var offset = 0
            while let message = try read(unsafe piece.span.bytes, &offset) {
                if message.type == .setChunkSize { try setChunkSize(message) }
                if message.type == .abort { try abort(message) }
                messages.append(message)
            }
        }
        return messages
    }
}

/// Bytes that tell their place.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed &* 7) }
}
