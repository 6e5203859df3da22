import CongestionControl

/// What a flow of the testbed asks its congestion controller. Times are microseconds, rates bits a second.
protocol RateController {
    var target: Double { get }
    var pacingRate: Double { get }
    /// The time whose bytes may leave the pacer at once, in seconds.
    var pacingBurst: Double { get }
    /// Packets are to leave as ECT(1).
    var marksPackets: Bool { get }
    mutating func packetSent(bytes: Int, at now: Int64)
    mutating func received(_ report: FeedbackReport)
    /// Takes a tick; one each 25 ms.
    mutating func handleTimeout(at now: Int64)
    /// Takes what all the media together would send.
    mutating func setDemand(_ rate: Double, at now: Int64)
    mutating func takeProbe(at now: Int64) -> ProbeCluster?
}

extension RateController {
    var pacingBurst: Double { 0.005 }
    var marksPackets: Bool { false }
}

/// The product's controller.
final class ProductController: RateController {
    private var controller: SendController

    init(at now: Int64) { controller = SendController(SendController.Settings(usesECN: true), at: now) }

    var target: Double { controller.target }
    var pacingRate: Double { controller.decision.pacingRate }
    var pacingBurst: Double { controller.decision.pacingBurst }
    var marksPackets: Bool { controller.decision.marksPackets }
    func packetSent(bytes: Int, at now: Int64) { controller.packetSent(bytes: bytes, at: now) }
    func received(_ report: FeedbackReport) { controller.received(report) }
    func handleTimeout(at now: Int64) { controller.handleTimeout(at: now) }
    func setDemand(_ rate: Double, at now: Int64) { controller.setDemand(rate) }
    func takeProbe(at now: Int64) -> ProbeCluster? { controller.takeProbe(at: now) }
}

/// A controller of the scorecard and how a flow gets one.
struct ControllerKind: Sendable {
    let name: String
    /// Makes the controller of the flow with an index, which starts at a time.
    let make: @Sendable (_ flow: Int, _ start: Int64) -> any RateController

    static let product = ControllerKind(name: "Nagare") { _, start in ProductController(at: start) }
    static let reference = ControllerKind(name: "GCC") { _, start in ReferenceController(at: start) }
}
