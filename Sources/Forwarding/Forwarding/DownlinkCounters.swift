public import Wire

/// What receivers report of the media that they are sent, by kind: each second of each slot with a new report.
///
/// A receiver may report anything. It changes only these counts, and by one in a second.
public struct DownlinkCounters: Sendable {
    public enum Measure: Int, Sendable, CaseIterable {
        /// The share of packets that were lost on the way to the receiver, 0…1.
        case lossRatio
        /// Seconds, from our sender reports; of each peer once for each kind.
        case roundTrip
        /// The interarrival jitter of RFC 3550, in seconds.
        case jitter

        /// The inclusive upper bounds of the buckets, ascending; one more bucket without a bound follows.
        public var bounds: [Double] {
            switch self {
            case .lossRatio: [0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
            case .roundTrip: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2]
            case .jitter: [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5]
            }
        }
    }

    private static let table: [[Double]] = Measure.allCases.map(\.bounds)

    private var audio: [3 of BucketCounts] = .init(repeating: BucketCounts())
    private var video: [3 of BucketCounts] = .init(repeating: BucketCounts())

    public init() {}

    /// The count of each bucket, not cumulative: one for each of ``Measure/bounds`` and one for larger values.
    public func counts(of measure: Measure, _ kind: MediaKind) -> [UInt64] { counts(measure, kind).counts }
    /// The sum of the values.
    public func sum(of measure: Measure, _ kind: MediaKind) -> Double { counts(measure, kind).sum }

    private func counts(_ measure: Measure, _ kind: MediaKind) -> BucketCounts {
        switch kind {
        case .audio: audio[measure.rawValue]
        case .video: video[measure.rawValue]
        }
    }

    /// Counts one value.
    package mutating func note(_ measure: Measure, _ kind: MediaKind, _ value: Double) {
        switch kind {
        case .audio: audio[measure.rawValue].observe(value, bounds: Self.table[measure.rawValue])
        case .video: video[measure.rawValue].observe(value, bounds: Self.table[measure.rawValue])
        }
    }
}
