import Base

/// Whether a publisher is still there: it is asked when nothing of it comes, and silent when no answer comes either.
struct PublisherSilence {
    /// The time without any sign of life after which the publisher is asked. Browsers check the path by themselves
    /// every 2.5 s or more, and Opus with DTX sends every 400 ms.
    static let askAfter = Interval.milliseconds(750)
    /// Seven questions at least are in vain before a publisher is silent: where every third packet is lost, one time in a hundred.
    static let askInterval = Interval.milliseconds(250)
    /// The time after which it is silent: with the tick after it, less than three seconds.
    static let silentAfter = Interval.milliseconds(2_500)

    /// The last sign of life.
    private var heardAt: Instant
    private var askedAt: Instant
    private(set) var isSilent = false

    /// - Parameter now: when the publisher connected.
    init(at now: Instant) {
        heardAt = now
        askedAt = now
    }

    /// - Parameter heard: the last sign of life as far as is known; `nil` without any.
    /// - Returns: whether to ask the publisher, and whether it is silent if that has changed.
    mutating func tick(heard: Instant?, at now: Instant) -> (asks: Bool, change: Bool?) {
        if let heard { heardAt = max(heardAt, heard) }
        let silence = now - heardAt
        let wasSilent = isSilent
        isSilent = silence >= Self.silentAfter
        let asks = silence >= Self.askAfter && now - askedAt >= Self.askInterval
        if asks { askedAt = now }
        return (asks, isSilent == wasSilent ? nil : isSilent)
    }
}
