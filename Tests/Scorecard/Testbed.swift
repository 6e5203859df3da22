import Base
import CongestionControl
import TestSupport
import Wire

/// Flows, transfers and links in virtual time. A seed gives the same run each time, on every machine. Times are
/// microseconds.
final class Testbed {
    private enum Event {
        case sample
        case tick(Int)
        case picture(Int)
        case audio(Int)
        case pace(Int)
        case probe(Int)
        case report(Int)
        case linkDone(Int)
        case linkRetry(Int)
        case arrive(Packet)
        case acknowledge(cubic: Int, sequence: Int)
        case reportArrives(Int, FeedbackReport)
        case startTransfer(Int, bytes: Double)
        case transferTimer(Int)
        case constant(Int)
    }
    /// The state of all at one time.
    struct Sample {
        var at: Int64
        /// Of the first link.
        var queueMS: Double
        /// Of each flow, in bits a second.
        var targets: [Double]
    }
    /// A sender whose rate is constant.
    struct ConstantSender: Sendable {
        static let packetBytes = 1_000
        var from: Double
        var to: Double
        /// Bits a second.
        var rate: Double
        var interval: Int64 { Int64(Double(Self.packetBytes) * 8e6 / rate) }
    }

    private static let sampleInterval: Int64 = 50_000
    private static let tickInterval: Int64 = 25_000
    private static let cubicDelay: Int64 = 50_000
    private static let retryInterval: Int64 = 5_000

    private(set) var now: Int64 = 0
    private(set) var links: [Link]
    private(set) var flows: [Flow] = []
    private(set) var cubics: [CubicSender] = []
    private(set) var samples: [Sample] = []
    private var constants: [ConstantSender] = []
    private var events = EventQueue<Event>()
    private var generator: SeededGenerator

    init(links: [LinkSettings], seed: UInt64) {
        self.links = links.enumerated().map { Link($1, seed: seed &* 7_919 &+ 1 &+ UInt64($0)) }
        generator = SeededGenerator(seed: seed &* 31)
        events.add(.sample, at: 0)
    }

    // MARK: - Senders

    func add(_ settings: FlowSettings, controller kind: ControllerKind, seed: UInt64) {
        let index = flows.count
        let start = Int64(settings.startAt * 1e6)
        let seed = seed &* 104_729 &+ UInt64(index) &+ 17
        flows.append(Flow(settings, controller: kind.make(index, start), seed: seed))
        events.add(.tick(index), at: start)
        events.add(.picture(index), at: start + 1_000)
        events.add(.audio(index), at: start + 500)
    }

    func add(_ settings: CubicSender.Settings) {
        let index = cubics.count
        cubics.append(CubicSender(settings))
        var bytes = settings.bytes
        var start = settings.startAt
        if settings.repeats {
            bytes = drawTransfer()
            start += 10 * generator.uniform()
        }
        events.add(.startTransfer(index, bytes: bytes), at: Int64(start * 1e6) + 1_000)
        events.add(.transferTimer(index), at: CubicSender.timerInterval)
    }

    func add(_ sender: ConstantSender) {
        constants.append(sender)
        events.add(.constant(constants.count - 1), at: Int64(sender.from * 1e6))
    }

    func run(until seconds: Double) {
        while let (at, event) = events.pop(until: Int64(seconds * 1e6)) {
            now = at
            handle(event)
        }
    }

    // MARK: - Events

    private func handle(_ event: Event) {
        switch event {
        case .sample: sample()
        case .tick(let index): tick(index)
        case .picture(let index):
            if flows[index].settings.demand(at: Double(now) / 1e6) > 0 {
                flows[index].makePicture()
                pace(index)
            }
            events.add(.picture(index), at: now + Flow.pictureInterval)
        case .audio(let index):
            if flows[index].settings.demand(at: Double(now) / 1e6) > 0 {
                send(index, bytes: Flow.audioBytes, purpose: .audio)
            }
            events.add(.audio(index), at: now + Flow.audioInterval)
        case .pace(let index):
            flows[index].pacer.isScheduled = false
            pace(index)
        case .probe(let index): probe(index)
        case .report(let index): makeReport(index)
        case .linkDone(let index): linkDone(index)
        case .linkRetry(let index):
            links[index].isWaiting = false
            serve(index)
        case .arrive(let packet): arrive(packet)
        case .acknowledge(let index, let sequence): acknowledge(index, sequence)
        case .reportArrives(let index, let report): reportArrives(index, report)
        case .startTransfer(let index, let bytes):
            cubics[index].start(bytes: bytes, at: now)
            fill(index)
        case .transferTimer(let index):
            cubics[index].handleTimeout(at: now)
            fill(index)
            events.add(.transferTimer(index), at: now + CubicSender.timerInterval)
        case .constant(let index):
            let sender = constants[index]
            push(Packet(source: .constant(index), sequence: 0, bytes: ConstantSender.packetBytes), to: 0)
            if Double(now) / 1e6 < sender.to { events.add(.constant(index), at: now + sender.interval) }
        }
    }

    private func sample() {
        let rate = max(links[0].settings.rate(at: now), 1_000)
        let queueMS = Double(links[0].queuedBytes) * 8e3 / rate
        samples.append(Sample(at: now, queueMS: queueMS, targets: flows.map(\.controller.target)))
        events.add(.sample, at: now + Self.sampleInterval)
    }

    private func tick(_ index: Int) {
        let demand = flows[index].settings.demand(at: Double(now) / 1e6)
        if demand > 0, demand != flows[index].demand {
            flows[index].demand = demand
            flows[index].controller.setDemand(demand + Flow.audioRate, at: now)
        }
        flows[index].controller.handleTimeout(at: now)
        startProbe(index)
        events.add(.tick(index), at: now + Self.tickInterval)
    }

    // MARK: - Sending

    private func send(_ index: Int, bytes: Int, purpose: Flow.Purpose, cluster: UInt8 = 0) {
        var packet = Packet(source: .flow(index), sequence: flows[index].records.count, bytes: bytes)
        var record = Flow.Record(purpose: purpose, bytes: bytes, cluster: cluster, sentAt: now)
        record.isMarked = flows[index].settings.usesECN && flows[index].controller.marksPackets
        if record.isMarked { packet.ecn = .capable1 }
        flows[index].records.append(record)
        flows[index].controller.packetSent(bytes: bytes, at: now)
        push(packet, to: flows[index].settings.route[0])
    }

    private func pace(_ index: Int) {
        let rate = flows[index].controller.pacingRate
        flows[index].pacer.refill(rate: rate, burst: flows[index].controller.pacingBurst, at: now)
        while let bytes = flows[index].pacer.take() { send(index, bytes: bytes, purpose: .video) }
        guard !flows[index].pacer.isEmpty, !flows[index].pacer.isScheduled else { return }
        flows[index].pacer.isScheduled = true
        events.add(.pace(index), at: now + flows[index].pacer.wait(rate: rate))
    }

    private func startProbe(_ index: Int) {
        guard flows[index].probe == nil, flows[index].settings.demand(at: Double(now) / 1e6) > 0,
            let cluster = flows[index].controller.takeProbe(at: now)
        else { return }
        flows[index].probe = ProbeRun(cluster: cluster, startedAt: now)
        probe(index)
    }

    private func probe(_ index: Int) {
        guard var run = flows[index].probe else { return }
        while run.isDue(at: now) {
            let video = flows[index].pacer.takeFirst()
            let bytes = video ?? run.paddingBytes
            run.bytes += bytes
            run.packets += 1
            send(index, bytes: bytes, purpose: video == nil ? .padding : .video, cluster: run.cluster.id)
        }
        flows[index].probe = run.isComplete ? nil : run
        if run.isComplete { startProbe(index) } else { events.add(.probe(index), at: now + ProbeRun.interval) }
    }

    // MARK: - Transfers

    private func fill(_ index: Int) {
        while let sequence = cubics[index].takePacket(at: now) {
            push(Packet(source: .cubic(index), sequence: sequence, bytes: CubicSender.packetBytes), to: 0)
        }
    }

    private func acknowledge(_ index: Int, _ sequence: Int) {
        guard cubics[index].isRunning else { return }
        cubics[index].acknowledged(sequence, at: now)
        guard !cubics[index].isRunning, cubics[index].settings.repeats else { return fill(index) }
        let wait = Int64(generator.exponential(mean: 10) * 1e6)
        events.add(.startTransfer(index, bytes: drawTransfer()), at: now + wait)
    }

    private func drawTransfer() -> Double { 100_000 + 900_000 * generator.uniform() }

    // MARK: - Links

    private func push(_ packet: Packet, to link: Int) {
        if !links[link].enqueue(packet, at: now), case .flow(let index) = packet.source {
            flows[index].records[packet.sequence].isDropped = true
        }
        serve(link)
    }

    private func serve(_ link: Int) {
        guard links[link].isReady else { return }
        if let time = links[link].serve(at: now) {
            events.add(.linkDone(link), at: now + time)
        } else {
            links[link].isWaiting = true
            events.add(.linkRetry(link), at: now + Self.retryInterval)
        }
    }

    private func linkDone(_ link: Int) {
        guard var packet = links[link].serving else { return }
        links[link].serving = nil
        defer { serve(link) }
        var baseDelay = Self.cubicDelay
        var route = [0]
        switch packet.source {
        case .flow(let index):
            flows[index].records[packet.sequence].queueDelay =
                (flows[index].records[packet.sequence].queueDelay ?? 0) + now - packet.enqueuedAt
            baseDelay = Int64(flows[index].settings.baseDelayMS * 1_000)
            route = flows[index].settings.route
        case .report(let index):
            baseDelay = Int64(flows[index].settings.baseDelayMS * 1_000)
            route = flows[index].settings.reportRoute
        case .cubic, .constant: break
        }
        let arrival = links[link].arrival(of: packet, baseDelay: baseDelay, at: now)
        if links[link].losesPacket() { return }
        packet.hop += 1
        if packet.hop < route.count {
            push(packet, to: route[packet.hop])
        } else {
            events.add(.arrive(packet), at: arrival)
        }
    }

    private func arrive(_ packet: Packet) {
        switch packet.source {
        case .flow(let index):
            flows[index].records[packet.sequence].arrivedAt = now
            if flows[index].settings.usesECN { flows[index].records[packet.sequence].ecn = packet.ecn }
            flows[index].receiver.arrived(packet.sequence)
            guard !flows[index].receiver.isReportScheduled else { return }
            flows[index].receiver.isReportScheduled = true
            let step = Int64(flows[index].settings.reportMS * 1_000)
            events.add(.report(index), at: (now / step + 1) * step)
        case .report(let index): reportArrives(index, flows[index].receiver.reportsUnderWay[packet.sequence])
        case .cubic(let index):
            events.add(.acknowledge(cubic: index, sequence: packet.sequence), at: now + Self.cubicDelay)
        case .constant: break
        }
    }

    // MARK: - Reports

    private func makeReport(_ index: Int) {
        flows[index].receiver.isReportScheduled = false
        guard let report = flows[index].makeReport(at: now),
            !losesReport(index)
        else { return }
        let settings = flows[index].settings
        guard let link = settings.reportRoute.first else {
            return events.add(.reportArrives(index, report), at: now + settings.reportDelay(at: Double(now) / 1e6))
        }
        let sequence = flows[index].receiver.reportsUnderWay.count
        flows[index].receiver.reportsUnderWay.append(report)
        push(Packet(source: .report(index), sequence: sequence, bytes: Receiver.bytes(of: report)), to: link)
    }

    private func losesReport(_ index: Int) -> Bool {
        let settings = flows[index].settings
        if settings.reportsOff?.contains(Double(now) / 1e6) == true { return true }
        guard let loss = settings.reportLoss else { return false }
        if flows[index].receiver.reportsToLose > 0 {
            flows[index].receiver.reportsToLose -= 1
            return true
        }
        guard flows[index].generator.uniform() < loss.share / Double(loss.burst) else { return false }
        flows[index].receiver.reportsToLose = loss.burst - 1
        return true
    }

    private func reportArrives(_ index: Int, _ report: FeedbackReport) {
        var report = report
        report.arrivedAt = now
        flows[index].controller.received(report)
        startProbe(index)
        pace(index)
    }
}
