import CongestionControl

/// A sender of packets of 1,000 bytes, a link with one queue, and a receiver that reports every 100 ms, in virtual time.
struct SimulatedPath: ~Copyable {
    static let bytes = 1_000
    private static let step: Int64 = 1_000
    private static let delay: Int64 = 40_000
    /// The receiver's clock is ahead by this.
    static let offset: Int64 = 987_654_321_000

    var controller: SendController
    /// Bits a second.
    var capacity: Double
    /// What the media send at most, in bits a second; the target limits them, too.
    var media = Double.infinity
    /// Whether the path loses a packet, by its number and the time.
    var loses: (_ sequence: Int64, _ now: Int64) -> Bool = { _, _ in false }
    var isReporting = true
    /// Changes a report before it arrives: the receiver's lies.
    var lie: (inout FeedbackReport) -> Void = { _ in }
    private(set) var now: Int64 = 0
    /// The fastest rate at which a probe cluster left, and at which packets left in any half second.
    private(set) var clusterRate = 0.0
    private(set) var sentRate = 0.0
    private(set) var probes = 0

    private var sequence: Int64 = 0
    private var tokens = 0.0
    private var linkFreeAt: Int64 = 0
    private var cluster: (ProbeCluster, startedAt: Int64, bytes: Int, packets: Int)?
    private var unreported: ContiguousArray<PacketResult> = []
    private var sent: [(at: Int64, bytes: Int)] = []

    init(_ settings: SendController.Settings = .init(), capacity: Double, demand: Double) {
        controller = SendController(settings, at: 0)
        self.capacity = capacity
        controller.setDemand(demand)
    }

    mutating func run(seconds: Double) {
        let end = now + Int64(seconds * 1e6)
        while now < end {
            now += Self.step
            if now % 25_000 == 0 { controller.handleTimeout(at: now) }
            if cluster == nil { cluster = controller.takeProbe(at: now).map { ($0, now, 0, 0) } }
            sendCluster()
            tokens = min(tokens + min(controller.target, media) * Double(Self.step) / 8e6, 5_000)
            while tokens >= Double(Self.bytes) {
                tokens -= Double(Self.bytes)
                send(cluster: 0)
            }
            if now % 100_000 == 0 { report() }
        }
    }

    /// Sends a cluster's packets 2 ms apart, several at once if its rate needs it.
    private mutating func sendCluster() {
        guard let (cluster, startedAt, _, _) = cluster, (now - startedAt) % 2_000 == 0 else { return }
        let due = cluster.rate * Double(now - startedAt + 2_000) / 8e6
        while let progress = self.cluster, Double(progress.bytes) < due {
            send(cluster: cluster.id)
            self.cluster?.bytes += Self.bytes
            self.cluster?.packets += 1
            guard let (_, _, bytes, packets) = self.cluster, bytes >= cluster.bytesMin, packets >= cluster.packetsMin
            else { continue }
            clusterRate = max(clusterRate, Double(bytes) * 8e6 / Double(now - startedAt))
            probes += 1
            self.cluster = nil
        }
    }

    private mutating func send(cluster: UInt8) {
        linkFreeAt = max(linkFreeAt, now) + Int64(Double(Self.bytes) * 8e6 / capacity)
        unreported.append(
            PacketResult(
                sequence: sequence,
                sentAt: now,
                arrivedAt: loses(sequence, now) ? nil : (linkFreeAt + Self.delay) / 250 * 250 + Self.offset,
                bytes: Self.bytes,
                cluster: cluster
            )
        )
        sequence += 1
        controller.packetSent(bytes: Self.bytes, at: now)
        sent.append((now, Self.bytes))
        sent.removeAll { now - $0.at >= 500_000 }
        sentRate = max(sentRate, Double(sent.reduce(0) { $0 + $1.bytes }) * 16)
    }

    private mutating func report() {
        let arrived = unreported.prefix { $0.arrivedAt - Self.offset + Self.delay <= now }
        unreported.removeFirst(arrived.count)
        guard isReporting, !arrived.isEmpty else { return }
        var report = FeedbackReport(arrivedAt: now, packets: ContiguousArray(arrived))
        lie(&report)
        controller.received(report)
    }
}
