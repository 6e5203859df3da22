internal import Foundation
internal import Synchronization
internal import TestSupport

/// What the environment says about seeds.
public struct SeedSettings: Sendable {
    /// `NAGARE_SEED`: seeded tests run this seed alone.
    public var seed: UInt64?
    /// `NAGARE_STEPS`: of that seed, the steps with these numbers alone, such as `3,7`.
    public var steps: [Int]?
    /// `NAGARE_FIXED_SEEDS`: the most fixed seeds of a test. A hundred or more are all, also of a test that has more than a
    /// hundred.
    public var fixedSeedsMax = Int.max
    /// `NAGARE_FRESH_SEED`: what fresh seeds are drawn from, such as the commit; there are none without it.
    public var freshSeed: UInt64?
    /// `NAGARE_FRESH_SECONDS`: the time for the fresh seeds of all tests of the process together.
    public var freshSeconds = 0.0

    /// Traps when a variable has a value that cannot be read: a run with other seeds than those asked for proves nothing.
    public init(_ environment: [String: String]) {
        func value<Value>(_ name: String, _ read: (String) -> Value?) -> Value? {
            guard let text = environment[name] else { return nil }
            guard let value = read(text) else { fatalError("\(name) cannot be read: \(text)") }
            return value
        }
        seed = value("NAGARE_SEED") { UInt64($0) }
        steps = value("NAGARE_STEPS") { text in
            let numbers = text.split(separator: ",").map { Int($0) }
            return numbers.contains(nil) ? nil : numbers.compactMap { $0 }
        }
        let fixedSeeds = value("NAGARE_FIXED_SEEDS") { Int($0).flatMap { $0 < 1 ? nil : $0 } }
        fixedSeedsMax = fixedSeeds.flatMap { $0 < 100 ? $0 : nil } ?? .max
        freshSeed = value("NAGARE_FRESH_SEED") { UInt64($0) }
        freshSeconds = value("NAGARE_FRESH_SECONDS") { Double($0) } ?? 0
    }

    /// Whether tests take few of their fixed seeds.
    public var hasFewSeeds: Bool { fixedSeedsMax < .max }

    public static let current = SeedSettings(ProcessInfo.processInfo.environment)
}

/// A case of a seeded test: one of its fixed seeds, or as many fresh ones as there is time for.
public enum Seeds: Hashable, Sendable, CustomStringConvertible {
    case one(UInt64)
    case fresh

    /// Faults that a report names.
    private static let faultsMax = 5
    /// Runs that the shortening of one failure takes.
    private static let attemptsMax = 300
    /// Fresh seeds that fail until a test draws no more.
    private static let freshFailuresMax = 3
    /// Failures of the process that are shortened. A product that is quite broken fails with most seeds.
    private static let shortenings = Mutex(3)
    /// What is left of the time for fresh seeds.
    private static let freshSecondsLeft = Mutex(SeedSettings.current.freshSeconds)

    /// The cases of a test that has these fixed seeds.
    public static func cases(_ fixed: some Sequence<UInt64>, _ settings: SeedSettings? = nil) -> [Seeds] {
        let settings = settings ?? .current
        if let seed = settings.seed { return [.one(seed)] }
        let cases = fixed.prefix(settings.fixedSeedsMax).map { Seeds.one($0) }
        return settings.freshSeed == nil || settings.freshSeconds <= 0 ? cases : cases + [.fresh]
    }

    /// The fresh seeds, without end. They have 32 bits, which are easily read and typed.
    public static func freshSeeds(from seed: UInt64) -> some Sequence<UInt64> {
        sequence(state: SeededGenerator(seed: seed)) { $0.next() >> 32 }
    }

    public var description: String {
        switch self {
        case .one(let seed): "seed \(seed)"
        case .fresh: "fresh seeds"
        }
    }

    /// Runs a scenario with each seed of the case, and gives back a report of each seed that fails.
    ///
    /// How many fresh seeds run is a matter of time; what a seed gives never is.
    public func failures(
        of suite: Any.Type,
        _ scenario: (SeededRun) throws -> Void,
        function: String = #function
    ) async -> [String] {
        let test = Self.filter(suite, function)
        switch self {
        case .one(let seed):
            let run = SeededRun(seed: seed, steps: SeedSettings.current.steps)
            return [Self.report(of: run, test, shortens: Self.mayShorten, scenario)].compactMap { $0 }
        case .fresh: return await Self.freshFailures(of: test, scenario)
        }
    }

    private static func mayShorten() -> Bool {
        shortenings.withLock { left in
            left -= 1
            return left >= 0
        }
    }

    private static func freshFailures(of test: String, _ scenario: (SeededRun) throws -> Void) async -> [String] {
        var failures: [String] = []
        var count = 0
        let seeds = freshSeeds(from: SeedSettings.current.freshSeed ?? 0)
        for seed in seeds {
            let start = ContinuousClock.now
            let failure = report(of: SeededRun(seed: seed), test, shortens: mayShorten, scenario)
            if let failure { failures.append(failure) }
            count += 1
            let spent = (ContinuousClock.now - start) / .seconds(1)
            let left = freshSecondsLeft.withLock { left in
                left -= spent
                return left
            }
            if left <= 0 || failures.count == freshFailuresMax { break }
            // The other tests that draw seeds get as many.
            await Task.yield()
        }
        let first = seeds.first { _ in true } ?? 0
        print("Fresh seeds: \(count) from \(first) on, \(failures.count) failed, \(test)")
        return failures
    }

    /// A regular expression that finds the test by its name.
    package static func filter(_ suite: Any.Type, _ function: String) -> String {
        let message = function.prefix { $0 != "(" }.filter { $0 != "`" }
        let pattern = message.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == " ") ? $0 : "." }
        return "\(String(reflecting: suite))/.?\(String(pattern))"
    }

    /// Runs a scenario, and says what repeats it and which of its steps it needs to fail; `nil` when it does not fail.
    /// - Parameter shortens: whether to look for those steps, which takes many runs.
    package static func report(
        of run: SeededRun,
        _ test: String,
        shortens: () -> Bool,
        _ scenario: (SeededRun) throws -> Void
    ) -> String? {
        run.perform(scenario)
        guard !run.faults.isEmpty else { return nil }
        let command =
            "NAGARE_TESTING=1 swift test -c release -debug-info-format none --disable-xctest --filter '\(test)'"
        var lines = ["Seed \(run.seed) fails. Alone: NAGARE_SEED=\(run.seed) \(command)"]
        lines += describe(run)
        if run.stepCount == 0 { return lines.joined(separator: "\n") }
        if !run.takesAll {
            lines += run.story
        } else if shortens() {
            let short = shorten(run, scenario)
            let numbers = short.numbers.map(String.init).joined(separator: ",")
            let variables = "NAGARE_SEED=\(run.seed) NAGARE_STEPS=\(numbers)"
            lines.append("\(short.numbers.count) of its \(run.stepCount) steps fail too: \(variables) \(command)")
            lines += short.story + describe(short)
        } else {
            lines.append("Its steps are not shortened, because those of other seeds were.")
        }
        return lines.joined(separator: "\n")
    }

    private static func shorten(_ run: SeededRun, _ scenario: (SeededRun) throws -> Void) -> SeededRun {
        func perform(_ numbers: [Int]) -> SeededRun {
            let part = SeededRun(seed: run.seed, steps: numbers)
            part.perform(scenario)
            return part
        }
        return perform(run.numbers.shortened(attemptsMax: attemptsMax) { !perform($0).faults.isEmpty })
    }

    private static func describe(_ run: SeededRun) -> [String] {
        let more = run.faults.count - faultsMax
        return run.faults.prefix(faultsMax).map { "  fault: \($0)" } + (more > 0 ? ["  and \(more) more"] : [])
    }
}
