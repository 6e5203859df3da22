package import Base
package import Wire

/// Keeps a subscriber from being sent the same packet again and again: its requests cost us crypto and its link
/// bandwidth.
package struct RetransmissionLimiter: Sendable {
    /// A request that crosses the retransmission on the way is not answered twice.
    static let spacing = Interval.milliseconds(10)
    /// As often as libwebrtc asks.
    static let attemptsMax = 10
    private static let size = 256
    /// Retransmissions in a row, and in a second after that: a third of a stream of 16 Mbit/s.
    static let burstMax = 256
    static let ratePerSecond = 500

    private struct Record: Sendable {
        var sequence: SequenceNumber
        var sentAt: Instant
        var attempts: UInt8
    }
    private var records: ContiguousArray<Record?> = []
    private var bucket = TokenBucket(ratePerSecond, burst: burstMax)

    package init() {}

    /// Whether the packet may be sent again now, which counts as sending it.
    package mutating func allow(_ sequence: SequenceNumber, at now: Instant) -> Bool {
        if records.isEmpty { records = ContiguousArray(repeating: nil, count: Self.size) }
        let index = Int(sequence.rawValue) % Self.size
        guard var record = records[index], record.sequence == sequence, now - record.sentAt < .seconds(5) else {
            guard bucket.take(at: now) else { return false }
            records[index] = Record(sequence: sequence, sentAt: now, attempts: 1)
            return true
        }
        guard now - record.sentAt >= Self.spacing, record.attempts < Self.attemptsMax, bucket.take(at: now)
        else { return false }
        record.attempts += 1
        record.sentAt = now
        records[index] = record
        return true
    }
}
