import Base

/// A token bucket that spaces the packets to one peer: plain memory beside the rest of what a fan-out reads.
///
/// Tokens are bytes of UDP payload. A turn's packets leave while there are any, and may take more than there are, so a frame
/// that fits leaves in the turn in which it came.
struct Pacer: BitwiseCopyable, Sendable {
    /// Bytes a second; 0 for no limit.
    private(set) var rate: Int64 = 0
    /// Tokens that are kept while nothing is sent.
    private var depth: Int64 = 0
    private var tokens: Int64 = 0
    private var filledAt: Int64 = 0

    /// Room for one packet at any rate.
    private static let depthMin: Int64 = 1_500
    /// A shorter time is left to the next refill, so that rounding loses less than a byte in two thousand.
    private static let refillMin: Int64 = 500_000
    private static let elapsedMax: Int64 = 1_000_000_000
    /// Bounds the arithmetic: 10 Gbit/s.
    private static let rateMax: Int64 = 1_250_000_000

    @inline(__always)
    var isLimited: Bool { rate != 0 }

    /// Sets the rate.
    /// - Parameters:
    ///   - bitsPerSecond: at most 10 Gbit/s; `nil` for no limit.
    ///   - burst: the time whose bytes may leave at once.
    mutating func set(_ bitsPerSecond: Int?, burst: Interval, at now: Instant) {
        guard let bitsPerSecond else {
            self = Pacer()
            return
        }
        if isLimited { refill(at: now) } else { filledAt = now.nanoseconds }
        let isFirst = !isLimited
        rate = min(max(Int64(bitsPerSecond) / 8, 1), Self.rateMax)
        depth = max(rate * min(burst.nanoseconds, Self.elapsedMax) / 1_000_000_000, Self.depthMin)
        tokens = isFirst ? depth : min(tokens, depth)
    }

    @inline(__always)
    mutating func refill(at now: Instant) {
        let elapsed = now.nanoseconds &- filledAt
        guard elapsed >= Self.refillMin else { return }
        filledAt = now.nanoseconds
        tokens = min(tokens &+ min(elapsed, Self.elapsedMax) &* rate / 1_000_000_000, depth)
    }

    /// Whether packets may leave now.
    @inline(__always)
    mutating func mayLeave(at now: Instant) -> Bool {
        guard isLimited else { return true }
        refill(at: now)
        return tokens > 0
    }

    @inline(__always)
    mutating func take(_ bytes: Int) { tokens &-= Int64(truncatingIfNeeded: bytes) }

    /// What leaves in a time.
    func bytes(in time: Interval) -> Int {
        isLimited ? Int(rate * min(time.nanoseconds, Self.elapsedMax) / 1_000_000_000) : .max
    }

    /// How long it takes until packets may leave.
    var wait: Interval {
        guard isLimited, tokens <= 0 else { return .zero }
        let missing = min(1 &- max(tokens, -Self.rateMax), Self.rateMax)
        return Interval(nanoseconds: max(missing * 1_000_000_000 / rate, Self.refillMin))
    }
}
