import CongestionControl

/// The product's controller with a fault: gates that hold for it too are worth nothing. Times are microseconds, rates
/// bits a second.
struct BrokenController: RateController {
    enum Fault: String, CaseIterable, Sendable {
        case neverReduces, neverRaises
        /// It is told of received packets only.
        case ignoresLoss
        /// It is told that each packet takes the same time.
        case ignoresDelay
        case halvesAtLoss
        /// It probes for twice its rate each second and takes any packet that arrives for proof.
        case believesProbes
        case probesAlways
        /// Its target is that of two round trips ago.
        case reactsLate
        case ignoresSilence
        /// Its packets leave as ECT(1) on every path.
        case marksAlways
        /// Its target is half of what it should be every other second.
        case oscillates
        /// Its target is 1 and 1.5 Mbit/s in turn, for 50 ms each.
        case flickers
        /// Only the first flow of a case never raises, or never reduces.
        case firstNeverRaises, firstNeverReduces
    }

    private static let probeID: UInt8 = 200
    private static let assumedDelay: Int64 = 50_000
    private static let silence: Int64 = 600_000

    private let fault: Fault?
    private var inner: ProductController
    private var now: Int64
    private var highest: Double
    private var lowest: Double
    private var lossLimit = Double.infinity
    private var probe: (rate: Double, at: Int64)?
    private var believed = 0.0
    private var demand = 0.0
    private var history: [(at: Int64, target: Double)] = []
    private var roundTrip: Int64 = 100_000
    private var reportAt: Int64
    private var targetAtReport: Double

    init(_ fault: Fault, flow: Int, at now: Int64) {
        switch fault {
        case .firstNeverRaises: self.fault = flow == 0 ? .neverRaises : nil
        case .firstNeverReduces: self.fault = flow == 0 ? .neverReduces : nil
        default: self.fault = fault
        }
        inner = ProductController(at: now)
        self.now = now
        highest = inner.target
        lowest = inner.target
        reportAt = now
        targetAtReport = inner.target
    }

    var target: Double {
        switch fault {
        case .neverReduces: highest
        case .neverRaises: lowest
        case .halvesAtLoss: min(inner.target, lossLimit)
        case .believesProbes: max(inner.target, believed)
        case .reactsLate: history.first?.target ?? inner.target
        case .ignoresSilence: now - reportAt > Self.silence ? targetAtReport : inner.target
        case .oscillates: now / 1_000_000 % 2 == 0 ? inner.target : inner.target / 2
        case .flickers: (now - 10_000) / 50_000 % 2 == 0 ? 1_000_000 : 1_500_000
        default: inner.target
        }
    }

    var marksPackets: Bool { fault == .marksAlways || inner.marksPackets }

    var pacingRate: Double { inner.pacingRate / inner.target * target }

    mutating func packetSent(bytes: Int, at now: Int64) { inner.packetSent(bytes: bytes, at: now) }

    mutating func setDemand(_ rate: Double, at now: Int64) {
        demand = rate
        inner.setDemand(rate, at: now)
    }

    mutating func handleTimeout(at now: Int64) {
        inner.handleTimeout(at: now)
        note(at: now)
    }

    mutating func received(_ report: FeedbackReport) {
        var report = report
        var hasLoss = false
        for packet in report.packets {
            if packet.isReceived {
                roundTrip = report.arrivedAt - packet.sentAt
                if packet.cluster == Self.probeID, let probe { believed = probe.rate }
            } else {
                hasLoss = true
            }
        }
        if hasLoss { lossLimit = 0.5 * min(inner.target, lossLimit) } else { lossLimit *= 1.02 }
        if fault == .ignoresLoss { report.packets.removeAll { !$0.isReceived } }
        if fault == .ignoresDelay {
            for index in report.packets.indices {
                report.packets[index].arrivedAt = report.packets[index].sentAt + Self.assumedDelay
            }
        }
        inner.received(report)
        reportAt = report.arrivedAt
        targetAtReport = inner.target
        note(at: report.arrivedAt)
    }

    mutating func takeProbe(at now: Int64) -> ProbeCluster? {
        let probes = fault == .believesProbes || fault == .probesAlways
        let interval: Int64 = fault == .probesAlways ? 100_000 : 1_000_000
        guard probes, now - (probe?.at ?? 0) > interval else { return inner.takeProbe(at: now) }
        probe = (min(2 * target, demand), now)
        return ProbeCluster(id: Self.probeID, rate: min(2 * target, demand))
    }

    private mutating func note(at now: Int64) {
        self.now = now
        highest = max(highest, inner.target)
        lowest = min(lowest, inner.target)
        history.append((now, inner.target))
        history.removeAll { now - $0.at > 2 * roundTrip }
    }
}

extension ControllerKind {
    static func broken(_ fault: BrokenController.Fault) -> ControllerKind {
        ControllerKind(name: fault.rawValue) { flow, start in BrokenController(fault, flow: flow, at: start) }
    }
}
