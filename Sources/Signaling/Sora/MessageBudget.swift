import Wire

/// A token bucket for the messages of one client: far more than any SDK sends.
///
/// The cost of a message grows with its values and bytes, as its parsing time does.
struct MessageBudget {
    /// The capacity of the bucket and its rate per second.
    private static let burst = 1_000
    private static let perSecond = 100
    /// The number of values per unit of cost. The statistics of a call with a hundred streams have 20,000 values.
    private static let valuesPerMessage = 64
    /// The number of bytes per unit of cost. The longest answer has 512 KiB.
    private static let bytesPerMessage = 8_192

    private var available = burst
    private var filledAt: Instant

    init(at now: Instant) { filledAt = now }

    /// The cost of a message, at most the whole bucket: the parser refuses messages that are too large.
    static func cost(of text: String) -> Int { cost(of: text.utf8) }

    /// - Parameter bytes: the message in UTF-8.
    static func cost(of bytes: some Collection<UInt8>) -> Int {
        let commas = bytes.count { $0 == UInt8(ascii: ",") }
        return min(burst, 1 + commas / valuesPerMessage + bytes.count / bytesPerMessage)
    }

    mutating func take(_ cost: Int = 1, at now: Instant) -> Bool {
        let seconds = Int((now - filledAt).nanoseconds / 1_000_000_000)
        if seconds > 0 {
            available = min(Self.burst, available + min(seconds, Self.burst) * Self.perSecond)
            filledAt += .seconds(seconds)
        }
        guard available >= cost else { return false }
        available -= cost
        return true
    }
}
