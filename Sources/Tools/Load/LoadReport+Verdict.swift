extension LoadReport.Window {
    /// A busier loop has no reserve for bursts.
    private static let busyShareMax = 0.8
    /// Longer waits for a core distort latencies.
    private static let waitingShareMax = 0.1
    /// A greater delay of the generator is not small compared to a loaded server's.
    private static let lagMillisecondsMax = 10.0

    /// The limits that the generator reached. The results are then its own and not the server's.
    var generatorLimits: [String] {
        var limits: [String] = []
        if generator.sendDrops > 0 {
            limits.append(
                "The generator could not send \(generator.sendDrops) packets: losses are its own, at least in part. "
                    + "Use fewer publishers, or raise net.core.wmem_max."
            )
        }
        if generator.receiveDrops > 0 {
            limits.append(
                "The generator read too slowly, and the kernel dropped \(generator.receiveDrops) packets at its sockets: "
                    + "losses are its own, at least in part. Use fewer subscribers, more cores with --loops, or another "
                    + "machine, and see that net.core.rmem_max is at least 1048576."
            )
        }
        if generator.busyShare > Self.busyShareMax {
            limits.append(
                "The generator was busy \(decimal(generator.busyShare * 100, 0)) % of the time: latencies are its own, "
                    + "at least in part. Use fewer subscribers, more cores with --loops, or another machine."
            )
        }
        return limits
    }

    /// Influences of the generator and its machine on the results.
    var warnings: [String] {
        var warnings = generatorLimits
        if let waiting = generator.waitingShare, waiting > Self.waitingShareMax {
            warnings.append(
                "The generator waited for a core \(decimal(waiting * 100, 0)) % of the time: latencies are the "
                    + "machine's, at least in part. Run it on another machine, or give it and the server cores of their own."
            )
        }
        if let lag = generator.turnMilliseconds?.p99, lag > Self.lagMillisecondsMax {
            warnings.append(
                "The generator took \(decimal(lag, 1)) ms (p99) for a turn: latencies are its own, at least in part. "
                    + "Use fewer subscribers for each loop."
            )
        }
        if let lag = generator.latenessMilliseconds?.p99, lag > Self.lagMillisecondsMax {
            warnings.append(
                "The generator sent media \(decimal(lag, 1)) ms late (p99), because it lacked CPU time: its streams were "
                    + "less even than an encoder's."
            )
        }
        return warnings
    }

    /// The goals of a ramp that the window misses, as text.
    func missed(_ goals: LoadConfiguration.Ramp) -> [String] {
        var missed: [String] = []
        if lossPercent > goals.lossPercentMax {
            missed.append(
                "loss of \(decimal(lossPercent, 3)) %, where \(decimal(goals.lossPercentMax, 3)) % is the goal"
            )
        }
        if subscribersSilent > 0 { missed.append("nothing arrived at \(subscribersSilent) subscribers") }
        if let p99 = p99Milliseconds, p99 > goals.p99MillisecondsMax {
            missed.append(
                "p99 of \(decimal(p99, 1)) ms, where \(decimal(goals.p99MillisecondsMax, 1)) ms is the goal"
            )
        }
        return missed
    }

    /// Whether the generator explains a missed goal: it reached a limit, or its own turns are much of the delay.
    func isLimitedByGenerator(_ goals: LoadConfiguration.Ramp) -> Bool {
        let turn = generator.turnMilliseconds?.p99 ?? 0
        return !generatorLimits.isEmpty || generator.waitingShare.map { $0 > Self.waitingShareMax } ?? false
            || turn > goals.p99MillisecondsMax / 2
    }
}

extension LoadReport.Ramp {
    init(_ goals: LoadConfiguration.Ramp) {
        self.init(
            lossPercentMax: goals.lossPercentMax,
            p99MillisecondsMax: goals.p99MillisecondsMax,
            subscribersSustained: 0,
            subscribersAtBreak: nil,
            reasons: [],
            isGeneratorsLimit: false
        )
    }

    /// Evaluates the last measurement of a step.
    /// - Parameter failed: clients of the step that did not connect.
    /// - Returns: whether the ramp continues.
    mutating func take(_ step: LoadReport.Window, failed: Int, _ goals: LoadConfiguration.Ramp) -> Bool {
        var reasons = step.goalsMissed ?? []
        if failed > 0 { reasons.append("\(failed) subscribers did not connect") }
        let missesGoals = !reasons.isEmpty
        reasons += step.generatorLimits
        guard !reasons.isEmpty else {
            subscribersSustained = step.subscribers
            return true
        }
        // The server met its goals even though the generator reached its limit.
        if !missesGoals { subscribersSustained = step.subscribers }
        subscribersAtBreak = step.subscribers
        self.reasons = reasons
        isGeneratorsLimit = step.isLimitedByGenerator(goals)
        return false
    }

    /// The result as one sentence.
    var message: String {
        let goals =
            "the goals (loss at most \(decimal(lossPercentMax, 3)) %, p99 at most "
            + "\(decimal(p99MillisecondsMax, 1)) ms)"
        guard let subscribersAtBreak else {
            return "All \(subscribersSustained) subscribers were served within \(goals)."
        }
        let who = isGeneratorsLimit ? "The generator reached its limit" : "The server missed \(goals)"
        let reason = reasons.first.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 } ?? ""
        return "\(who) at \(subscribersAtBreak) subscribers: \(reason). \(subscribersSustained) were served within "
            + "\(isGeneratorsLimit ? goals : "them")."
    }
}
