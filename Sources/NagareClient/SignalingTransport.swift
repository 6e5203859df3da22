public import Foundation

/// Opens WebSockets: `URLSession` on Apple's platforms.
public protocol SignalingTransport: Sendable {
    /// Opens a WebSocket. The client cancels the task of an attempt that takes too long.
    func connect(to url: URL) async throws -> any SignalingSocket
}

/// An open WebSocket.
public protocol SignalingSocket: Sendable {
    /// What the server sends, in order; the end is the last. For one reader.
    var events: AsyncStream<SignalingSocketEvent> { get }
    /// Sends a text after those before it. Does nothing after the end.
    func send(_ text: String)
    /// Closes the WebSocket after what was sent.
    func close()
}

public enum SignalingSocketEvent: Hashable, Sendable {
    case text(String)
    case ended(SignalingSocketEnd)
}

/// How a WebSocket ended.
public enum SignalingSocketEnd: Hashable, Sendable {
    /// By a close frame.
    case closed(code: Int, reason: String)
    /// Without one.
    case lost(String)
}
