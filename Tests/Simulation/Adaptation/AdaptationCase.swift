import SeedSupport

/// A bound that a figure of a case must keep.
struct AdaptationGate: Sendable {
    let name: String
    let unit: String
    let goal: Double
    /// The goal, or what was reached with a margin where the goal is missed.
    let bound: Double
    let isMinimum: Bool

    static func atMost(_ name: String, _ goal: Double, _ unit: String = "", bound: Double? = nil) -> Self {
        Self(name: name, unit: unit, goal: goal, bound: bound ?? goal, isMinimum: false)
    }

    static func atLeast(_ name: String, _ goal: Double, _ unit: String = "", bound: Double? = nil) -> Self {
        Self(name: name, unit: unit, goal: goal, bound: bound ?? goal, isMinimum: true)
    }

    func holds(_ value: Double) -> Bool { isMinimum ? value >= bound : value <= bound }
    func isGoalMet(_ value: Double) -> Bool { isMinimum ? value >= goal : value <= goal }

    func text(_ limit: Double) -> String {
        "\(name) \(isMinimum ? "≥" : "≤") \(Self.text(limit))\(unit.isEmpty ? "" : " \(unit)")"
    }

    static func text(_ value: Double) -> String {
        if value >= 999 { return "∞" }
        let hundredths = Int((value * 100).rounded())
        let fraction = abs(hundredths) % 100
        let whole = "\(hundredths / 100)"
        if fraction == 0 { return whole }
        return fraction % 10 == 0 ? "\(whole).\(fraction / 10)" : "\(whole).\(fraction < 10 ? "0" : "")\(fraction)"
    }
}

/// A case of the scorecard of the whole server.
struct AdaptationCase: Sendable, CustomStringConvertible {
    /// The worst figure of these counts. A debug build, in which a case takes ten times as long, and a run of few seeds take one.
    #if DEBUG
        static let seeds: [UInt64] = [1]
    #else
        static let seeds: [UInt64] = SeedSettings.current.hasFewSeeds ? [1] : Array(1...20)
    #endif

    let name: String
    /// The setup in words.
    let setup: String
    let gates: [AdaptationGate]
    /// With these faults each gate fails once.
    let faults: [AdaptationFault]
    /// Figures by the names of the gates.
    let run: @Sendable (_ seed: UInt64, _ fault: AdaptationFault?) throws -> [String: Double]

    var description: String { name }

    init(
        _ name: String,
        _ setup: String,
        _ gates: [AdaptationGate],
        failsFor faults: [AdaptationFault],
        run: @escaping @Sendable (UInt64, AdaptationFault?) throws -> [String: Double]
    ) {
        self.name = name
        self.setup = setup
        self.gates = gates
        self.faults = faults
        self.run = run
    }

    /// The worst figures of some seeds.
    func worst(_ fault: AdaptationFault? = nil, seeds: [UInt64] = Self.seeds) throws -> [String: Double] {
        var worst: [String: Double] = [:]
        for seed in seeds {
            let figures = try run(seed, fault)
            for gate in gates {
                let value = figures[gate.name] ?? .nan
                let other = worst[gate.name] ?? value
                worst[gate.name] = gate.isMinimum ? min(value, other) : max(value, other)
            }
        }
        return worst
    }
}
