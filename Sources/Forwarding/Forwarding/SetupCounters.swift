package import Base

/// How long the phases of peers' set-up took, of all peers of one loop.
public struct SetupCounters: Sendable {
    public enum Phase: Int, Sendable, CaseIterable {
        /// From the peer's description to the first pair that ICE selected.
        case ice
        /// From there to the end of the DTLS handshake.
        case dtls
        /// From there to the first frame of video that is sent to the peer. It counts from the video's start where that is
        /// later, and from the time that the peer got it to play.
        case firstFrame
    }

    /// The inclusive upper bounds of the buckets in seconds, ascending; one more bucket without a bound follows.
    public static let bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]

    private var phases: [3 of BucketCounts] = .init(repeating: BucketCounts())

    public init() {}

    /// The count of each bucket, not cumulative: one for each of ``bounds`` and one for larger values.
    public func counts(of phase: Phase) -> [UInt64] { phases[phase.rawValue].counts }
    /// The sum of the durations in seconds.
    public func sum(of phase: Phase) -> Double { phases[phase.rawValue].sum }

    /// Counts the duration of one peer's phase.
    package mutating func note(_ phase: Phase, _ duration: Interval) {
        phases[phase.rawValue].observe(max(Double(duration.nanoseconds), 0) / 1e9, bounds: Self.bounds)
    }
}
