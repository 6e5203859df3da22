/// Runs each case once for all tests that ask for its figures.
actor Scoreboard {
    /// The figures of both controllers in one case.
    struct Row: Sendable {
        let scorecardCase: ScorecardCase
        let product: Score
        let reference: Score
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
                    reference: scorecardCase.score(.reference)
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

    /// "0.96 / 0.68": the product's figure and the reference's; "–" where the figure means nothing.
    func cell(_ metric: Metric) -> String {
        guard scorecardCase.shows(metric) else { return "–" }
        return "\(metric.unit.text(product[metric].value)) / \(metric.unit.text(reference[metric].value))"
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
