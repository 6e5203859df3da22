import Base
public import MediaTypes

/// What the peers of one loop are sent: histograms and sums of ``SendingStatistics``, of each connected peer once a second.
///
/// It holds no references, so that counting neither allocates nor retains.
public struct SendingCounters: Sendable {
    public enum Measure: Int, Sendable, CaseIterable {
        /// Bytes/s.
        case target
        /// What arrives, as a share of the target.
        case deliveredShare
        /// The target as a share of what the peer wants, at most 1.
        case demandShare
        /// Seconds.
        case queueDelay
        /// Seconds.
        case pacerDelay
        case lossRatio
        case retransmissionShare

        /// The inclusive upper bounds of the buckets, ascending; one more bucket without a bound follows.
        public var bounds: [Double] {
            switch self {
            case .target: [6_250, 12_500, 25_000, 62_500, 125e3, 250e3, 625e3, 1_250e3, 2_500e3, 6_250e3]
            case .deliveredShare: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
            case .demandShare: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999]
            case .queueDelay, .pacerDelay: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1]
            case .lossRatio, .retransmissionShare: [0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
            }
        }
    }

    private static let table: [[Double]] = Measure.allCases.map(\.bounds)

    private var measures: [7 of BucketCounts] = .init(repeating: BucketCounts())
    private var states: [6 of UInt64] = .init(repeating: 0)
    private var limits: [7 of UInt64] = .init(repeating: 0)
    /// Probe clusters sent.
    public private(set) var probes: UInt64 = 0
    /// Bytes of padding and of copies that probes were made of.
    public private(set) var paddingBytes: UInt64 = 0

    public init() {}

    /// The count of each bucket, not cumulative: one for each of ``Measure/bounds`` and one for larger values.
    public func counts(of measure: Measure) -> [UInt64] { measures[measure.rawValue].counts }
    /// The sum of the values.
    public func sum(of measure: Measure) -> Double { measures[measure.rawValue].sum }
    /// Seconds that peers spent in a state, all together.
    public subscript(_ state: SendingStatistics.State) -> UInt64 { states[state.index] }
    /// Seconds that peers spent with a limit, all together.
    public subscript(_ limit: SendingStatistics.Limit) -> UInt64 { limits[limit.index] }

    /// Counts one second of one connected peer.
    ///
    /// - Parameters:
    ///   - probes: those since the peer was counted last.
    ///   - paddingBytes: those since the peer was counted last.
    mutating func note(_ statistics: SendingStatistics, probes: UInt64, paddingBytes: UInt64) {
        states[statistics.state.index] &+= 1
        limits[statistics.limit.index] &+= 1
        self.probes &+= probes
        self.paddingBytes &+= paddingBytes
        observe(statistics.lossRatio, as: .lossRatio)
        observe(statistics.retransmissionShare, as: .retransmissionShare)
        observe(statistics.queueDelay.seconds, as: .queueDelay)
        observe(statistics.pacerDelay.seconds, as: .pacerDelay)
        guard statistics.state != .unlimited, statistics.target > 0 else { return }
        let target = Double(statistics.target)
        observe(target / 8, as: .target)
        if let delivered = statistics.delivered { observe(Double(delivered) / target, as: .deliveredShare) }
        if statistics.demand > 0 { observe(min(target / Double(statistics.demand), 1), as: .demandShare) }
    }

    private mutating func observe(_ value: Double, as measure: Measure) {
        measures[measure.rawValue].observe(value, bounds: Self.table[measure.rawValue])
    }
}

extension ForwarderCounters {
    /// Counts one second of one connected peer that has slots.
    ///
    /// - Parameters:
    ///   - probes: those since the peer was counted last.
    ///   - paddingBytes: those since the peer was counted last.
    package mutating func noteSending(_ statistics: SendingStatistics, probes: UInt64, paddingBytes: UInt64) {
        sending.note(statistics, probes: probes, paddingBytes: paddingBytes)
    }
}

extension SendingStatistics.State {
    fileprivate var index: Int {
        switch self {
        case .unlimited: 0
        case .start: 1
        case .steady: 2
        case .drain: 3
        case .compete: 4
        case .stale: 5
        }
    }
}

extension SendingStatistics.Limit {
    fileprivate var index: Int {
        switch self {
        case .demand: 0
        case .delay: 1
        case .loss: 2
        case .competition: 3
        case .silence: 4
        case .receiver: 5
        case .maximum: 6
        }
    }
}

extension Interval {
    fileprivate var seconds: Double { Double(nanoseconds) / 1e9 }
}
