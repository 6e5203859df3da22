package import ChannelTypes

/// The latest messages of a channel's chat, in the memory of this node only.
package struct ChatHistory: Sendable {
    /// The longest message that is kept.
    package static let messageBytesMax = 4 << 10
    /// The most bytes of texts and names: what a newcomer is sent at once.
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

    private static func bytes(of message: ChatMessage) -> Int {
        message.text.utf8.count + message.user.utf8.count + (message.displayName?.utf8.count ?? 0)
    }
}
