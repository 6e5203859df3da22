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
    @Test func `the table of the whole server is printed`() async throws {
        let table = try await AdaptationPage.table(AdaptationCase.tested)
        print(table)
        if AdaptationPage.isUpdateRequested { try AdaptationPage.write(table) }
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
