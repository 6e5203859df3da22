/// What two nodes send each other over their control link, one after the other.
///
/// | bytes | |
/// |---|---|
/// | 4 | length of what follows, big-endian |
/// | 1 | kind |
/// | … | the content of the kind |
///
/// A kind that a later version adds is skipped.
enum LinkFrame: Hashable, Sendable {
    /// The first frame of each side.
    case hello(LinkHello)
    /// Sent while nothing else is, to be answered with the same number.
    case ping(UInt64)
    case pong(UInt64)
    /// See ``ChannelMessage``.
    case channel([UInt8])
    /// A question, to be answered with the same number.
    case request(UInt32, LinkRequest)
    /// `nil` when the receiver could not answer.
    case response(UInt32, [UInt8]?)
    /// The sender closes the connection.
    case goodbye(LinkGoodbye)

    /// The most bytes of a frame. The members of a large channel are told in one.
    static let bytesMax = 16 << 20
    /// The most bytes of a frame before the sender's hello.
    static let helloBytesMax = 4_096

    private enum Kind: UInt8 {
        case hello = 1
        case ping, pong, channel, request, response, goodbye
    }

    func encoded() -> [UInt8] {
        let (kind, content): (Kind, [UInt8]) =
            switch self {
            case .hello(let hello): (.hello, hello.encoded)
            case .ping(let number): (.ping, Self.bytes(number, count: 8))
            case .pong(let number): (.pong, Self.bytes(number, count: 8))
            case .channel(let message): (.channel, message)
            case .request(let number, let request):
                (.request, Self.bytes(UInt64(number), count: 4) + [request.kind.rawValue] + request.body)
            case .response(let number, let body):
                (.response, Self.bytes(UInt64(number), count: 4) + [body == nil ? 0 : 1] + (body ?? []))
            case .goodbye(let reason): (.goodbye, [reason.rawValue])
            }
        return Self.bytes(UInt64(content.count + 1), count: 4) + [kind.rawValue] + content
    }

    private static func bytes(_ value: UInt64, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }

    /// What a frame's bytes after the length say.
    /// - Returns: `nil` for a kind that is not known.
    /// - Throws: ``LinkFrameError``.
    static func decode(_ bytes: ArraySlice<UInt8>) throws(LinkFrameError) -> LinkFrame? {
        guard let first = bytes.first else { throw .malformed }
        let content = bytes.dropFirst()
        switch Kind(rawValue: first) {
        case nil: return nil
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
            let request = LinkRequest(
                kind: LinkRequest.Kind(rawValue: kind) ?? .unknown,
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
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>, exactly count: Int) throws(LinkFrameError) -> UInt64 {
        guard bytes.count == count else { throw .malformed }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Why bytes of a link were refused. The connection ends with it.
enum LinkFrameError: Error, Hashable, Sendable {
    /// A frame is longer than allowed.
    case tooLong(Int)
    case malformed
    /// A frame other than the hello came first, or a second hello.
    case unexpected
}

/// Why a node closes a connection to another one.
enum LinkGoodbye: UInt8, Sendable {
    case closing = 1
    /// Another connection of the two nodes stays.
    case duplicate
    /// The node stops. Its members are gone.
    case stopping
    /// No version of the protocol is common to both, or the cluster is another one.
    case incompatible
}

/// A question of one node to another.
package struct LinkRequest: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        /// Of a later version.
        case unknown = 0
        /// Which nodes have a channel, while there is no store.
        case holders
        /// Whether the node hears another one.
        case hears
        /// A track for a mirror.
        case export
        /// An HTTP request about a session of the node.
        case forward
    }

    package var kind: Kind
    package var body: [UInt8]

    package init(kind: Kind, body: [UInt8]) {
        self.kind = kind
        self.body = body
    }
}

/// Cuts the bytes of a connection into frames.
struct LinkFrameReader {
    private var buffer: [UInt8] = []
    private var start = 0
    /// The most bytes of a frame.
    var bytesMax: Int

    init(bytesMax: Int = LinkFrame.helloBytesMax) { self.bytesMax = bytesMax }

    mutating func feed(_ bytes: some Sequence<UInt8>) {
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next frame that is complete; `nil` when there is none. Frames of unknown kinds are left out.
    mutating func next() throws(LinkFrameError) -> LinkFrame? {
        while buffer.count - start >= 4 {
            let length = buffer[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytesMax else { throw .tooLong(length) }
            guard buffer.count - start - 4 >= length else { return nil }
            let content = buffer[(start + 4)..<(start + 4 + length)]
            start += 4 + length
            if let frame = try LinkFrame.decode(content) { return frame }
        }
        return nil
    }
}
