import Base

/// Cuts messages into chunks (RTMP 1.0 §5.3.1). Each message begins with a header of type 0, so that nothing depends on those
/// before it.
struct RTMPChunkWriter: Sendable {
    /// The chunk streams that we use, each for one kind of message.
    enum ChunkStream: UInt8, Sendable {
        /// Protocol control messages (§5.4).
        case control = 2
        case command = 3
        case audio = 4
        case data = 5
        case video = 6
    }

    /// In bytes: 128 until ``setChunkSize(_:)`` (§5.4.1).
    private(set) var chunkBytes = 128
    private var output: [UInt8] = []

    /// Returns what was written since the last call.
    mutating func take() -> [UInt8] {
        var bytes: [UInt8] = []
        swap(&bytes, &output)
        return bytes
    }

    /// Writes bytes that are no chunks: those of the handshake.
    mutating func writeHandshake(_ bytes: [UInt8]) { output += bytes }

    /// Announces a chunk size of 1 to ``RTMPLimits/chunkBytesMax`` bytes, and uses it from then on.
    mutating func setChunkSize(_ bytes: Int) {
        precondition((1...RTMPLimits.chunkBytesMax).contains(bytes), "a chunk size that everyone reads")
        writeControl(.setChunkSize, UInt32(bytes))
        chunkBytes = bytes
    }

    /// Writes a protocol control message of one number (§5.4).
    mutating func writeControl(_ type: RTMPMessageType, _ value: UInt32, _ tail: [UInt8] = []) {
        var body: [UInt8] = []
        body.append(bigEndian: value)
        write(RTMPMessage(type, body + tail), on: .control)
    }

    /// Writes a user control message (§6.2).
    mutating func writeUserControl(_ event: RTMPUserControl, _ value: UInt32) {
        var body: [UInt8] = []
        body.append(bigEndian: event.rawValue)
        body.append(bigEndian: value)
        write(RTMPMessage(.userControl, body), on: .control)
    }

    /// Writes a command in AMF0 (§7.1.1).
    mutating func writeCommand(_ name: String, _ transaction: Double, _ values: [AMF0Value], stream: UInt32 = 0) {
        var writer = AMF0Writer()
        writer.write(.string(name))
        writer.write(.number(transaction))
        for value in values { writer.write(value) }
        write(RTMPMessage(.commandAMF0, stream: stream, writer.bytes), on: .command)
    }

    /// Writes a message of at most 16,777,215 bytes.
    mutating func write(_ message: RTMPMessage, on chunkStream: ChunkStream) {
        precondition(message.body.count < 1 << 24, "the length has 24 bits")
        let isExtended = message.timestamp >= 0xFF_FFFF
        let time = isExtended ? 0xFF_FFFF : message.timestamp
        output.append(chunkStream.rawValue)
        appendUInt24(time)
        appendUInt24(UInt32(message.body.count))
        output.append(message.rawType)
        output.append(bigEndian: message.stream.byteSwapped)
        if isExtended { output.append(bigEndian: message.timestamp) }
        var rest = message.body[...]
        output += rest.prefix(chunkBytes)
        rest = rest.dropFirst(chunkBytes)
        while !rest.isEmpty {
            output.append(0xC0 | chunkStream.rawValue)
            if isExtended { output.append(bigEndian: message.timestamp) }
            output += rest.prefix(chunkBytes)
            rest = rest.dropFirst(chunkBytes)
        }
    }

    private mutating func appendUInt24(_ value: UInt32) {
        output.append(UInt8(truncatingIfNeeded: value >> 16))
        output.append(bigEndian: UInt16(truncatingIfNeeded: value))
    }
}

/// The events of user control messages that mean something to a publisher (RTMP 1.0 §7.1.7).
enum RTMPUserControl: UInt16, Sendable {
    case streamBegin = 0
    case setBufferLength = 3
    case pingRequest = 6
    case pingResponse = 7
}
