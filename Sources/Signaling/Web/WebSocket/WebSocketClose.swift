/// The status code and reason of a Close frame (RFC 6455 §7.1.5).
package struct WebSocketClose: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a reason in a control frame (RFC 6455 §5.5), in bytes.
    package static let reasonBytesMax = 123

    package let code: UInt16
    package let reason: String

    /// - Parameter reason: Truncated between two characters to ``reasonBytesMax``.
    package init(_ code: UInt16, _ reason: String) {
        self.code = code
        var reason = reason
        while reason.utf8.count > Self.reasonBytesMax { reason.removeLast() }
        self.reason = reason
    }

    package var description: String { "\(code) \(reason)" }

    static let protocolError = Self(1002, "PROTOCOL-ERROR")
    static let binaryRefused = Self(1003, "BINARY-NOT-SUPPORTED")
    static let invalidText = Self(1007, "INVALID-UTF-8")
    static let tooLong = Self(1009, "MESSAGE-TOO-LONG")
    static let tooManyFrames = Self(1008, "TOO-MANY-FRAMES")

    /// Whether a peer may send the code (RFC 6455 §7.4).
    package static func isLegal(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
