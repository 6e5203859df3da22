import TestSupport

/// A bound that a figure of the product's controller must keep.
struct Gate: Sendable {
    let metric: Metric
    /// What the figure should be; `nil` where the bound only guards what was reached.
    let goal: Double?
    let bound: Double

    /// The goal is met and is the bound.
    static func goal(_ metric: Metric, _ goal: Double) -> Gate { Gate(metric: metric, goal: goal, bound: goal) }

    /// The goal is not met; the bound is what was reached, with a margin.
    static func missed(_ metric: Metric, goal: Double, bound: Double) -> Gate {
        Gate(metric: metric, goal: goal, bound: bound)
    }

    /// There is no goal.
    static func bound(_ metric: Metric, _ bound: Double) -> Gate { Gate(metric: metric, goal: nil, bound: bound) }

    func holds(_ value: Double) -> Bool { keeps(value, bound) }
    func isGoalMet(_ value: Double) -> Bool { goal.map { keeps(value, $0) } ?? true }

    /// "U ≥ 0.88".
    func text(_ limit: Double) -> String {
        "\(metric.name) \(metric.worst == .least ? "≥" : "≤") \(limit.short)\(metric.unit.suffix)"
    }

    private func keeps(_ value: Double, _ limit: Double) -> Bool {
        metric.worst == .least ? value >= limit : value <= limit
    }
}
