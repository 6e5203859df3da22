import Base
package import ChannelTypes

/// What two nodes send each other over their control link, one after the other.
///
/// | bytes | |
/// |---|---|
/// | 4 | length of what follows, big-endian |
/// | 1 | kind |
/// | … | the content of the kind |
///
/// A kind that a later version adds is counted, and nothing else.
package enum LinkFrame: Hashable, Sendable {
    /// The first frame of each side.
    case hello(LinkHello)
    /// Sent while nothing else is, to be answered with the same number.
    case ping(UInt64)
    case pong(UInt64)
    /// See ``ChannelMessage``.
    case channel([UInt8])
    /// A question, to be answered with the same number.
    case request(UInt32, NodeRequest)
    /// `nil` when the receiver could not answer.
    case response(UInt32, [UInt8]?)
    /// The sender closes the connection.
    case goodbye(LinkGoodbye)
    /// A message about a room of the 1:1 relay. Its content belongs to signaling.
    case relay([UInt8])
    /// The sender does not need the link. The receiver closes it when it does not need it, either.
    case unused
    /// Of a later version, by its kind. Its content is dropped.
    case unknown(UInt8)

    /// The most bytes of a frame. The members of a large channel are told in one.
    package static let bytesMax = 16 << 20
    /// The most bytes of a frame before the sender's hello.
    package static let helloBytesMax = 4_096

    private enum Kind: UInt8 {
        case hello = 1
        case ping, pong, channel, request, response, goodbye, relay, unused
    }

    package func encoded() -> [UInt8] {
        var content: [UInt8] = []
        switch self {
        case .hello(let hello): content = [Kind.hello.rawValue] + hello.encoded
        case .ping(let number):
            content.append(Kind.ping.rawValue)
            content.append(bigEndian: number)
        case .pong(let number):
            content.append(Kind.pong.rawValue)
            content.append(bigEndian: number)
        case .channel(let message): content = [Kind.channel.rawValue] + message
        case .request(let number, let request):
            content.append(Kind.request.rawValue)
            content.append(bigEndian: number)
            content.append(request.kind.rawValue)
            content += request.body
        case .response(let number, let body):
            content.append(Kind.response.rawValue)
            content.append(bigEndian: number)
            content.append(body == nil ? 0 : 1)
            content += body ?? []
        case .goodbye(let reason): content = [Kind.goodbye.rawValue, reason.rawValue]
        case .relay(let message): content = [Kind.relay.rawValue] + message
        case .unused: content = [Kind.unused.rawValue]
        case .unknown(let kind): content = [kind]
        }
        return LengthPrefix.prepend(to: content)
    }

    /// What a frame's bytes after the length say.
    /// - Throws: ``LinkFrameError``.
    static func decode(_ bytes: ArraySlice<UInt8>) throws(LinkFrameError) -> LinkFrame {
        guard let first = bytes.first else { throw .malformed }
        let content = bytes.dropFirst()
        switch Kind(rawValue: first) {
        case nil: return .unknown(first)
        case .hello:
            guard let hello = LinkHello(encoded: content) else { throw .malformed }
            return .hello(hello)
        case .ping: return .ping(try number(content, exactly: 8))
        case .pong: return .pong(try number(content, exactly: 8))
        case .channel: return .channel(Array(content))
        case .request:
            let id = try number(content.prefix(4), exactly: 4)
            guard let kind = content.dropFirst(4).first else { throw .malformed }
            // The sender has to get an answer to a question of a later version too.
            let request = NodeRequest(
                kind: NodeRequest.Kind(rawValue: kind) ?? .unknown,
                body: Array(content.dropFirst(5))
            )
            return .request(UInt32(truncatingIfNeeded: id), request)
        case .response:
            let id = try number(content.prefix(4), exactly: 4)
            guard let flag = content.dropFirst(4).first, flag <= 1 else { throw .malformed }
            return .response(UInt32(truncatingIfNeeded: id), flag == 1 ? Array(content.dropFirst(5)) : nil)
        case .goodbye:
            guard content.count == 1, let reason = content.first else { throw .malformed }
            return .goodbye(LinkGoodbye(rawValue: reason) ?? .closing)
        case .relay: return .relay(Array(content))
        case .unused: return .unused
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>, exactly count: Int) throws(LinkFrameError) -> UInt64 {
        guard bytes.count == count else { throw .malformed }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Why bytes of a link were refused. The connection ends with it.
package enum LinkFrameError: Error, Hashable, Sendable {
    /// A frame is longer than allowed.
    case tooLong(Int)
    case malformed
    /// A frame other than the hello came first, or a second hello.
    case unexpected
}

/// Why a node closes a connection to another one.
package enum LinkGoodbye: UInt8, CaseIterable, Sendable {
    case closing = 1
    /// Another connection of the two nodes stays.
    case duplicate
    /// The node stops. Its members are gone.
    case stopping
    /// No version of the protocol is common to both, or the cluster is another one.
    case incompatible
    /// The other node's links are refused for a while.
    case refused
    /// Neither node needs the link.
    case unused
}

/// Cuts the bytes of a connection into frames.
package struct LinkFrameReader: Sendable {
    private var buffer: [UInt8] = []
    private var start = 0
    /// The most bytes of a frame.
    package var bytesMax: Int

    package init(bytesMax: Int = LinkFrame.helloBytesMax) { self.bytesMax = bytesMax }

    /// The bytes that wait for the rest of a frame.
    package var bytesWaiting: Int { buffer.count - start }

    package mutating func feed(_ bytes: some Sequence<UInt8>) {
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next frame that is complete; `nil` when there is none.
    package mutating func next() throws(LinkFrameError) -> LinkFrame? {
        guard let length = LengthPrefix.read(buffer[start...]) else { return nil }
        guard length <= bytesMax else { throw .tooLong(length) }
        let first = start + LengthPrefix.bytes
        guard buffer.count - first >= length else { return nil }
        start = first + length
        return try LinkFrame.decode(buffer[first..<start])
    }
}
