/// What the bottleneck carries in all, from pairs of packets that left together: the second one arrives later by the time that
/// the bottleneck took for it, whoever else uses the path.
///
/// Wireless links that deliver in batches and shapers with a bucket overstate it, so it is a hint about proportions and never a
/// rate to send at. Where nearly all pairs agree, a key frame is not sent faster.
struct CapacityHint: ~Copyable, Sendable {
    private static let samplesMin = 5
    private static let bytesMin = 400
    private static let sendGapMax: Int64 = 200
    /// The receiver's clock has steps of 250 µs (transport-cc).
    private static let arrivalGapMin: Int64 = 500
    private static let arrivalGapMax: Int64 = 200_000
    /// Pairs agree when they differ from the median by an eighth at most. Gaps of fewer than four steps of the clock say nothing: on
    /// a fast link all are the least one.
    private static let agreement = 0.125
    private static let agreementGapMin: Int64 = 1_000
    /// The share of the pairs that agree on a path without jitter, whatever a few of them met.
    private static let agreeingShare = 0.75

    // Not private: without optimization Swift 6.3.1 fails on a private type that a ring of another file keeps.
    struct Sample: BitwiseCopyable {
        /// Bits a second.
        var rate: Double
        /// The clock has told its gap.
        var isExact: Bool
    }

    private var samples = Ring(capacity: 16, filler: Sample(rate: 0, isExact: false))
    private var sentAt = Int64.min / 2
    private var arrivedAt: Int64 = 0
    private var bytes = 0
    private var hasNewSample = false
    /// Bits a second.
    private(set) var rate: Double?
    /// Whether nearly all pairs agree: not on a path with jitter, or one that reorders packets.
    private(set) var isAgreed = false

    func prefetch() { samples.prefetch() }

    /// Takes a received packet; packets come in the order of their numbers.
    mutating func add(_ packet: PacketResult) {
        defer {
            sentAt = packet.sentAt
            arrivedAt = packet.arrivedAt
            bytes = packet.bytes
        }
        guard packet.sentAt &- sentAt <= Self.sendGapMax, packet.bytes >= Self.bytesMin, bytes >= Self.bytesMin else {
            return
        }
        let gap = packet.arrivedAt &- arrivedAt
        guard gap >= 0, gap <= Self.arrivalGapMax else { return }
        samples.append(
            Sample(
                rate: Double(packet.bytes) * 8e6 / Double(max(gap, Self.arrivalGapMin)),
                isExact: gap >= Self.agreementGapMin
            )
        )
        hasNewSample = true
    }

    /// Ends a report.
    mutating func update() {
        guard hasNewSample, samples.count >= Self.samplesMin else { return }
        hasNewSample = false
        let median = median
        (rate, isAgreed) = (median, agree(on: median))
    }

    private func agree(on rate: Double) -> Bool {
        var agreeing = 0
        for index in 0..<samples.count {
            let sample = samples[index]
            if sample.isExact, abs(sample.rate - rate) <= Self.agreement * rate { agreeing += 1 }
        }
        return Double(agreeing) >= Self.agreeingShare * Double(samples.count)
    }

    mutating func reset() { self = CapacityHint() }

    private var median: Double {
        // Sorted by insertion, where no allocation is needed.
        var sorted = InlineArray<16, Double>(repeating: 0)
        for index in 0..<samples.count {
            let rate = samples[index].rate
            var hole = index
            while hole > 0, sorted[hole - 1] > rate {
                sorted[hole] = sorted[hole - 1]
                hole -= 1
            }
            sorted[hole] = rate
        }
        return sorted[samples.count / 2]
    }
}
