import Base

/// When the keys at a URL are fetched: regularly, at once for an unknown key ID, and more rarely while the server fails.
///
/// It reads no clock and fetches nothing itself: see ``RemoteKeySet``.
struct KeySetSchedule: Hashable, Sendable {
    /// The time until the next fetch, unless the answer's `max-age` says otherwise.
    static let ageDefault = Interval.seconds(300)
    /// The bounds of `max-age`. A withdrawn key is valid for the longest at most.
    static let ages = Interval.seconds(60)...Interval.seconds(3_600)
    /// The least time between a fetch and the next one for an unknown key ID. Clients without a valid token cause these.
    static let spacing = Interval.seconds(10)
    /// The wait after the first failure. It doubles with each further one, up to ``backoffMax``.
    static let backoffMin = Interval.seconds(5)
    static let backoffMax = Interval.seconds(60)

    /// When to fetch next.
    private(set) var nextFetch: Instant
    /// The fetches that failed one after the other until now.
    private(set) var failures = 0
    /// When the last fetch began; `nil` before the first.
    private var lastFetch: Instant?

    init(at now: Instant) { nextFetch = now }

    /// Notes that a fetch begins.
    mutating func began(at now: Instant) { lastFetch = now }

    /// Notes that the keys were fetched.
    /// - Parameter maxAge: of the answer's `Cache-Control`, in seconds (RFC 9111 §5.2.2.1); `nil` without one.
    mutating func succeeded(maxAge: Int?, at now: Instant) {
        failures = 0
        let seconds = maxAge.map { Interval.seconds(min(max($0, 0), 1 << 20)) } ?? Self.ageDefault
        nextFetch = now + min(max(seconds, Self.ages.lowerBound), Self.ages.upperBound)
    }

    /// Notes that a fetch failed.
    mutating func failed(at now: Instant) {
        failures = min(failures + 1, 1_000_000)
        var wait = Self.backoffMin
        for _ in 1..<min(failures, 16) { wait = min(wait + wait, Self.backoffMax) }
        nextFetch = now + wait
    }

    /// Whether to fetch for a token with an unknown key ID.
    func permitsFetchForUnknownKey(at now: Instant) -> Bool {
        guard failures == 0 else { return now >= nextFetch }
        return lastFetch.map { now >= $0 + Self.spacing } ?? true
    }
}
