/// Runs each case once for all tests that ask for its figures.
actor Scoreboard {
    /// The figures of one case.
    struct Row: Sendable {
        let scorecardCase: ScorecardCase
        let product: Score
        /// The reference controller runs for the published page only, because no bound judges it.
        let reference: Score?
    }

    static let shared = Scoreboard()
    private var rows: [String: Task<Row, Never>] = [:]

    func row(_ scorecardCase: ScorecardCase) async -> Row {
        let task =
            rows[scorecardCase.name]
            ?? Task.detached {
                Row(
                    scorecardCase: scorecardCase,
                    product: scorecardCase.score(.product),
                    reference: PublishedScorecard.isUpdateRequested ? scorecardCase.score(.reference) : nil
                )
            }
        rows[scorecardCase.name] = task
        return await task.value
    }

    func rows(of cases: [ScorecardCase]) async -> [Row] {
        var all: [Row] = []
        for scorecardCase in cases { all.append(await row(scorecardCase)) }
        return all
    }
}

extension Scoreboard.Row {
    /// Goals that the product's controller misses.
    var missed: [Gate] { scorecardCase.gates.filter { !$0.isGoalMet(product[$0.metric].value) } }

    /// "0.96 / 0.68": the product's figure and the reference's, if it ran; "–" where the figure means nothing.
    func cell(_ metric: Metric) -> String {
        guard scorecardCase.shows(metric) else { return "–" }
        let figure = metric.unit.text(product[metric].value)
        guard let reference else { return figure }
        return "\(figure) / \(metric.unit.text(reference[metric].value))"
    }

    var others: [String] { scorecardCase.otherMetrics.map { "\($0.name)\($0.unit.suffix): \(cell($0))" } }
}

extension ScorecardCase {
    /// Whether a column means something in this case.
    func shows(_ metric: Metric) -> Bool {
        guard let link = links(1).first else { return false }
        let isFree = flows.allSatisfy(\.demandSteps.isEmpty) && link.policer == nil
        switch metric.name {
        case Metric.utilisation.name: return isFree
        case Metric.rise.name: return isFree && transfers.isEmpty && !link.isWalk
        case Metric.drain.name:
            return !link.isWalk && zip(link.capacity, link.capacity.dropFirst()).contains { $0.rate > $1.rate }
        case Metric.fairness.name: return flows.count > 1
        default: return true
        }
    }
}
