import Foundation
import Testing

/// A hundred random scenarios, each drawn from its seed.
@Suite(.timeLimit(.minutes(30))) struct SeededRunTests {
    /// One seed alone when the environment names it.
    private static let variable = "NAGARE_SIMULATION_SEED"
    private static let seeds: [UInt64] =
        ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }.map { [$0] } ?? Array(1...100)

    @Test(arguments: seeds)
    func `the rules hold whatever a seed does to nodes and participants`(seed: UInt64) throws {
        let scenario = try RandomScenario(seed: seed)
        try scenario.run()
        let comment: Comment = "seed \(seed); alone: \(Self.variable)=\(seed) swift test --filter SeededRunTests"
        #expect(scenario.faults == [], comment)
    }
}
