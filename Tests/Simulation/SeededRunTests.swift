import SeedSupport
import Testing

/// A hundred random scenarios and more, each drawn from its seed.
@Suite(.timeLimit(.minutes(30))) struct SeededRunTests {
    @Test(arguments: Seeds.cases(1...100))
    func `the rules hold whatever a seed does to nodes and participants`(seeds: Seeds) async {
        let failures = await seeds.failures(of: Self.self) { try RandomScenario($0).perform() }
        for failure in failures { Issue.record("\(failure)") }
    }
}
