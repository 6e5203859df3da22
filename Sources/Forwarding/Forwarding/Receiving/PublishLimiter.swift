import Base

/// Holds what one peer publishes against the rate that it may have: a bucket that is filled by a second of that rate, and by
/// no less than ``burstBytesMin``.
struct PublishLimiter: BitwiseCopyable, Sendable {
    /// A key frame of a shared screen has some hundred kB, whatever the rate is.
    static let burstBytesMin = 524_288
    /// Percent above the rate that are let through: encoders keep to their rate on average only, and headers and
    /// retransmissions come on top.
    static let tolerancePercent = 15
    /// Time at the full rate that may be used up at once: a key frame of every layer.
    private let burst: Interval
    /// What one byte takes at the full rate, in 1/1024 ns; 0 for no limit.
    private let costPerByte: Int64
    /// When everything taken in until now is paid for.
    private var paidAt = Instant(nanoseconds: .min / 2)

    /// - Parameter bitsPerSecondMax: `nil` for no limit.
    init(bitsPerSecondMax: Int?) {
        guard let bitsPerSecondMax else {
            (costPerByte, burst) = (0, .seconds(1))
            return
        }
        let rate = max(bitsPerSecondMax, 1_000)
        let enforced = rate / 100 &* (100 + Self.tolerancePercent)
        costPerByte = Int64(max(8 * 1_024 * 1_000_000_000 / enforced, 1))
        burst = max(.seconds(1), Interval(nanoseconds: (Int64(Self.burstBytesMin) &* costPerByte) >> 10))
    }

    /// Takes in bytes.
    /// - Parameter isAudio: audio may use up twice as much at once, so that it goes on while video has used up the bucket.
    /// - Returns: `false`, taking in nothing, when they are beyond the rate.
    @inline(__always)
    mutating func take(bytes: Int, isAudio: Bool = false, at now: Instant) -> Bool {
        guard costPerByte > 0 else { return true }
        let paid = max(paidAt, now) + Interval(nanoseconds: (Int64(bytes) &* costPerByte) >> 10)
        guard paid - now <= burst + (isAudio ? burst : .zero) else { return false }
        paidAt = paid
        return true
    }

    /// Whether at least half of the bucket is free.
    func hasRoom(at now: Instant) -> Bool { paidAt - now <= Interval(nanoseconds: burst.nanoseconds / 2) }

    /// Frees half of the bucket: the bytes that filled it come no more.
    mutating func relieve(at now: Instant) {
        paidAt = min(paidAt, now + Interval(nanoseconds: burst.nanoseconds / 2))
    }
}

/// Whether a received stream is dropped for a while: its peer exceeds its rate, or a loop is overloaded.
struct Shedding: Sendable {
    /// The first duration, and the longest. It doubles for a peer that exceeds the rate again soon after.
    private static let durationMin = Interval.seconds(2)
    private static let durationMax = Interval.seconds(16)
    /// After this long without, the next time counts as the first.
    private static let memory = Interval.seconds(30)

    private(set) var isActive = false
    /// Until then its peer's rate keeps the stream out.
    private(set) var endsAt = Instant(nanoseconds: 0)
    private var duration = Self.durationMin
    /// Until then an overload keeps the stream out.
    private var heldUntil = Instant(nanoseconds: .min / 2)

    mutating func begin(at now: Instant) {
        duration =
            endsAt + Self.memory > now && endsAt.nanoseconds != 0
            ? min(Interval(nanoseconds: duration.nanoseconds * 2), Self.durationMax) : Self.durationMin
        isActive = true
        endsAt = now + duration
    }

    /// Keeps the stream out for an overload.
    /// - Returns: whether it was taken in before.
    mutating func hold(until instant: Instant) -> Bool {
        heldUntil = max(heldUntil, instant)
        defer { isActive = true }
        return !isActive
    }

    /// Whether an overload and not its peer's rate keeps the stream out, or did last.
    var isForOverload: Bool { heldUntil > endsAt }

    /// Whether the stream may begin again, at a key frame.
    func mayEnd(at now: Instant) -> Bool { now >= max(endsAt, heldUntil) }

    mutating func end() { isActive = false }
}
