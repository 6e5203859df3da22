import Base
import CPrefetch
import CongestionControl
import MediaTypes
import Wire

/// Estimates how much one peer can be sent, from what left and what the peer reports of it.
///
/// The packets that left are read from the peer's record in steps, so that sending one costs nothing here.
@safe
final class SendRate {
    private let settings: SendRateSettings
    /// Of a peer that reports each packet's arrival; `nil` for one that does not, and until something is to be sent: an idle
    /// subscriber does without its memory. In plain memory: to change an optional structure is to copy all of it.
    @exclusivity(unchecked) private var controller: UnsafeMutablePointer<SendController>?
    /// How the peer's feedback names packets.
    private var numbering: PacketNumbering
    /// How the path can be asked whether it carries better layers.
    var upgradeMeans = SendController.UpgradeMeans.none
    /// Bit/s that are known of the path, before the first report.
    private var pathStart: Double?
    /// Of a peer that reports its own estimate or only its losses.
    private var fallback: FallbackController
    /// Of the controller that is in force, after its newest event.
    private var decision: SendDecision { unsafe decided }
    @exclusivity(unchecked) private var decided: SendDecision
    @exclusivity(unchecked) private var reader = TransportFeedbackReader(capacity: SentPacketRing.capacity)
    @exclusivity(unchecked) private var perStreamReader = CongestionControlFeedbackReader(
        capacity: SentPacketRing.capacity
    )
    private(set) var feedback = SendingStatistics.Feedback.none
    /// Bit/s that the peer may be sent by a grant or an operator; `nil` for the settings' maximum.
    private(set) var maximum: Int?
    /// Packets of the record that the controller knows, counted from the first one.
    @exclusivity(unchecked) private var packetsKnown: UInt64 = 0
    /// Bit/s of all that is wanted.
    private(set) var demand = 0
    private var tickAt: Instant
    private var ticksOftenUntil: Instant
    /// When the first numbered packet was seen to have left.
    private var sendingSince: Instant?
    /// Probe clusters that were sent.
    private(set) var probes: UInt64 = 0
    var paddingBytes: UInt64 = 0

    /// Between two ticks while a probe is planned, and otherwise.
    private static let shortTick = Interval.milliseconds(25)
    private static let longTick = Interval.milliseconds(200)
    /// After a tick with a report, the next one comes with another report when at least ``reportLead`` less has passed.
    private static let reportedTick = Interval.milliseconds(260)
    private static let reportLead = Interval.milliseconds(110)
    /// A peer that numbers packets but reports none within this time never will.
    private static let feedbackPatience = Interval.seconds(3)
    private static let packetsWithoutFeedbackMax = 100

    /// - Parameter numbering: how the negotiated feedback names packets.
    init(_ settings: SendRateSettings, numbering: PacketNumbering, maximum: Int?, at now: Instant) {
        self.settings = settings
        self.numbering = numbering
        self.maximum = maximum
        tickAt = now
        ticksOftenUntil = now
        let bounds = Self.bounds(settings)
        // A peer that reports nothing of its path gets what it wants until it reports losses or an estimate.
        var open = bounds
        open.start = open.maximum
        fallback = FallbackController(open, at: Self.microseconds(now))
        unsafe decided = fallback.decision
        setMaximum(maximum, at: now)
    }

    deinit { removeController() }

    private func removeController() {
        unsafe controller?.deinitialize(count: 1)
        unsafe controller?.deallocate()
        unsafe controller = nil
    }

    private static func bounds(_ settings: SendRateSettings, start: Double? = nil) -> SendController.Settings {
        let minimum = Double(settings.minimum)
        return SendController.Settings(
            minimum: minimum,
            start: max(start ?? Double(settings.start), minimum),
            maximum: max(Double(settings.maximum), minimum),
            isProbing: settings.isProbing
        )
    }

    static func microseconds(_ now: Instant) -> Int64 { now.nanoseconds / 1_000 }

    // MARK: - What the peer may be sent

    /// Bit/s, audio, retransmissions and padding included.
    var target: Int { Int(clamping: decision.target) }
    /// Bit/s that the path carries for longer: more than the target while a queue is drained.
    var sustained: Int { Int(clamping: decision.sustainedRate) }
    /// Bit/s that the path is known to carry and no more; `nil` while that is not known.
    var carried: Int? { decision.busyRate.map { Int(clamping: $0) } }
    /// Less is sent than the path carries, so that its queue empties.
    private var isDraining: Bool { decision.phase == .drain }
    /// All that is wanted is sent and the path bears it, so a frame may leave at once. Not where the bottleneck carries little more:
    /// a frame that leaves at once makes a queue there, which takes the layer that it is of (case Return 0.6 of the server's
    /// scorecard: the best layer of 2.5 on 3 Mbit/s).
    var isRelaxed: Bool {
        guard decision.limit == .demand, !isDraining, decision.phase != .compete, !decision.isMarked else {
            return false
        }
        return bottleneckRate(below: Self.relaxedShare * decision.target) == nil
    }
    /// A bottleneck that carries this much more than the target bears a frame that leaves at once.
    private static let relaxedShare = 1.25
    /// Pairs of packets measure a bottleneck of 3 Mbit/s up to a twentieth too fast (of 0.85 to 0.95, with .92 the best layer of
    /// case Return 0.6 of the server's scorecard is back after 7 s in place of 9 to 17).
    private static let bottleneckShare = 0.92

    /// Bit/s at which packets leave.
    /// - Parameters:
    ///   - waitingBytes: what waits to leave.
    ///   - layersRate: what the layers that are sent cost, bit/s.
    func pacerRate(waitingBytes: Int, layersRate: Int) -> Int {
        let pacing = Int(clamping: decision.pacingRate)
        // Whatever left above that would be taken for the packets of others.
        if decision.isTestingCompetition { return pacing }
        // While a queue is drained, what waits leaves within half a second, as far as the path carries that. No more than the target
        // leaves for other reasons: where that is nearly all that the path carries, the queue would stay (case Return 0.7 of the
        // server's scorecard: 141 → 32 ms). Otherwise layers leave as they come.
        let wanted =
            isDraining ? max(target, min(waitingBytes * 8 * 2, sustained)) : max(pacing, layersRate * 5 / 4)
        // What the path does not carry waits here, where sound passes it.
        if let carried { return min(wanted, max(carried, target)) }
        // So does a key frame on a bottleneck that carries little more than its layer. One that seems to carry less was measured
        // wrong.
        guard let rate = bottleneckRate(below: Double(wanted) / Self.bottleneckShare), rate >= Double(layersRate) else {
            return wanted
        }
        // What waits for more than a second of the path may take all of it.
        let most = max(Self.bottleneckShare * rate, Double(layersRate), min(Double(waitingBytes) * 8, rate))
        return min(wanted, Int(clamping: most))
    }

    /// What pairs of packets tell of the bottleneck, bit/s, where that is less than a rate.
    private func bottleneckRate(below rate: Double) -> Double? {
        guard let bottleneck = decision.bottleneckRate, bottleneck < rate else { return nil }
        return bottleneck
    }

    /// The time whose bytes may leave at once on a full path, where a burst is a queue.
    var tightBurst: Interval { .seconds(decision.pacingBurst) }
    /// Packets go out marked as ECN-capable: the peer reports on the marks, and no report has shown that they get lost.
    var marksPackets: Bool { numbering == .perStream && decision.marksPackets }
    /// The path is known to carry this and no more, bit/s; `nil` while it is not full.
    var pathRate: Int? {
        guard isEstimated, !decision.isTrying else { return nil }
        switch decision.limit {
        case .delay, .loss, .competition: return decision.phase == .start ? nil : target
        case .demand, .silence, .receiver, .maximum: return nil
        }
    }
    /// Nothing is known of the path, and reports are to come.
    var isGuess: Bool { decision.isGuess && pathStart == nil }
    /// The target rate is made of reports, and not a guess.
    private var isEstimated: Bool { feedback != .none }

    /// Retransmissions leave more than once: the path loses so much that it loses them, too, and it has room for their copies. Once
    /// it turns out that the rate makes the loss, the rate is the limit.
    var copiesRetransmissions: Bool {
        max(decision.inherentLoss, decision.lossRatio) >= Self.copiedLossMin && decision.limit == .demand && !isDraining
    }
    private static let copiedLossMin = 0.01

    /// How long packets wait on the path, as far as that is known.
    var queueDelay: Interval { Interval(nanoseconds: Int64(Int(clamping: decision.queueMS * 1e6))) }

    /// When the controller is to be looked at again.
    var nextDeadline: Instant { tickAt }

    /// Whether a report that arrives now is to be followed by ``handleTimeout(_:isWithReport:at:)``, because that is due soon. On a
    /// path that may be full, the clock decides.
    func isDueWithReport(at now: Instant) -> Bool {
        now >= tickAt - Self.reportLead && now >= ticksOftenUntil && isRelaxed
    }

    /// Bytes of the IP and UDP headers that each packet has on the wire.
    var headerBytes: Int {
        get { unsafe reader.headerBytes }
        set {
            unsafe reader.headerBytes = newValue
            unsafe perStreamReader.headerBytes = newValue
        }
    }

    // MARK: - Events

    /// Asks for the memory that a report changes.
    func prefetch() {
        unsafe nagare_prefetch(Unmanaged.passUnretained(self).toOpaque(), Self.sizeInBytes)
        guard let controller = unsafe controller else { return }
        unsafe nagare_prefetch(controller, MemoryLayout<SendController>.size)
        unsafe controller.pointee.prefetch()
        // The one that the peer does not use has no memory.
        unsafe reader.prefetch()
        unsafe perStreamReader.prefetch()
    }
    /// Of an instance, up to the end of a line of the cache.
    private static let sizeInBytes = 640

    /// Begins with what is known of the path, before the first report.
    func begin(start: Double?, at now: Instant) {
        pathStart = start
        guard !isEstimated, unsafe controller != nil else { return }
        removeController()
        prepare(at: now)
    }

    /// Something is to be sent.
    func prepare(at now: Instant) {
        guard numbering != .none, unsafe controller == nil else { return }
        var bounds = Self.bounds(settings, start: pathStart)
        bounds.usesECN = numbering == .perStream
        let memory = UnsafeMutablePointer<SendController>.allocate(capacity: 1)
        unsafe memory.initialize(to: SendController(bounds, at: Self.microseconds(now)))
        unsafe controller = memory
        // The demand plans the first probe, which the maximum bounds.
        setMaximum(maximum, at: now)
        unsafe memory.pointee.setDemand(Double(demand))
        decide()
    }

    /// Takes the decision of the controller that is in force, after each event that may change it.
    private func decide() { unsafe decided = controller?.pointee.decision ?? fallback.decision }

    /// Sets what all the media together would take.
    func setDemand(_ bitsPerSecond: Int, at now: Instant) {
        guard bitsPerSecond != demand else { return }
        demand = bitsPerSecond
        unsafe controller?.pointee.setDemand(Double(bitsPerSecond))
        fallback.setDemand(Double(bitsPerSecond))
        decide()
        // Media rates are measured all the time. They matter soon only where the path may not carry them.
        if bitsPerSecond > target || isProbing { tickOften(at: now) }
    }

    /// Sets the rate in bit/s that the next better layers need; `nil` when nothing better is wanted.
    /// - Parameter isBarred: whether they are not sent although the rate suffices.
    func setUpgrade(_ bitsPerSecond: Int?, isBarred: Bool) {
        let rate = bitsPerSecond.flatMap { $0 <= triedMax ?? .max ? Double($0) : nil }
        unsafe controller?.pointee.setUpgrade(rate, upgradeMeans, isBarred: isBarred)
    }

    /// Times in a row that the path carried a probe at the rate of barred layers.
    var carriedLooks: Int { decision.carriedLooks }

    /// Bit/s above which no layers are tried, because pairs of packets tell that the bottleneck carries no more; `nil` while they do
    /// not agree, and where a probe asks the path itself. A trial that fails is a freeze (case No RTX of the server's scorecard).
    var triedMax: Int? { upgradeMeans == .trial ? decision.bottleneckRate.map { Int(clamping: $0) } : nil }

    /// Sets what the peer may be sent by a grant or an operator; `nil` for the settings' maximum.
    func setMaximum(_ bitsPerSecond: Int?, at now: Instant) {
        maximum = bitsPerSecond
        let rate = Double(min(bitsPerSecond ?? .max, max(settings.maximum, settings.minimum)))
        unsafe controller?.pointee.setMaximum(rate)
        fallback.setMaximum(rate)
        decide()
        tickOften(at: now)
    }

    /// Takes transport-wide feedback.
    /// - Parameter report: scratch memory, which all peers of a core share.
    /// - Returns: whether it says anything new.
    func received(
        _ cursor: borrowing TransportFeedbackCursor,
        _ sent: SentPacketRing,
        report: inout FeedbackReport,
        at now: Instant
    ) -> Bool {
        guard unsafe controller != nil, numbering == .transportWide else { return false }
        noteSent(sent, at: now)
        unsafe reader.read(
            cursor,
            newest: Int64(bitPattern: sent.newest),
            at: Self.microseconds(now),
            into: &report
        ) { number in
            sent[number: UInt64(bitPattern: number)]
        }
        return takeReport(report, of: .transportCC)
    }

    /// Takes RFC 8888 feedback.
    /// - Parameter report: scratch memory, which all peers of a core share.
    /// - Returns: whether it says anything new.
    func received(
        _ cursor: borrowing CongestionControlFeedbackCursor,
        _ sent: SentPacketRing,
        _ index: SentPacketIndex,
        report: inout FeedbackReport,
        at now: Instant
    ) -> Bool {
        guard unsafe controller != nil, numbering == .perStream else { return false }
        noteSent(sent, at: now)
        unsafe perStreamReader.read(
            cursor,
            newest: Int64(bitPattern: sent.newest),
            at: Self.microseconds(now),
            into: &report
        ) { ssrc, sequence in
            guard let number = index.number(of: ssrc, sequence, newest: sent.newest), let packet = sent[number: number]
            else { return nil }
            return (Int64(bitPattern: number), packet)
        }
        return takeReport(report, of: .congestionControlFeedback)
    }

    private func takeReport(_ report: borrowing FeedbackReport, of kind: SendingStatistics.Feedback) -> Bool {
        guard report.hasNews else { return false }
        feedback = kind
        unsafe controller?.pointee.received(report)
        decide()
        return true
    }

    /// Takes the peer's own estimate (REMB).
    func receivedEstimate(_ bitsPerSecond: UInt64) {
        let rate = Double(bitsPerSecond)
        if unsafe controller != nil {
            unsafe controller?.pointee.receiverEstimate(rate)
        } else {
            feedback = .remb
            fallback.receiverEstimate(rate)
        }
        decide()
    }

    /// Takes what the peer's receiver report says of the packets since the one before.
    func receivedReport(lost: Int, expected: Int, roundTrip: Interval?, at now: Instant) {
        guard unsafe controller == nil else { return }
        if feedback == .none { feedback = .receiverReports }
        fallback.receiverReport(
            lost: lost,
            expected: expected,
            roundTrip: roundTrip.map { $0.nanoseconds / 1_000 },
            at: Self.microseconds(now)
        )
        decide()
    }

    /// The peer moved to another path.
    func pathChanged(_ sent: SentPacketRing, headerBytes: Int, at now: Instant) {
        unsafe reader.headerBytes = headerBytes
        unsafe reader.pathChanged(newest: Int64(bitPattern: sent.newest))
        unsafe perStreamReader.pathChanged(newest: Int64(bitPattern: sent.newest))
        unsafe controller?.pointee.pathChanged(at: Self.microseconds(now))
        fallback.pathChanged(at: Self.microseconds(now))
        decide()
    }

    /// Does what is due by the clock.
    /// - Parameter isWithReport: whether a report has just arrived. Others are expected then, and the next call comes with one of
    ///   them: a timer of its own costs more than the report.
    func handleTimeout(_ sent: SentPacketRing, isWithReport: Bool, at now: Instant) {
        noteSent(sent, at: now)
        if unsafe controller != nil {
            unsafe controller?.pointee.handleTimeout(at: Self.microseconds(now))
            // The peer reports no packets though it negotiated it.
            if sendingSince == nil, sent.count > 0 { sendingSince = now }
            if feedback == .none, sent.count > Self.packetsWithoutFeedbackMax,
                let sendingSince, now - sendingSince > Self.feedbackPatience
            {
                removeController()
                numbering = .none
            }
        } else {
            fallback.handleTimeout(at: Self.microseconds(now))
        }
        decide()
        let pause = isWithReport ? Self.reportedTick : Self.longTick
        tickAt = now + (now < ticksOftenUntil ? Self.shortTick : pause)
    }

    /// Whether a probe cluster is planned, or under way and not reported.
    var isProbing: Bool { decision.isProbing }

    /// Whether a probe cluster is to be sent now.
    var hasProbe: Bool { decision.hasProbe }

    /// A probe cluster that is to be sent now.
    func takeProbe(at now: Instant) -> ProbeCluster? {
        let cluster =
            unsafe controller == nil
            ? fallback.takeProbe(at: Self.microseconds(now))
            : controller?.pointee.takeProbe(at: Self.microseconds(now))
        if cluster != nil { probes &+= 1 }
        decide()
        return cluster
    }

    private func tickOften(at now: Instant) {
        ticksOftenUntil = now + Self.longTick
        tickAt = min(tickAt, now + Self.shortTick)
    }

    private func noteSent(_ sent: SentPacketRing, at now: Instant) {
        let newest = Self.microseconds(now)
        let count = sent.count
        let known = max(unsafe packetsKnown, count &- min(count, UInt64(SentPacketRing.capacity)))
        unsafe packetsKnown = count
        guard let controller = unsafe controller else {
            fallback.packetSent(at: newest)
            return
        }
        let headerBytes = unsafe reader.headerBytes
        // The packets of a turn left at one instant: they are taken together.
        var (bytes, last) = (0, 0)
        var sentAt: UInt32 = 0
        func take() {
            guard bytes > 0 else { return }
            let age = UInt32(truncatingIfNeeded: newest) &- sentAt
            unsafe controller.pointee.packetsSent(bytes: bytes, last: last, at: newest &- Int64(age))
            bytes = 0
        }
        for index in known..<max(known, count) {
            guard let packet = sent[taken: index] else { continue }
            if packet.sentAt != sentAt { take() }
            sentAt = packet.sentAt
            last = Int(packet.bytes) + headerBytes
            bytes += last
        }
        take()
    }

    // MARK: - Statistics

    /// - Parameters:
    ///   - pacerDelay: how long packets wait at present.
    ///   - retransmissionShare: of the bytes of the last second.
    func statistics(pacerDelay: Interval, retransmissionShare: Double) -> SendingStatistics {
        SendingStatistics(
            state: isEstimated ? SendingStatistics.State(decision.phase) : .start,
            limit: SendingStatistics.Limit(decision.limit),
            feedback: feedback,
            target: target,
            demand: demand,
            delivered: decision.delivered > 0 ? Int(clamping: decision.delivered) : nil,
            pacing: Int(clamping: decision.pacingRate),
            queueDelay: queueDelay,
            pacerDelay: pacerDelay,
            lossRatio: decision.lossRatio,
            retransmissionShare: retransmissionShare,
            probes: probes,
            paddingBytes: paddingBytes
        )
    }
}

extension SendingStatistics.State {
    fileprivate init(_ phase: SendDecision.Phase) {
        self =
            switch phase {
            case .start: .start
            case .steady: .steady
            case .drain: .drain
            case .compete: .compete
            case .stale: .stale
            }
    }
}

extension SendingStatistics.Limit {
    fileprivate init(_ limit: SendDecision.Limit) {
        self =
            switch limit {
            case .demand: .demand
            case .delay: .delay
            case .loss: .loss
            case .competition: .competition
            case .silence: .silence
            case .receiver: .receiver
            case .maximum: .maximum
            }
    }
}

extension Int {
    /// The nearest integer; 0 for what is not a number.
    init(clamping value: Double) {
        self = value.isNaN ? 0 : Int(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
    }
}
