/// Packets that are to be sent faster than the target rate for a moment, to learn whether the path carries more.
package struct ProbeCluster: Equatable, Sendable {
    /// 1…255; names the cluster in ``PacketResult/cluster``.
    package var id: UInt8
    /// Bits a second.
    package var rate: Double
    /// Bytes that the cluster is to send at least.
    package var bytesMin: Int
    /// Packets that the cluster is to send at least.
    package var packetsMin: Int

    package static let durationUS = 15_000.0
    package static let packets = 5

    package init(id: UInt8, rate: Double, durationUS: Double = ProbeCluster.durationUS) {
        self.id = id
        self.rate = rate
        bytesMin = Int(exactly: (rate * durationUS / 8e6).rounded(.down)) ?? 0
        packetsMin = Self.packets
    }
}

/// Computes the rate that a path carried from the packets of a probe cluster (libwebrtc's `ProbeBitrateEstimator`).
package struct ProbeEstimator: Sendable {
    private struct Aggregate {
        var cluster: ProbeCluster
        var packets = 0
        var bytes = 0
        var firstSentAt = Int64.max
        var lastSentAt = Int64.min
        var firstArrivedAt = Int64.max
        var lastArrivedAt = Int64.min
        var lastSentBytes = 0
        var firstArrivedBytes = 0
    }

    /// The result of one cluster.
    package struct Result: Equatable, Sendable {
        package var cluster: ProbeCluster
        /// Bits a second that the path carried.
        package var rate: Double
        /// Bits a second at which the packets left.
        package var sendRate: Double
    }

    private static let clustersMax = 8
    private static let shareRequired = 0.8
    private static let spanMaxUS: Int64 = 1_000_000
    private static let ratioMax = 2.0
    /// Below this share of the send rate the path was full, and its rate is a little less than what arrived.
    private static let saturated = 0.9
    private static let saturatedFactor = 0.95

    private var aggregates: ContiguousArray<Aggregate> = []

    package init() {}

    /// A cluster is being sent.
    package mutating func begin(_ cluster: ProbeCluster) {
        if aggregates.count >= Self.clustersMax { aggregates.removeFirst() }
        aggregates.append(Aggregate(cluster: cluster))
    }

    /// Takes a received packet that belongs to a cluster.
    /// - Returns: the cluster's result so far, once enough of it has arrived.
    package mutating func add(_ packet: PacketResult) -> Result? {
        guard let index = aggregates.firstIndex(where: { $0.cluster.id == packet.cluster }) else { return nil }
        aggregates[index].packets += 1
        aggregates[index].bytes += packet.bytes
        if packet.sentAt > aggregates[index].lastSentAt {
            aggregates[index].lastSentAt = packet.sentAt
            aggregates[index].lastSentBytes = packet.bytes
        }
        aggregates[index].firstSentAt = min(aggregates[index].firstSentAt, packet.sentAt)
        if packet.arrivedAt < aggregates[index].firstArrivedAt {
            aggregates[index].firstArrivedAt = packet.arrivedAt
            aggregates[index].firstArrivedBytes = packet.bytes
        }
        aggregates[index].lastArrivedAt = max(aggregates[index].lastArrivedAt, packet.arrivedAt)
        return result(of: aggregates[index])
    }

    private func result(of aggregate: Aggregate) -> Result? {
        let cluster = aggregate.cluster
        guard Double(aggregate.packets) >= Self.shareRequired * Double(cluster.packetsMin),
            Double(aggregate.bytes) >= Self.shareRequired * Double(cluster.bytesMin)
        else { return nil }
        let sendSpan = aggregate.lastSentAt &- aggregate.firstSentAt
        let receiveSpan = aggregate.lastArrivedAt &- aggregate.firstArrivedAt
        guard sendSpan > 0, sendSpan <= Self.spanMaxUS, receiveSpan > 0, receiveSpan <= Self.spanMaxUS else {
            return nil
        }
        let sendRate = Double(aggregate.bytes - aggregate.lastSentBytes) * 8e6 / Double(sendSpan)
        let receiveRate = Double(aggregate.bytes - aggregate.firstArrivedBytes) * 8e6 / Double(receiveSpan)
        guard sendRate > 0, receiveRate <= Self.ratioMax * sendRate else { return nil }
        let rate =
            receiveRate < Self.saturated * sendRate ? Self.saturatedFactor * receiveRate : min(sendRate, receiveRate)
        return Result(cluster: cluster, rate: rate, sendRate: sendRate)
    }
}
