import Base
import Forwarding
import Testing

/// The whole server against its bounds, in virtual time: what viewers of simulcast and of screens see on limited links.
@Suite(.timeLimit(.minutes(30))) struct AdaptationTests {
    @Test(arguments: AdaptationCase.tested)
    func `a case keeps its bounds`(adaptationCase: AdaptationCase) async throws {
        let worst = try await AdaptationScores.shared.worst(adaptationCase)
        for gate in adaptationCase.gates {
            let value = worst[gate.name] ?? .nan
            #expect(gate.holds(value), "\(adaptationCase): \(gate.text(gate.bound)), not \(AdaptationGate.text(value))")
        }
    }

    /// With `NAGARE_SCORECARD=update` it writes the page first.
    @Test func `the printed table of the whole server has a row for each case, with all its figures`() async throws {
        let table = try await AdaptationPage.table(AdaptationCase.tested)
        print(table)
        let rows = table.split(separator: "\n").dropFirst(2)
        #expect(rows.count == AdaptationCase.tested.count)
        for (row, adaptationCase) in zip(rows, AdaptationCase.tested) {
            #expect(row.hasPrefix("| **\(adaptationCase.name)** "), "\(row)")
            let figures = row.split(separator: "|", omittingEmptySubsequences: false)[2].split(separator: ", ")
            #expect(figures.count == adaptationCase.gates.count && !row.contains("nan"), "\(row)")
        }
        if AdaptationPage.isUpdateRequested { try AdaptationPage.write(table) }
        #expect(AdaptationPage.isDrawn, "run Benchmarks/scorecard/update")
        try AdaptationPage.writePicture()
    }

    /// The key frame waits for its turn on the thin link. Another one behind it would freeze the picture again.
    @Test func `a link that gets thin costs one key frame of each layer`() throws {
        let camera = AdaptationCase.Camera.load
        let call = try MeasuredCall(
            seed: 9,
            nil,
            rate: 5_000_000,
            roundTrip: .milliseconds(60),
            queue: .milliseconds(200),
            bitrates: camera.bitrates,
            hasTemporalLayers: camera.hasTemporalLayers
        )
        call.run(20)
        let asked = call.world.node.core.counters.pliSent
        call.rate = 800_000
        call.run(5)
        #expect(call.picture.step?.layer == 0)
        #expect((1...2).contains(call.world.node.core.counters.pliSent - asked))
    }

    /// A bound that every fault keeps is worth nothing.
    @Test(arguments: AdaptationCase.proven)
    func `a case fails for a server with a fault`(adaptationCase: AdaptationCase) throws {
        for fault in adaptationCase.faults {
            let worst = try adaptationCase.worst(fault, seeds: [1])
            let failed = adaptationCase.gates.filter { !$0.holds(worst[$0.name] ?? .nan) }
            #expect(!failed.isEmpty, "\(adaptationCase) holds for a server that \(fault)")
        }
    }
}
