import Wire

/// How many messages one client may send: far more than any SDK does, and few enough that nobody else notices.
///
/// A message costs by its values and its bytes, as its parsing does.
struct MessageBudget {
    /// At once, and per second in the long run.
    private static let burst = 1_000
    private static let perSecond = 100
    /// A message of more values costs as several do. The statistics of a call of a hundred streams have 20,000.
    private static let valuesPerMessage = 64
    /// The same of bytes. The longest answer has 512 KiB.
    private static let bytesPerMessage = 8_192

    private var available = burst
    private var filledAt: Instant

    init(at now: Instant) { filledAt = now }

    /// What a message costs, in messages of the usual size. One that is too large for any budget costs a whole one, and is
    /// left to the parser.
    static func cost(of text: String) -> Int {
        let commas = text.utf8.count { $0 == UInt8(ascii: ",") }
        return min(burst, 1 + commas / valuesPerMessage + text.utf8.count / bytesPerMessage)
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
