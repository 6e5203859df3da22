/// One piece of the forwarding path's work that can be repeated, with the same work in C beside it.
package final class Workload {
    /// What it is, as in the tables and in the thresholds.
    package let name: String
    /// Units that one run makes.
    package let unitsPerRun: Int
    /// Before each run, unmeasured.
    private let prepare: () throws -> Void
    private let body: () -> Void
    /// After each run, unmeasured.
    private let finish: () throws -> Void
    private let floorPrepare: () -> Void
    private let floorBody: (() -> Void)?

    package init(
        _ name: String,
        unitsPerRun: Int,
        prepare: @escaping () throws -> Void = {},
        finish: @escaping () throws -> Void = {},
        floorPrepare: @escaping () -> Void = {},
        floor: (() -> Void)?,
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
    }

    package var hasFloor: Bool { floorBody != nil }

    /// One run, of which `measure` runs the part that counts.
    package func run(_ measure: (() -> Void) -> Void) throws {
        try prepare()
        measure(body)
        try finish()
    }

    /// One run of the same work in C.
    package func runFloor(_ measure: (() -> Void) -> Void) {
        guard let floorBody else { return }
        floorPrepare()
        measure(floorBody)
    }
}
