import Base

/// The types of messages (RTMP 1.0 §5.4, §7.1).
enum RTMPMessageType: UInt8, Sendable {
    case setChunkSize = 1
    case abort = 2
    case acknowledgement = 3
    case userControl = 4
    case windowAcknowledgementSize = 5
    case setPeerBandwidth = 6
    case audio = 8
    case video = 9
    /// Data with a leading zero, in AMF0 for all clients in use.
    case dataAMF3 = 15
    /// A command with a leading zero, in AMF0 for all clients in use.
    case commandAMF3 = 17
    case dataAMF0 = 18
    case commandAMF0 = 20
    case aggregate = 22
}

/// One message as it comes out of the chunks.
struct RTMPMessage: Hashable, Sendable {
    /// An unknown type is legal, and ignored.
    let rawType: UInt8
    /// The message stream: 0 for the connection itself, 1 for what we let a client create.
    let stream: UInt32
    /// In milliseconds, modulo 2^32.
    let timestamp: UInt32
    let body: [UInt8]

    var type: RTMPMessageType? { RTMPMessageType(rawValue: rawType) }

    init(_ type: RTMPMessageType, stream: UInt32 = 0, timestamp: UInt32 = 0, _ body: [UInt8]) {
        self.init(rawType: type.rawValue, stream: stream, timestamp: timestamp, body: body)
    }

    init(rawType: UInt8, stream: UInt32, timestamp: UInt32, body: [UInt8]) {
        self.rawType = rawType
        self.stream = stream
        self.timestamp = timestamp
        self.body = body
    }

    /// The big-endian number of four bytes of the body.
    func number(at offset: Int = 0) throws(RTMPError) -> UInt32 {
        guard body.count >= offset + 4 else { throw .shortControlMessage(type: rawType) }
        return unsafe body.span.bytes.bigEndianUInt32(at: offset)
    }
}

/// One frame of sound or pictures, or a codec's configuration: the body of an FLV tag.
package struct RTMPMedia: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case audio, video }

    package let kind: Kind
    /// In milliseconds, from the client's zero. The wire's 32 bits are continued beyond their wrap. It may jump, go back and be
    /// negative, because a client may send what it likes.
    package let timestamp: Int64
    /// At least one byte, which tells the codec.
    package let body: [UInt8]

    package init(_ kind: Kind, timestamp: Int64, body: [UInt8]) {
        self.kind = kind
        self.timestamp = timestamp
        self.body = body
    }
}

/// Continues 32-bit timestamps to 64 bits by the shortest distance from the last one (RTMP 1.0 §5.3.1.3).
///
/// Sound and pictures share one, so that the second of them to cross the wrap, or to come after it for the first time, stays
/// with the first.
struct RTMPClock: Hashable, Sendable {
    private var last: Int64?

    mutating func time(of timestamp: UInt32) -> Int64 {
        guard let last else {
            self.last = Int64(timestamp)
            return Int64(timestamp)
        }
        let distance = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: last))
        let time = last &+ Int64(distance)
        self.last = time
        return time
    }
}
