package import Base

/// Whether the store is used: three failures in a row take it out, and a heartbeat that succeeds brings it back.
///
/// Nobody waits for a store that is known to be down. Heartbeats alone go to it then, about one a second.
package struct StoreHealth: Hashable, Sendable {
    /// What a result changed, for the log and for the connection, which is not kept while the store is down.
    package enum Change: Hashable, Sendable { case wentDown, cameUp }

    static let failuresMax = 3
    /// A heartbeat that takes longer comes from a slow store, which a script's deadline of 150 ms would often miss.
    static let fastMax = Interval.milliseconds(100)
    /// The fast heartbeats in a row that bring a slow store back.
    static let fastCount = 5
    /// The mean time between heartbeats to a store that is down.
    static let probeInterval = Interval.milliseconds(1_000)
    /// How much the time varies, so that the nodes do not return together.
    static let jitter = 0.3

    package private(set) var isUp = true
    private var failures = 0
    /// The fast heartbeats that are still to come.
    private var fastMissing = 0
    private var nextProbe: Instant?

    package init() {}

    /// Whether a request may be sent. For a store that is down this counts as the probe.
    /// - Parameter random: from 0 up to 1.
    package mutating func admits(isHeartbeat: Bool, random: Double, at now: Instant) -> Bool {
        guard !isUp else { return true }
        guard isHeartbeat, nextProbe.map({ now >= $0 }) ?? true else { return false }
        let factor = 1 + Self.jitter * (2 * random - 1)
        nextProbe = now + .seconds(Self.probeInterval.seconds * factor)
        return true
    }

    /// A request was answered.
    package mutating func succeeded(isHeartbeat: Bool, after duration: Interval) -> Change? {
        failures = 0
        guard !isUp, isHeartbeat else { return nil }
        if duration > Self.fastMax {
            fastMissing = Self.fastCount
            return nil
        }
        fastMissing = max(fastMissing - 1, 0)
        guard fastMissing == 0 else { return nil }
        isUp = true
        nextProbe = nil
        return .cameUp
    }

    /// A request was not answered in time, or the store said that it cannot.
    package mutating func failed() -> Change? {
        failures = min(failures + 1, Self.failuresMax)
        guard isUp, failures == Self.failuresMax else { return nil }
        isUp = false
        return .wentDown
    }
}
