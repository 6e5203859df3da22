package import ChannelTypes

/// The latest messages of a channel's chat, in the memory of this node only.
package struct ChatHistory: Sendable {
    /// The longest message that is kept.
    package static let messageBytesMax = 4 << 10
    /// The most bytes of texts and names, as JSON: what a newcomer is sent at once.
    package static let bytesMax = 32 << 10

    private let countMax: Int
    private var bytes = 0
    /// The oldest first.
    package private(set) var messages: [ChatMessage] = []

    package init(limits: RoomLimits) { countMax = limits.chatHistoryMax }

    package mutating func append(_ message: ChatMessage) {
        guard countMax > 0 else { return }
        messages.append(message)
        bytes += Self.bytes(of: message)
        while messages.count > countMax || bytes > Self.bytesMax, let first = messages.first {
            bytes -= Self.bytes(of: first)
            messages.removeFirst()
        }
    }

    package mutating func removeAll() {
        messages = []
        bytes = 0
    }

    /// At most what a text takes in a message: JSON escapes some characters.
    private static func jsonBytes(of text: String) -> Int {
        text.utf8.reduce(0) { $0 + ($1 < 0x20 ? 6 : $1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) }
    }

    private static func bytes(of message: ChatMessage) -> Int {
        64 + [message.text, message.user, message.displayName ?? ""].reduce(0) { $0 + jsonBytes(of: $1) }
    }
}
