import Testing

/// The same seed gives the same run: twice in one process, and in another process, whose dictionaries have other orders.
@Suite(.timeLimit(.minutes(30))) struct RepeatabilityTests {
    static let seeds: [UInt64] = [1_002, 1_004, 1_005, 86]

    static func trace(seed: UInt64) throws -> Trace {
        let scenario = try RandomScenario(seed: seed, isTraced: true)
        try scenario.run()
        return scenario.world.trace ?? Trace()
    }

    @Test func `a seed gives one trace, in this process and in another one`() async throws {
        let traces = try Self.seeds.map { try Self.trace(seed: $0) }
        #expect(try Self.seeds.map { try Self.trace(seed: $0) } == traces)
        #expect(traces.allSatisfy { $0.count > 100 })
        #expect(Set(traces.map(\.hash)).count == traces.count, "each seed gives another one")
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            for seed in RepeatabilityTests.seeds {
                print("trace \(seed): \(try RepeatabilityTests.trace(seed: seed).hash)")
            }
        }
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        for (seed, trace) in zip(Self.seeds, traces) { #expect(output.contains("trace \(seed): \(trace.hash)\n")) }
    }
}
