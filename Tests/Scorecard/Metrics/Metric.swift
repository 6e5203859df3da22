import TestSupport

/// A figure of a run.
struct Metric: Sendable {
    /// Which of the seeds' figures counts.
    enum Worst: Sendable { case least, most }
    enum Unit: Sendable { case share, percent, milliseconds, seconds, megabits, count }

    let name: String
    /// What metrics of different times or flows have in common.
    let kind: String
    let unit: Unit
    let worst: Worst
    let measure: @Sendable (Run) -> Double

    init(
        _ name: String,
        kind: String? = nil,
        _ unit: Unit,
        _ worst: Worst,
        _ measure: @escaping @Sendable (Run) -> Double
    ) {
        self.name = name
        self.kind = kind ?? name
        self.unit = unit
        self.worst = worst
        self.measure = measure
    }

    // MARK: - Of every case

    static let utilisation = Metric("U", .share, .least) { $0.utilisation(of: 0) }
    static let queue = Metric("Q", .milliseconds, .most) { $0.queue95 }
    static let rise = Metric("T↑", .seconds, .most) { $0.rise(of: 0) }
    static let drain = Metric("T↓", .seconds, .most) { $0.drain }
    static let loss = Metric("L", .percent, .most) { $0.loss * 100 }
    static let fairness = Metric("J", .share, .least) { $0.fairness }
    static let overhead = Metric("O", .percent, .most) { $0.overhead * 100 }
    static let audioLoss = Metric("A", .percent, .most) { $0.audioLoss * 100 }

    static let columns = [utilisation, queue, rise, drain, loss, fairness, overhead, audioLoss]

    // MARK: - Of some

    /// The 99th percentile of the waits before packets are sent.
    static let queue99 = Metric("Q99", kind: "Q", .milliseconds, .most) { $0.wait99 }
    /// From a time on until no packet leaves as ECT(1).
    static func unmarked(after at: Double) -> Metric {
        Metric("T unmarked", .seconds, .most) { $0.secondsMarked(after: at) }
    }

    /// The figures of the second link.
    static let secondUtilisation = Metric("U of link 2", .share, .least) { $0.utilisation(of: 1) }
    static let secondRise = Metric("T↑ of link 2", .seconds, .most) { $0.rise(of: 1) }

    /// The rate of the first flow as a multiple of the second one's.
    static func ratio(from: Double) -> Metric {
        Metric("ratio", .share, .least) { run in
            run.arrivalsOfFlows[0].rate(from: from, to: run.end)
                / max(run.arrivalsOfFlows[1].rate(from: from, to: run.end), 1)
        }
    }

    /// Falls of the target within half a second.
    static func dips(from: Double) -> Metric { Metric("dips", .count, .most) { $0.dips(from: from) } }

    /// The media of all flows as a share of a policed rate.
    static func policed(megabits: Double, from: Double) -> Metric {
        Metric("U of policed", .share, .least) { $0.arrivals.rate(from: from, to: $0.end) / (megabits * 1e6) }
    }

    /// From the end of the first transfer until a rate arrives.
    static func afterTransfer(until megabits: Double) -> Metric {
        Metric("T back", kind: "time", .seconds, .most) { run in
            guard let doneAt = run.testbed.cubics.first?.doneAt else { return .infinity }
            let at = (Double(doneAt) / 1e5).rounded(.up) / 10
            return run.arrivals.seconds(after: at, until: megabits * 1e6, end: run.end)
        }
    }

    /// From the end of the first transfer until the queue is shorter than 30 ms.
    static let emptyAfterTransfer = Metric("T empty", .seconds, .most) { $0.secondsUntilEmptyAfterTransfer }

    /// The least share of the first link that the media have from a time on.
    static func share(from: Double) -> Metric { Metric("share", .share, .least) { $0.share(from: from) } }

    /// The same, where less is better.
    static func shareMost(from: Double) -> Metric { Metric("share at most", .share, .most) { $0.share(from: from) } }

    /// Seconds from a time until a rate arrives over a span; of all flows or one.
    static func time(
        _ name: String,
        after at: Double,
        until megabits: Double,
        of flow: Int? = nil,
        span: Double = 1,
        before end: Double? = nil
    ) -> Metric {
        Metric(name, kind: "time", .seconds, .most) { run in
            let histogram = flow.map { run.arrivalsOfFlows[$0] } ?? run.arrivals
            return histogram.seconds(after: at, until: megabits * 1e6, end: end ?? run.end, span: span)
        }
    }

    /// The loss in full queues from a time on.
    static func loss(from: Double) -> Metric {
        Metric("L from \(Int(from)) s", .percent, .most) { $0.loss(from: from) * 100 }
    }

    /// The longest queue of a span of time.
    static func queueMax(from: Double, to: Double) -> Metric {
        Metric("Q max", .milliseconds, .most) { $0.queueMax(from: from, to: to) }
    }

    /// The least rate over a second of a span of time.
    static func low(from: Double, to: Double) -> Metric {
        Metric("low", .megabits, .least) { $0.arrivals.lowest(from: from, to: to, span: 1) / 1e6 }
    }

    /// The least rate of media in a span of time.
    static func mean(from: Double, to: Double) -> Metric {
        Metric("mean", .megabits, .least) { $0.arrivals.rate(from: from, to: to) / 1e6 }
    }

    /// The target rate at a time, by its least and by its greatest value.
    static func target(at seconds: Double) -> Metric {
        Metric("target@\(seconds.short)", kind: "target at a time", .megabits, .least) { $0.target(at: seconds) / 1e6 }
    }
    static func targetMost(at seconds: Double) -> Metric {
        Metric("target@\(seconds.short) at most", kind: "target at a time, at most", .megabits, .most) {
            $0.target(at: seconds) / 1e6
        }
    }

    /// The least and the greatest target rate of a span of time.
    static func targetMin(from: Double, to: Double) -> Metric {
        Metric("target min", .megabits, .least) { $0.targetMin(from: from, to: to) / 1e6 }
    }
    static func targetMax(from: Double, to: Double) -> Metric {
        Metric("target max", .megabits, .most) { $0.targetMax(from: from, to: to) / 1e6 }
    }

    /// How long the target stays above a rate.
    static func above(megabits: Double) -> Metric {
        Metric("above", .seconds, .most) { $0.secondsAbove(megabits * 1e6) }
    }
}

extension Metric.Unit {
    func text(_ value: Double) -> String {
        switch self {
        case .share, .megabits: value.fixed(2)
        case .percent: value.fixed(1)
        case .milliseconds, .count: value.fixed(0)
        case .seconds: value.fixed(1)
        }
    }

    var suffix: String {
        switch self {
        case .share, .count: ""
        case .percent: " %"
        case .milliseconds: " ms"
        case .seconds: " s"
        case .megabits: " Mbit/s"
        }
    }
}
