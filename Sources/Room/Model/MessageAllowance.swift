import Wire

/// Bounds the messages of one participant: two token buckets, each of one second.
struct MessageAllowance: Sendable {
    private let messagesPerSecond: Double
    private let bytesPerSecond: Double
    private var messages: Double
    private var bytes: Double
    private var filledAt: Instant

    init(messagesPerSecond: Int, bytesPerSecond: Int, at now: Instant) {
        self.messagesPerSecond = Double(messagesPerSecond)
        self.bytesPerSecond = Double(bytesPerSecond)
        messages = self.messagesPerSecond
        bytes = self.bytesPerSecond
        filledAt = now
    }

    /// Takes a message. One that is longer than the bytes that are left is taken, and those behind it wait for the bytes.
    mutating func take(_ count: Int, at now: Instant) -> Bool {
        let elapsed = max((now - filledAt).seconds, 0)
        filledAt = max(filledAt, now)
        messages = min(messages + elapsed * messagesPerSecond, messagesPerSecond)
        bytes = min(bytes + elapsed * bytesPerSecond, bytesPerSecond)
        guard messages >= 1, bytes > 0 else { return false }
        messages -= 1
        bytes -= Double(count)
        return true
    }
}
