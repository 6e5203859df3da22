/// A figure beside its goal.
package struct Figure: Codable, Sendable {
    package let name: String
    package let unit: String
    package let value: Double
    /// `nil` for a figure that is only observed.
    package let goal: Double?
    /// Whether the goal is the least that is wanted; otherwise the most.
    package let isLeast: Bool
    /// The value with the CPU time of both ends in place of the node's; `nil` where that is not asked.
    package let bothEnds: Double?

    init(name: String, unit: String, value: Double, goal: Double?, isLeast: Bool = false, bothEnds: Double? = nil) {
        self.name = name
        self.unit = unit
        self.value = value
        self.goal = goal
        self.isLeast = isLeast
        self.bothEnds = bothEnds
    }

    /// 1 and more when the goal is reached.
    package var ratio: Double? { goal.map { isLeast ? value / $0 : $0 / value } }
}
