public import TestSupport

/// One run of a random scenario: the seed that draws it, the steps that it takes, and what was wrong.
public final class SeededRun {
    public let seed: UInt64
    /// The numbers of the steps that the run takes; `nil` for all.
    private let taken: [Int]?
    /// The steps that the seed draws, taken or not.
    public private(set) var stepCount = 0
    private var step: Int?
    private var notes: [Int: String] = [:]
    /// What was not as it has to be, in the order of its detection.
    public private(set) var faults: [String] = []

    public init(seed: UInt64, steps: [Int]? = nil) {
        self.seed = seed
        taken = steps
    }

    /// Calls `body` for each step that the run takes. Each has a generator of its own, so that a step draws the same without
    /// the ones before it.
    public func takeSteps(_ count: Int, _ body: (inout SeededGenerator) throws -> Void) rethrows {
        stepCount = count
        notes = [:]
        defer { step = nil }
        var seeds = SeededGenerator(seed: ~seed)
        for number in 0..<count {
            var generator = SeededGenerator(seed: seeds.next())
            guard taken?.contains(number) ?? true else { continue }
            step = number
            try body(&generator)
        }
    }

    /// Says what the current step does, for the report of a failure.
    public func note(_ what: @autoclosure () -> String) {
        guard let step else { return }
        notes[step] = notes[step].map { "\($0), \(what())" } ?? what()
    }

    public func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds { addFault(what()) }
    }

    public func addFault(_ what: String) { faults.append(step.map { "step \($0): \(what)" } ?? what) }

    /// Runs the scenario. An error that it throws is a fault.
    func perform(_ scenario: (SeededRun) throws -> Void) {
        do { try scenario(self) } catch { addFault("it throws \(error)") }
    }

    var takesAll: Bool { taken == nil }
    /// The numbers of the steps that the run took.
    var numbers: [Int] { taken?.filter { (0..<stepCount).contains($0) } ?? Array(0..<stepCount) }
    /// What they did.
    var story: [String] { numbers.map { "  step \($0): \(notes[$0] ?? "nothing")" } }
}
