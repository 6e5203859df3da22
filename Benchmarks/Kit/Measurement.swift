internal import Counters

/// The average number of events per unit of a workload.
package struct Costs: Codable, Sendable {
    package var allocations = 0.0
    package var objects = 0.0
    package var retains = 0.0
    package var releases = 0.0
    package var locks = 0.0
    /// Dynamic exclusivity checks.
    package var accesses = 0.0
    /// Accesses to lazily initialised globals (`swift_once`).
    package var onces = 0.0
    /// Tasks created, enqueued or moved to another executor.
    package var hops = 0.0
    /// Dynamic casts and metadata look-ups.
    package var casts = 0.0

    package init() {}

    init(from before: nagare_counts, to after: nagare_counts, units: Int) {
        func share(_ count: KeyPath<nagare_counts, UInt64>) -> Double {
            Double(after[keyPath: count] - before[keyPath: count]) / Double(units)
        }
        allocations = share(\.allocations)
        objects = share(\.objects)
        retains = share(\.retains)
        releases = share(\.releases)
        locks = share(\.locks)
        accesses = share(\.accesses)
        onces = share(\.onces)
        hops = share(\.hops)
        casts = share(\.casts)
    }

    /// The counts, with their names in tables and thresholds.
    package var named: [(name: String, value: Double)] {
        [
            ("allocations", allocations), ("retains", retains), ("releases", releases), ("locks", locks),
            ("exclusivity", accesses), ("onces", onces), ("hops", hops), ("casts", casts),
        ]
    }

    static func + (left: Self, right: Self) -> Self {
        var sum = Self()
        sum.allocations = left.allocations + right.allocations
        sum.objects = left.objects + right.objects
        sum.retains = left.retains + right.retains
        sum.releases = left.releases + right.releases
        sum.locks = left.locks + right.locks
        sum.accesses = left.accesses + right.accesses
        sum.onces = left.onces + right.onces
        sum.hops = left.hops + right.hops
        sum.casts = left.casts + right.casts
        return sum
    }

    /// The events of one call of `body`.
    @inline(never)
    package static func of(_ body: () -> Void) -> Self {
        let before = nagare_counts_now()
        body()
        return Self(from: before, to: nagare_counts_now(), units: 1)
    }
}

/// Time of a workload and of its floor. Their runs alternate, so that other load on the machine slows both.
package struct Timing: Codable, Sendable {
    /// Nanoseconds per unit, the median of the runs.
    package var nanoseconds: Double
    package var floorNanoseconds: Double?
    /// The median of the ratios of neighbouring runs, which vary less than the times.
    package var ratio: Double?
    /// The median of what neighbouring runs take more than those of the plain workload.
    package var addedNanoseconds: Double?
}

/// One run of a workload with one of its floor; per unit.
package struct Sample {
    package var costs: Costs
    package var nanoseconds: Double
    package var floorNanoseconds: Double?
    package var plainNanoseconds: Double?
    package var ratio: Double? { floorNanoseconds.map { nanoseconds / $0 } }
}

extension Workload {
    /// The events per unit, averaged over `runs`.
    package func count(runs: Int) throws -> Costs {
        var sum = Costs()
        for _ in 0..<runs { try run { body in sum = sum + Costs.of(body) } }
        return sum.divided(by: Double(runs * unitsPerRun))
    }

    /// One run, followed by one of the plain workload and one of the floor.
    package func sample() throws -> Sample {
        var costs = Costs()
        var nanoseconds = 0.0
        var plainTime: Double?
        var floor: Double?
        try run { body in costs = Costs.of { nanoseconds = Self.nanoseconds(body) } }
        try plain?.run { body in plainTime = Self.nanoseconds(body) }
        runFloor { floor = Self.nanoseconds($0) }
        let units = Double(unitsPerRun)
        return Sample(
            costs: costs.divided(by: units),
            nanoseconds: nanoseconds / units,
            floorNanoseconds: floor.map { $0 / units },
            plainNanoseconds: plainTime.map { $0 / units }
        )
    }

    package func time(runs: Int) throws -> Timing {
        let samples = try (0..<runs).map { _ in try sample() }
        let floors = samples.compactMap(\.floorNanoseconds)
        let ratios = samples.compactMap(\.ratio)
        let added = samples.compactMap { sample in sample.plainNanoseconds.map { sample.nanoseconds - $0 } }
        return Timing(
            nanoseconds: samples.map(\.nanoseconds).median,
            floorNanoseconds: floors.isEmpty ? nil : floors.median,
            ratio: ratios.isEmpty ? nil : ratios.median,
            addedNanoseconds: added.isEmpty ? nil : added.median
        )
    }

    /// CPU time of this thread: other load on the machine counts only as far as it takes the caches.
    private static func nanoseconds(_ body: () -> Void) -> Double { max(0, elapsed(body) - clockNanoseconds) }

    /// What reading the clock takes.
    private static let clockNanoseconds = (0..<1_000).map { _ in elapsed {} }.median

    private static func elapsed(_ body: () -> Void) -> Double {
        let start = nagare_thread_nanoseconds()
        body()
        return Double(nagare_thread_nanoseconds() - start)
    }

    /// Lets callgrind collect `runs` runs of the workload, of the plain workload and of the floor, one file each. The file has
    /// the workload's name and the units per run.
    package func collect(runs: Int) throws {
        let label = ContiguousArray("\(name) | \(unitsPerRun)".utf8CString)
        let floorLabel = ContiguousArray("\(name) | \(unitsPerRun) | floor".utf8CString)
        let plainLabel = ContiguousArray("\(name) | \(unitsPerRun) | plain".utf8CString)
        // The first runs may allocate memory that later runs reuse.
        for _ in 0..<4 {
            try run { $0() }
            try plain?.run { $0() }
        }
        for _ in 0..<runs {
            try run { Self.collect(as: label, $0) }
            try plain?.run { Self.collect(as: plainLabel, $0) }
            if hasFloor { runFloor { Self.collect(as: floorLabel, $0) } }
        }
    }

    private static func collect(as label: ContiguousArray<CChar>, _ body: () -> Void) {
        unsafe label.withUnsafeBufferPointer { label in
            nagare_collect_begin()
            body()
            unsafe nagare_collect_end(label.baseAddress)
        }
    }
}

extension Costs {
    fileprivate func divided(by count: Double) -> Self {
        var share = self
        share.allocations /= count
        share.objects /= count
        share.retains /= count
        share.releases /= count
        share.locks /= count
        share.accesses /= count
        share.onces /= count
        share.hops /= count
        share.casts /= count
        return share
    }
}

extension [Double] {
    package var median: Double {
        precondition(!isEmpty)
        return sorted()[count / 2]
    }
}
