import Base

/// What the newest division of a peer's rate over its slots came to. Rates are bits a second.
struct DividedRate {
    /// The rate that was divided; `nil` before the first time.
    var rate: Int?
    /// Of the layers that were allocated, and of audio. It exceeds the rate where the lowest layer does.
    var layers = 0
    /// When a change of layers that was put off is looked at again.
    var retryAt: Instant?
    /// All that the slots want is allocated.
    var isWhole = false
    /// What carries all that is wanted, when all of it is allocated; `nil` else.
    var settled: Int?
    /// Until then ``settled`` counts.
    var settledUntil = Instant(nanoseconds: 0)
}
