public import NIOCore

/// Why a WebSocket ends: what a Close frame carries (RFC 6455 §7.1.5).
struct WebSocketClose: Hashable, Sendable, CustomStringConvertible {
    /// The longest reason that fits beside the code in a control frame (RFC 6455 §5.5), in bytes.
    static let reasonBytesMax = 123

    let code: UInt16
    let reason: String

    /// - Parameter reason: is cut between two characters to what a frame carries.
    init(_ code: UInt16, _ reason: String) {
        self.code = code
        var reason = reason
        while reason.utf8.count > Self.reasonBytesMax { reason.removeLast() }
        self.reason = reason
    }

    var description: String { "\(code) \(reason)" }

    static let protocolError = Self(1002, "PROTOCOL-ERROR")
    static let binaryRefused = Self(1003, "BINARY-NOT-SUPPORTED")
    static let invalidText = Self(1007, "INVALID-UTF-8")
    static let tooLong = Self(1009, "MESSAGE-TOO-LONG")

    static let tooManyFrames = Self(1008, "TOO-MANY-FRAMES")

    /// Whether a peer may send the code (RFC 6455 §7.4).
    static func isLegal(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// What a WebSocket delivers to its owner.
enum WebSocketInput: Hashable, Sendable {
    case text(String)
    /// The other side closed; nothing follows. Without a code it gave none.
    case closed(code: UInt16?, reason: String)
    /// What came breaks the protocol, and the WebSocket is closing for it.
    case refused(WebSocketClose)
    /// The server is about to stop.
    case stopping
}

/// What the owner of a WebSocket tells it.
enum WebSocketOutput: Sendable {
    case text(ByteBuffer)
    /// Starts the closing handshake; what is sent afterwards is dropped.
    case close(WebSocketClose)
}

/// How much one WebSocket may cost.
public struct WebSocketLimits: Equatable, Sendable {
    /// The longest message, in one frame or in several. An answer has about 2.2 KB for each remote sender, so this
    /// carries the answers of a channel with 200 senders.
    public var messageBytesMax = 512 * 1024
    /// What may wait for a client that reads slowly. The offer of a channel with 200 senders is about 600 KB.
    public var waitingBytesMax = 8 * 1024 * 1024
    /// How long a client may read nothing while something waits for it.
    public var writeTimeout: TimeAmount = .seconds(20)
    /// How much a client has to read in that time to count as one that reads. At the least speed that this asks for, the
    /// largest offer takes about six minutes.
    public var progressBytesMin = 32 * 1024
    /// How long the other side's Close is waited for.
    public var closeTimeout: TimeAmount = .seconds(3)
    /// Frames that carry next to nothing (pings, pongs, small fragments) that a client may send at once, and per second in
    /// the long run. SDKs and browsers send one in some seconds.
    public var cheapFrameBurst = 200
    public var cheapFramesPerSecond = 20
    /// A fragment of fewer bytes carries next to nothing, unless it is a message's last.
    public var fragmentBytesMin = 1_024

    public init() {}
}
