import TestSupport
import Testing

/// The product's controller against its bounds, in virtual time.
@Suite(.timeLimit(.minutes(30))) struct ScorecardTests {
    @Test(arguments: ScorecardCase.tested)
    func `a case keeps its bounds`(scorecardCase: ScorecardCase) async {
        let row = await Scoreboard.shared.row(scorecardCase)
        for gate in scorecardCase.gates {
            let figure = row.product[gate.metric]
            #expect(
                gate.holds(figure.value),
                "\(scorecardCase.name): \(gate.text(gate.bound)), not \(figure.value.fixed(3)), seed \(figure.seed)"
            )
        }
    }

    @Test func `the printed table has a line for each case, with all figures that it shows`() async throws {
        let table = TextTable.text(await Scoreboard.shared.rows(of: ScorecardCase.tested))
        print(table)
        let lines = table.split(separator: "\n").dropFirst(2)
        #expect(lines.count == ScorecardCase.tested.count)
        for (line, scorecardCase) in zip(lines, ScorecardCase.tested) {
            #expect(line.hasPrefix("\(scorecardCase.name)  ") && !line.contains("nan"), "\(line)")
            let empty = Metric.columns.count { !scorecardCase.shows($0) }
            #expect(line.count { $0 == "–" } == empty, "\(line)")
            #expect(scorecardCase.otherMetrics.allSatisfy { line.contains("\($0.name)\($0.unit.suffix): ") }, "\(line)")
        }
    }

    @Test(arguments: ["L up", "L after TCP", "W13"])
    func `a seed gives the same run each time`(name: String) throws {
        let scorecardCase = try #require(ScorecardCase.all.first { $0.name == name })
        let runs = (0..<2).map { _ in scorecardCase.run(.product, seed: 7).testbed }
        #expect(runs[0].samples.map(\.targets) == runs[1].samples.map(\.targets))
        #expect(runs[0].flows.map { $0.records.map(\.arrivedAt) } == runs[1].flows.map { $0.records.map(\.arrivedAt) })
        let other = scorecardCase.run(.product, seed: 8).testbed
        #expect(runs[0].samples.map(\.targets) != other.samples.map(\.targets))
    }

    @Test func `the names of cases differ, and every case has a bound`() {
        #expect(Set(ScorecardCase.all.map(\.name)).count == ScorecardCase.all.count)
        #expect(ScorecardCase.all.allSatisfy { !$0.gates.isEmpty })
    }

    /// A bound that no broken controller leaves is worth nothing.
    @Test(arguments: BrokenProof.tested)
    func `every kind of bound in a group fails for a broken controller`(group: CaseGroup) throws {
        let kinds = Set(ScorecardCase.all.filter { $0.group == group }.flatMap(\.gates).map(\.metric.kind))
        var broken: Set<String> = []
        for proof in BrokenProof.all where proof.group == group {
            let scorecardCase = try #require(ScorecardCase.all.first { $0.name == proof.name })
            let score = scorecardCase.score(.broken(proof.fault), seeds: [1])
            let failed = scorecardCase.gates.filter { !$0.holds(score[$0.metric].value) }.map(\.metric.kind)
            #expect(!failed.isEmpty, "\(proof.name) holds for a controller that \(proof.fault.rawValue)")
            broken.formUnion(failed)
        }
        #expect(kinds.subtracting(broken) == [], "kinds of bounds that hold for every broken controller")
    }

    /// With `NAGARE_SCORECARD=update` it writes the folder first.
    @Test func `the published scorecard lists every case`() async throws {
        if PublishedScorecard.isUpdateRequested {
            try PublishedScorecard.write(await Scoreboard.shared.rows(of: ScorecardCase.all))
        }
        let text = try PublishedScorecard.read()
        #expect(PublishedScorecard.names(in: text) == ScorecardCase.all.map(\.name), "run Benchmarks/scorecard/update")
        for name in PublishedScorecard.pictures {
            #expect(PublishedScorecard.hasPicture(of: name), "\(name): run Benchmarks/scorecard/update")
            #expect(text.contains("(\(PublishedScorecard.fileName(of: name)))"))
        }
    }
}
