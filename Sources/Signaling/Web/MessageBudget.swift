package import Base

/// The messages that one client may send: far more than any SDK sends.
///
/// The cost of a message grows with its values and bytes, as its parsing time does.
package struct MessageBudget {
    /// The cost that is free at once, and that of a second.
    private static let burst = 1_000
    private static let perSecond = 100
    /// The number of values per unit of cost. The statistics of a call with a hundred streams have 20,000 values.
    private static let valuesPerMessage = 64
    /// The number of bytes per unit of cost. The longest answer has 512 KiB.
    private static let bytesPerMessage = 8_192

    private var bucket = TokenBucket(perSecond, burst: burst)

    package init() {}

    /// The cost of a message, at most the whole burst: the parser refuses messages that are too large.
    package static func cost(of text: String) -> Int { cost(of: text.utf8) }

    /// - Parameter bytes: the message in UTF-8.
    package static func cost(of bytes: some Collection<UInt8>) -> Int {
        let commas = bytes.count { $0 == UInt8(ascii: ",") }
        return min(burst, 1 + commas / valuesPerMessage + bytes.count / bytesPerMessage)
    }

    package mutating func take(_ cost: Int = 1, at now: Instant) -> Bool { bucket.take(cost, at: now) }
}
