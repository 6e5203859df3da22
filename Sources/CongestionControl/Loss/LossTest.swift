/// Tells loss that the sender's rate makes from loss that the path makes at any rate.
///
/// Loss while there is a queue belongs to the queue. Loss without one is tested: less is sent for a moment, by all senders of a
/// server at the same moments of its clock. When the loss goes on, it is inherent to the path and costs no rate (measured: .96,
/// .91, .85 and .64 of the capacity at a random loss of 1, 5, 10 and 20 %; the loss model of libwebrtc gives .76, .67, .47 and
/// .05); when it ends, a policer or a short buffer caps the rate. A sender that could send more does so for a moment instead: what
/// its path carries then is not lost for the rate that it has, and its viewer keeps the layers that it sees.
struct LossTest: ~Copyable, Sendable {
    struct Bin: BitwiseCopyable {
        var startedAt: Int64
        var packets: UInt16 = 0
        var lost: UInt16 = 0
        /// Losses right after a packet that arrived.
        var runs: UInt16 = 0
    }
    private struct Test: BitwiseCopyable {
        var rate: Double
        var loss: Double
        /// Losses that follow each other, on average.
        var runLength: Double
        /// Packets sent from then on show the lower rate's loss.
        var from: Int64
    }
    /// What the test asks of the rate.
    enum Advice: Equatable {
        case none
        /// A test begins: more is sent, and ``raised(isCarried:at:)`` tells what arrived of it.
        case raise
        /// A test begins: less is sent.
        case lower
        /// The test ends without a result: back to this rate, in bits a second.
        case restore(Double)
        /// The loss is not the rate's doing: back to this rate, in bits a second.
        case inherent(Double)
        /// The loss is that of the rate before the test: the present one is the most.
        case cap
    }

    private static let binLength: Int64 = 50_000
    private static let window: Int64 = 1_000_000
    private static let packetsMin = 20
    /// A test takes 400 ms and as long as six losses are to be expected in, at most 1.5 s.
    private static let duration: Int64 = 400_000
    private static let durationMax: Int64 = 1_500_000
    private static let lossesMin = 6.0
    /// Where fewer are to be expected, their absence is no evidence: it comes by chance one time of twenty.
    private static let runsMin = 3.0
    private static let pause: Int64 = 1_000_000
    /// Tests begin within 300 ms of multiples of this.
    private static let period: Int64 = 1_600_000
    private static let startSpan: Int64 = 300_000
    private static let queueMinMS = 40.0
    /// Loss below this margin changes nothing.
    private static let margin = 0.02
    /// Without a result in this time, a raised rate was not carried.
    private static let raisedMax: Int64 = 700_000
    /// After so many raised rates that were not carried, the next test lowers the rate: one run of losses may have met a cluster. After
    /// the first one where the runs are shorter than this.
    private static let raisesMax = 2
    private static let runLengthMin = 2.0
    /// More than this is not inherent: no medium bears it, and two senders that overload a link would take it for that.
    private static let inherentMax = 0.3

    /// The share of packets that the path loses at any rate.
    private(set) var inherent = 0.0
    /// The inherent share that the last test found; without a new test it rises little, as loss that the rate makes creeps up
    /// with it (measured: a queue of three packets).
    private var tested = 0.0
    /// The share of packets sent within the last second that were lost.
    private(set) var ratio = 0.0
    /// Losses that the last report named.
    private(set) var newLosses = 0
    private var pendingLosses = 0
    private var wasLost = false
    private var test: Test?
    /// When a test began that sends more.
    private var raisedAt: Int64?
    /// Raised rates that the path did not carry since it carried one.
    private var failedRaises = 0
    /// The last test, which found a cap: loss that comes back below the cap is inherent nevertheless. Its `from` is its end.
    private var capped: Test?
    private var bins = Ring(capacity: 32, filler: Bin(startedAt: 0))
    private var heldUntil = Int64.min / 2
    private var queuedAt = Int64.min / 2
    private var newestSentAt = Int64.min / 2

    var isTesting: Bool { test != nil }
    /// Whether a test sends more.
    var isRaised: Bool { raisedAt != nil }

    func prefetch() { bins.prefetch() }

    /// Takes a packet of a report, received or lost.
    mutating func add(_ packet: PacketResult) {
        if packet.isReceived { newestSentAt = max(newestSentAt, packet.sentAt) }
        if packet.wasReportedLost {
            guard packet.isReceived else { return }
            for index in stride(from: bins.count - 1, through: 0, by: -1) where bins[index].startedAt <= packet.sentAt {
                if bins[index].lost > 0 { bins[index].lost &-= 1 }
                return
            }
            return
        }
        if bins.isEmpty || packet.sentAt &- bins[bins.count - 1].startedAt >= Self.binLength {
            bins.append(Bin(startedAt: packet.sentAt))
        }
        bins[bins.count - 1].packets &+= 1
        if !packet.isReceived {
            bins[bins.count - 1].lost &+= 1
            if !wasLost { bins[bins.count - 1].runs &+= 1 }
            pendingLosses += 1
        }
        wasLost = !packet.isReceived
    }

    /// Takes what became of the packets of a raised rate.
    /// - Parameter isCarried: whether no larger share of them was lost.
    mutating func raised(isCarried: Bool, at now: Int64) {
        raisedAt = nil
        if isCarried {
            learn(ratio)
            failedRaises = 0
            heldUntil = now &+ Self.pause
        } else {
            failedRaises += 1
        }
    }

    /// Takes it that the path carries more than the cap that a test found.
    mutating func refuteCap() { failedRaises = 0 }

    private mutating func learn(_ share: Double) {
        inherent = share
        tested = share
    }

    /// Ends a report.
    /// - Parameters:
    ///   - target: the rate to come back to if the loss is inherent, in bits a second.
    ///   - queueMS: the standing queue.
    ///   - canRaise: whether more than the target can be sent for a moment, and the media have all that they want.
    mutating func update(
        target: Double,
        queueMS: Double,
        canRaise: Bool,
        roundTrip: Int64,
        at now: Int64
    ) -> Advice {
        newLosses = pendingLosses
        pendingLosses = 0
        while !bins.isEmpty, newestSentAt &- bins[0].startedAt > Self.window { bins.removeFirst() }
        let from = test?.from ?? (newestSentAt &- Self.window)
        var packets = 0
        var lost = 0
        var runs = 0
        for index in 0..<bins.count where bins[index].startedAt >= from {
            packets += Int(bins[index].packets)
            lost += Int(bins[index].lost)
            runs += Int(bins[index].runs)
        }
        ratio = packets > 0 ? Double(lost) / Double(packets) : 0
        if queueMS > Self.queueMinMS { queuedAt = now }
        guard now &- queuedAt > Self.window &+ roundTrip else {
            defer { (test, raisedAt) = (nil, nil) }
            return test.map { .restore($0.rate) } ?? .none
        }
        guard packets >= Self.packetsMin else { return .none }
        // Losses in runs of a geometric length vary as so many fewer packets would.
        let runLength = max(Double(lost) / Double(max(runs, 1)), 1)
        let dispersion = 2 * runLength - 1
        let noise = 3 * (max(inherent * dispersion, 0.005) * (1 - inherent) / Double(packets)).squareRoot()
        if let test {
            let span = newestSentAt &- test.from
            let lossesExpected = Double(packets) * test.loss
            guard span > Self.duration, lossesExpected > Self.lossesMin || span > Self.durationMax else {
                return .none
            }
            self.test = nil
            heldUntil = now &+ Self.pause
            guard ratio > 0.5 * test.loss || lossesExpected < Self.runsMin * test.runLength, ratio < Self.inherentMax
            else {
                capped = test
                capped?.from = now
                failedRaises = Self.raisesMax
                return .cap
            }
            learn(0.5 * (ratio + test.loss))
            return .inherent(test.rate)
        }
        if let capped, now &- capped.from > Self.window &+ roundTrip {
            self.capped = nil
            if Double(packets) * capped.loss > Self.lossesMin, ratio > 0.5 * capped.loss, ratio < Self.inherentMax {
                learn(0.5 * (ratio + capped.loss))
                return .inherent(capped.rate)
            }
        }
        if let raisedAt {
            guard now &- raisedAt > Self.raisedMax &+ roundTrip else { return .none }
            raised(isCarried: false, at: now)
        }
        if ratio > inherent + noise + Self.margin, now > heldUntil, now % Self.period < Self.startSpan {
            if canRaise, failedRaises < (runLength < Self.runLengthMin ? 1 : Self.raisesMax), ratio < Self.inherentMax {
                raisedAt = now
                return .raise
            }
            test = Test(rate: target, loss: ratio, runLength: runLength, from: newestSentAt &+ roundTrip &+ 50_000)
            return .lower
        }
        if ratio < inherent + noise { inherent = min(inherent + 0.05 * (ratio - inherent), 1.25 * tested + 0.01) }
        return .none
    }
}
