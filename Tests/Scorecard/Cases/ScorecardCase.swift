import Foundation
import Testing

/// A group of cases.
enum CaseGroup: String, CaseIterable, Sendable {
    case rfc8867 = "RFC 8867: one link and its users"
    case sweeps = "RFC 8867 case 5.1 with the parameters of RFC 8868, and wired cases of RFC 8869"
    case starts = "Starts"
    case steps = "Steps, outages and pauses"
    case loss = "Loss, jitter, wireless links, policers and reports"
    case ecn = "ECN and L4S"
    case anchors = "Gates of other implementations"
}

/// A case of the scorecard: who sends over which links, and the bounds of the figures.
struct ScorecardCase: Sendable, CustomTestStringConvertible {
    /// The seeds of the runs; the worst figure counts.
    #if DEBUG
        static let seeds: [UInt64] = [1]
    #else
        static let seeds: [UInt64] = [1, 2, 3, 4]
    #endif

    let group: CaseGroup
    let name: String
    /// The setup in words.
    let setup: String
    /// Seconds.
    let end: Double
    let gates: [Gate]
    let links: @Sendable (_ seed: UInt64) -> [LinkSettings]
    let flows: [FlowSettings]
    let transfers: [CubicSender.Settings]
    let constants: [Testbed.ConstantSender]

    var testDescription: String { name }

    init(
        _ group: CaseGroup,
        _ name: String,
        _ setup: String,
        end: Double,
        links: @escaping @Sendable (UInt64) -> [LinkSettings],
        flows: [FlowSettings] = [FlowSettings()],
        transfers: [CubicSender.Settings] = [],
        constants: [Testbed.ConstantSender] = [],
        gates: [Gate]
    ) {
        self.group = group
        self.name = name
        self.setup = setup
        self.end = end
        self.links = links
        self.flows = flows
        self.transfers = transfers
        self.constants = constants
        self.gates = gates
    }

    /// A case of one link.
    init(
        _ group: CaseGroup,
        _ name: String,
        _ setup: String,
        end: Double,
        _ link: LinkSettings,
        flows: [FlowSettings] = [FlowSettings()],
        transfers: [CubicSender.Settings] = [],
        constants: [Testbed.ConstantSender] = [],
        _ gates: Gate...
    ) {
        self.init(
            group,
            name,
            setup,
            end: end,
            links: { _ in [link] },
            flows: flows,
            transfers: transfers,
            constants: constants,
            gates: gates
        )
    }

    func run(_ controller: ControllerKind, seed: UInt64) -> Run {
        let testbed = Testbed(links: links(seed), seed: seed)
        for settings in transfers { testbed.add(settings) }
        for sender in constants { testbed.add(sender) }
        for settings in flows { testbed.add(settings, controller: controller, seed: seed) }
        testbed.run(until: end)
        return Run(testbed, end: end)
    }

    /// The figures of a controller, the worst of all seeds.
    func score(_ controller: ControllerKind, seeds: [UInt64] = Self.seeds) -> Score {
        var score = Score()
        for seed in seeds {
            let run = run(controller, seed: seed)
            for metric in metrics { score.add(metric.measure(run), of: metric, seed: seed) }
        }
        return score
    }

    /// The table's columns, then those that gates name besides.
    var metrics: [Metric] { Metric.columns + otherMetrics }

    var otherMetrics: [Metric] {
        let names = Set(Metric.columns.map(\.name))
        return gates.map(\.metric).filter { !names.contains($0.name) }
    }

    static let all = rfc8867 + sweeps + starts + steps + lossAndJitter + ecn + anchors

    /// Names the only case that a test run covers.
    private static let nameVariable = "NAGARE_SCORECARD_CASE"

    /// What a test run covers: all cases, or a few in an unoptimised build, which takes thirty times as long.
    static let tested: [ScorecardCase] = {
        if let name = ProcessInfo.processInfo.environment[nameVariable] { return all.filter { $0.name == name } }
        #if DEBUG
            return all.filter { ["S1 1 100", "S2", "W7", "L start 1M"].contains($0.name) }
        #else
            return all
        #endif
    }()
}

/// The worst figures of a controller in a case, by metric.
struct Score: Sendable, Equatable {
    struct Figure: Sendable, Equatable {
        var value: Double
        var seed: UInt64
    }

    private(set) var figures: [String: Figure] = [:]

    mutating func add(_ value: Double, of metric: Metric, seed: UInt64) {
        if let worst = figures[metric.name]?.value, metric.worst == .least ? worst <= value : worst >= value { return }
        figures[metric.name] = Figure(value: value, seed: seed)
    }

    subscript(_ metric: Metric) -> Figure { figures[metric.name] ?? Figure(value: .nan, seed: 0) }
}
