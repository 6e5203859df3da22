import Base

/// Whether a publisher is still there: it is asked when nothing of it comes, and silent when no answer comes either.
struct PublisherSilence {
    /// The time without any sign of life after which the publisher is asked. Opus with DTX sends every 400 ms, and browsers check
    /// the path by themselves every 2.5 s or more.
    static var askAfter: Interval { .milliseconds(1_250) }
    /// Five questions are in vain before a publisher is silent: where every fifth packet is lost, one time in 150.
    static var askInterval: Interval { .milliseconds(250) }
    /// Of one that is silent, which tells by itself that it is back when it sends.
    static var askIntervalOfSilent: Interval { .seconds(1) }
    /// The time after which it is silent: with the tick after it, less than three seconds.
    static var silentAfter: Interval { .milliseconds(2_500) }

    /// The last sign of life.
    private var heardAt: Instant
    private var askedAt: Instant
    private(set) var isSilent = false

    /// - Parameter now: when the publisher connected.
    init(at now: Instant) {
        heardAt = now
        askedAt = now
    }

    /// Notes a sign of life.
    mutating func heard(at time: Instant) { heardAt = max(heardAt, time) }

    /// Whether the publisher was heard lately, and is known to be there: then nothing is to be done.
    func isSettled(at now: Instant) -> Bool { !isSilent && now - heardAt < Self.askAfter }

    /// - Returns: whether to ask the publisher, and whether it is silent if that has changed.
    mutating func tick(at now: Instant) -> (asks: Bool, change: Bool?) {
        let silence = now - heardAt
        let wasSilent = isSilent
        isSilent = silence >= Self.silentAfter
        let interval = isSilent ? Self.askIntervalOfSilent : Self.askInterval
        let asks = silence >= Self.askAfter && now - askedAt >= interval
        if asks { askedAt = now }
        return (asks, isSilent == wasSilent ? nil : isSilent)
    }
}
