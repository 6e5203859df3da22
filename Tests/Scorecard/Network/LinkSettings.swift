/// How a bottleneck of the testbed behaves. Times are seconds from the start of a run, rates bits a second.
struct LinkSettings: Sendable {
    /// The capacity from these times on.
    var capacity: [(at: Double, rate: Double)]
    /// What the queue holds at the present capacity, in milliseconds; three packets fit in any case.
    var queueMS = 300.0
    /// What the queue holds instead, in packets.
    var queuePackets: Int?
    /// What the queue holds instead, in bytes.
    var queueBytes: Int?
    /// The deviation of the added delay in milliseconds; at most 30 are added.
    var jitterMS = 0.0
    /// Whether jitter keeps the order of packets.
    var keepsOrder = true
    /// Some packets are held back for this long, one in a hundred, in milliseconds.
    var lateMS = 0.0
    /// The share of packets that are lost at random behind the queue.
    var loss = 0.0
    /// Mean lengths in packets of a Gilbert-Elliott model's states; all packets of the bad state are lost.
    var gilbert: (good: Double, bad: Double)?
    /// The delay in milliseconds that the path adds from these times on.
    var extraDelay: [(at: Double, ms: Double)] = []
    /// Nothing leaves the queue in these times.
    var outages: [ClosedRange<Double>] = []
    /// Packets that would arrive within these times arrive at their ends.
    var spikes: [ClosedRange<Double>] = []
    /// Arrivals at multiples of this only, in milliseconds.
    var batchMS: Double?
    /// A token bucket in front of the queue that drops what exceeds it.
    var policer: (rate: Double, bytes: Double)?
    /// What marks and drops packets before the queue is full.
    var aqm: QueueMarker.Settings?
    /// The ECN field of all packets is cleared from this time on.
    var bleachesFrom: Double?
    /// The capacity changes all the time: no times after a change are left out of the figures.
    var isWalk = false

    /// - Parameter steps: megabits a second from these times on.
    init(_ steps: [(Double, Double)], _ change: (inout LinkSettings) -> Void = { _ in }) {
        capacity = steps.map { ($0.0, $0.1 * 1e6) }
        change(&self)
    }

    /// The capacity at a time; 0 in an outage.
    func rate(at now: Int64) -> Double {
        let seconds = Double(now) / 1e6
        if outages.contains(where: { $0.contains(seconds) }) { return 0 }
        var low = 0
        var high = capacity.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if capacity[middle].at <= seconds { low = middle } else { high = middle }
        }
        return capacity[low].rate
    }

    /// The added delay at a time, in microseconds.
    func delay(at now: Int64) -> Int64 {
        let seconds = Double(now) / 1e6
        return Int64((extraDelay.last { $0.at <= seconds }?.ms ?? 0) * 1_000)
    }
}
