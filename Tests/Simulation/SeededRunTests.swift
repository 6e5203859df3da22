import SeedSupport
import Testing

/// A hundred random scenarios and more, each drawn from its seed.
@Suite(.timeLimit(.minutes(30))) struct SeededRunTests {
    @Test(arguments: Seeds.cases(Array(1...100) + [2_759_115_867, 1_735_236_943, 3_808_182_420, 4_219_243_467]))
    func `the rules hold whatever a seed does to nodes and participants`(seeds: Seeds) async {
        let failures = await seeds.failures(of: Self.self) { try RandomScenario($0).perform() }
        for failure in failures { Issue.record("\(failure)") }
    }
}
