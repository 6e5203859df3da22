package import NIOCore

/// An event that a WebSocket delivers to its owner.
package enum WebSocketInput: Hashable, Sendable {
    case text(String)
    /// The client closed the WebSocket; nothing follows. `code` is `nil` when the client sent none.
    case closed(code: UInt16?, reason: String)
    /// The client violated the protocol, and the WebSocket closes.
    case refused(WebSocketClose)
    /// The server is shutting down.
    case stopping
}

/// A command from the owner of a WebSocket.
package enum WebSocketOutput: Sendable {
    case text(ByteBuffer)
    /// Starts the closing handshake; later messages are dropped.
    case close(WebSocketClose)
}

/// The limits of one WebSocket.
package struct WebSocketLimits: Equatable, Sendable {
    /// The maximum length of a message, in one or several frames. An answer has about 2.2 KB for each remote sender, so this
    /// is enough for 200 senders.
    package var messageBytesMax = 512 * 1024
    /// The maximum memory of unsent messages, in bytes. An offer with 200 senders takes 1 MiB, a list of 5,000 members 2 MiB.
    var waitingBytesMax = 8 * 1024 * 1024
    /// The time in which a client must read ``progressBytesMin`` of its unsent data.
    var writeTimeout: TimeAmount = .seconds(20)
    /// The bytes that a client must read within the write timeout. At this rate the largest offer takes about six minutes.
    var progressBytesMin = 32 * 1024
    /// The time limit for the client's Close.
    var closeTimeout: TimeAmount = .seconds(3)
    /// The burst of cheap frames: pings, pongs and small fragments. SDKs and browsers send one every few seconds.
    package var cheapFrameBurst = 200
    /// The rate of cheap frames per second.
    package var cheapFramesPerSecond = 20
    /// A fragment with fewer bytes is a cheap frame, unless it is the last one of a message.
    var fragmentBytesMin = 1_024

    package init() {}
}
