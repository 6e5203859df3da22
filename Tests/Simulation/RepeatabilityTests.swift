import Base
import Client
import SeedSupport
import Testing

/// The same seed gives the same run: twice in one process, and in another process, whose dictionaries have other orders.
@Suite(.timeLimit(.minutes(30))) struct RepeatabilityTests {
    static let seeds: [UInt64] = [1_002, 1_004, 1_005, 86]

    static func trace(seed: UInt64) throws -> (trace: Trace, limitedLinks: Int) {
        let scenario = try RandomScenario(SeededRun(seed: seed), isTraced: true)
        try scenario.perform()
        return (scenario.world.trace ?? Trace(), scenario.limitedLinks)
    }

    @Test func `a seed gives one trace, in this process and in another one`() async throws {
        let runs = try Self.seeds.map { try Self.trace(seed: $0) }
        let traces = runs.map(\.trace)
        #expect(try Self.seeds.map { try Self.trace(seed: $0).trace } == traces)
        #expect(traces.allSatisfy { $0.count > 100 })
        #expect(Set(traces.map(\.hash)).count == traces.count, "each seed gives another one")
        #expect(runs.contains { $0.limitedLinks > 0 })
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            for seed in RepeatabilityTests.seeds {
                print("trace \(seed): \(try RepeatabilityTests.trace(seed: seed).trace.hash)")
            }
        }
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        for (seed, trace) in zip(Self.seeds, traces) { #expect(output.contains("trace \(seed): \(trace.hash)\n")) }
    }

    /// Two clients whose handshakes cross the bottleneck that their media cross later: whatever a handshake needs there delays
    /// all that follows.
    static func limitedTrace(seed: UInt64) throws -> Trace {
        let world = try World(seed: seed, estimates: true)
        world.trace = Trace()
        world.network.standard = LinkConditions(delay: .milliseconds(10), rate: 250_000)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(4))
        return world.trace ?? Trace()
    }

    @Test func `calls over limited links give one trace, in this process and in another one`() async throws {
        let seeds: [UInt64] = [87, 88, 89]
        let traces = try seeds.map { try Self.limitedTrace(seed: $0) }
        #expect(try seeds.map { try Self.limitedTrace(seed: $0) } == traces)
        #expect(traces.allSatisfy { $0.count > 100 })
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            for seed in [87, 88, 89] as [UInt64] {
                print("trace \(seed): \(try RepeatabilityTests.limitedTrace(seed: seed).hash)")
            }
        }
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        for (seed, trace) in zip(seeds, traces) { #expect(output.contains("trace \(seed): \(trace.hash)\n")) }
    }
}
