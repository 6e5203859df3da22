import SeedSupport
import TestSupport
import Testing

/// The part of a failing list that still fails, and the seeds that the environment asks for.
struct ShorteningTests {
    @Test(arguments: [[], [7], [0, 19], [3, 4, 5], [1, 8, 13, 17], Array(0..<20)])
    func `a list is shortened to exactly what its failure needs`(needed: [Int]) {
        let short = Array(0..<20).shortened { Set(needed).isSubset(of: $0) }
        #expect(short == needed)
    }

    @Test func `a part that fails for another reason is as short as it can be`() {
        // Three even numbers fail, and so does 7 beside 11.
        let fails = { (list: [Int]) in list.count { $0.isMultiple(of: 2) } >= 3 || Set([7, 11]).isSubset(of: list) }
        let short = Array(0..<64).shortened(whileFailing: fails)
        #expect(fails(short))
        for index in short.indices {
            var less = short
            less.remove(at: index)
            #expect(!fails(less))
        }
    }

    @Test func `after the permitted attempts the shortest part so far is the result`() {
        for attemptsMax in 0..<60 {
            var attempts = 0
            let short = Array(0..<40).shortened(attemptsMax: attemptsMax) { list in
                attempts += 1
                return Set([2, 21, 39]).isSubset(of: list)
            }
            #expect(attempts <= attemptsMax && Set([2, 21, 39]).isSubset(of: short))
        }
    }

    @Test func `a step draws the same whichever steps come before it`() {
        var drawn: [Int: UInt64] = [:]
        var number = 0
        SeededRun(seed: 5).takeSteps(10) { generator in
            drawn[number] = generator.next()
            number += 1
        }
        #expect(Set(drawn.values).count == 10)
        var some: [UInt64] = []
        let run = SeededRun(seed: 5, steps: [2, 7])
        run.takeSteps(10) { some.append($0.next()) }
        #expect(some == [drawn[2], drawn[7]] && run.stepCount == 10)
    }

    /// Adds one in each step, and must not come to two.
    private func sum(_ run: SeededRun) {
        var sum = 0
        run.takeSteps(12) { _ in
            run.note("adds one")
            sum += 1
            run.expect(sum < 2, "the sum is \(sum)")
        }
    }

    @Test func `a seed that fails is reported with what repeats it and the steps that it needs`() {
        let test = Seeds.filter(Self.self, "`a test's name`(seeds:)")
        #expect(test == "Simulation.ShorteningTests/.?a test.s name")
        let report = Seeds.report(of: SeededRun(seed: 17), test, shortens: { true }, sum)
        let lines = report?.split(separator: "\n").map(String.init) ?? []
        #expect(lines.first?.contains("NAGARE_SEED=17 ") == true)
        #expect(lines.first?.hasSuffix(" --filter '\(test)'") == true)
        #expect(lines.contains("  fault: step 1: the sum is 2") && lines.contains("  and 6 more"))
        #expect(lines.contains { $0.hasPrefix("2 of its 12 steps fail too: NAGARE_SEED=17 NAGARE_STEPS=") })
        #expect(lines.count { $0.hasSuffix(": adds one") } == 2)
        #expect(Seeds.report(of: SeededRun(seed: 17, steps: [4]), test, shortens: { true }, sum) == nil)
    }

    @Test func `a seed that is not shortened is reported all the same`() {
        let report = Seeds.report(of: SeededRun(seed: 17), "test", shortens: { false }, sum)
        #expect(report?.contains("NAGARE_SEED=17 ") == true && report?.contains("adds one") == false)
    }

    @Test func `an error that a scenario throws is a fault of its seed`() async {
        struct Failure: Error {}
        let failures = await Seeds.one(3).failures(of: Self.self) { _ in throw Failure() }
        #expect(failures.first?.contains("fault: it throws Failure()") == true)
        let none = await Seeds.one(3).failures(of: Self.self) { _ in }
        #expect(none.isEmpty)
    }

    @Test func `the environment decides which seeds run`() {
        let all = (1...120).map { Seeds.one($0) }
        #expect(Seeds.cases(1...120, SeedSettings([:])) == all)
        #expect(Seeds.cases(1...120, SeedSettings(["NAGARE_FIXED_SEEDS": "100"])) == all)
        #expect(Seeds.cases(1...120, SeedSettings(["NAGARE_FIXED_SEEDS": "4"])) == Array(all.prefix(4)))
        let fresh = ["NAGARE_FRESH_SEED": "\(UInt64.max)", "NAGARE_FRESH_SECONDS": "60"]
        #expect(Seeds.cases(1...2, SeedSettings(fresh)) == [.one(1), .one(2), .fresh])
        #expect(Seeds.cases(1...2, SeedSettings(fresh.merging(["NAGARE_FRESH_SECONDS": "0"]) { $1 })).count == 2)
        let alone = SeedSettings(fresh.merging(["NAGARE_SEED": "77", "NAGARE_STEPS": "3,12"]) { $1 })
        #expect(Seeds.cases(1...2, alone) == [.one(77)] && alone.steps == [3, 12])
        #expect(SeedSettings(["NAGARE_STEPS": ""]).steps == [])
        let seeds = Array(Seeds.freshSeeds(from: 9).prefix(50))
        #expect(Set(seeds).count == 50 && seeds == Array(Seeds.freshSeeds(from: 9).prefix(50)))
        #expect(seeds != Array(Seeds.freshSeeds(from: 10).prefix(50)))
    }
}
