/// A repeatable piece of the forwarding path's work, with the same work in C.
package final class Workload {
    /// The name in tables and thresholds.
    package let name: String
    /// The units of work in one run.
    package let unitsPerRun: Int
    /// Runs before each run, unmeasured.
    private let prepare: () throws -> Void
    private let body: () -> Void
    /// Runs after each run, unmeasured.
    private let finish: () throws -> Void
    private let floorPrepare: () -> Void
    private let floorBody: (() -> Void)?
    /// The same work without what the workload measures.
    package let plain: Workload?

    package init(
        _ name: String,
        unitsPerRun: Int,
        prepare: @escaping () throws -> Void = {},
        finish: @escaping () throws -> Void = {},
        floorPrepare: @escaping () -> Void = {},
        floor: (() -> Void)? = nil,
        plain: Workload? = nil,
        _ body: @escaping () -> Void
    ) {
        precondition(unitsPerRun > 0)
        self.name = name
        self.unitsPerRun = unitsPerRun
        self.prepare = prepare
        self.body = body
        self.finish = finish
        self.floorPrepare = floorPrepare
        floorBody = floor
        self.plain = plain
    }

    package var hasFloor: Bool { floorBody != nil }

    /// One run. `measure` calls the measured part.
    package func run(_ measure: (() -> Void) -> Void) throws {
        try prepare()
        measure(body)
        try finish()
    }

    /// One run of the same work in C. `measure` calls the measured part.
    package func runFloor(_ measure: (() -> Void) -> Void) {
        guard let floorBody else { return }
        floorPrepare()
        measure(floorBody)
    }
}
