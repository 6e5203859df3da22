import Foundation
import Kit

/// The microbenchmarks' results, which the benchmark library exports in the format of the Java Microbenchmark Harness,
/// with callgrind's counts.
struct Suite: Codable {
    var results: [Result] = []

    /// Per unit of a workload. Times and ratios are the median and the 90th percentile.
    struct Result: Codable {
        var name: String
        var unit: String
        var nanoseconds: Double
        var nanoseconds90: Double
        var floorNanoseconds: Double?
        var ratio: Double?
        var ratio90: Double?
        var allocations: Double
        var retains: Double
        var locks: Double
        var instructions: Row.Instructions?
    }

    private struct Exported: Decodable {
        struct Metric: Decodable {
            var scorePercentiles: [String: Double]
            /// All metrics are exported in thousandths.
            func percentile(_ name: String) -> Double { scorePercentiles[name, default: .nan] / 1_000 }
        }
        var benchmark: String
        var secondaryMetrics: [String: Metric]
    }

    init(contentsOf path: String, instructions callgrind: String) throws {
        let exported = try JSONDecoder().decode([Exported].self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        var byName: [String: Exported] = [:]
        for entry in exported { byName[entry.benchmark] = entry }
        var report = Report()
        try report.addInstructions(from: callgrind)
        for factory in Workloads.all + Workloads.large {
            guard let metrics = byName[Self.exportedName(factory)]?.secondaryMetrics, let time = metrics["ps"] else {
                continue
            }
            let ratio = metrics["ratio, thousandths"]
            results.append(
                Result(
                    name: factory.name,
                    unit: factory.unit,
                    nanoseconds: time.percentile("50.0"),
                    nanoseconds90: time.percentile("90.0"),
                    floorNanoseconds: metrics["C: ps"]?.percentile("50.0"),
                    ratio: ratio?.percentile("50.0"),
                    ratio90: ratio?.percentile("90.0"),
                    allocations: metrics["allocations, thousandths"]?.percentile("50.0") ?? .nan,
                    retains: metrics["retains, thousandths"]?.percentile("50.0") ?? .nan,
                    locks: metrics["locks, thousandths"]?.percentile("50.0") ?? .nan,
                    instructions: report.rows.first { $0.name == factory.name }?.instructions
                )
            )
        }
    }

    /// The export puts the target's name before the workload's name and replaces spaces.
    private static func exportedName(_ factory: Workloads.Factory) -> String {
        "package.benchmark.Micro.\(factory.name.replacingOccurrences(of: " ", with: "_"))"
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
    }

    func printTable() {
        let heads = ["ns", "C: ns", "ratio", "p90", "instr.", "C: instr.", "alloc.", "retains", "locks"]
        print(pad("", 36) + heads.map { pad($0, 11, left: true) }.joined())
        for result in results {
            let values: [Double?] = [
                result.nanoseconds, result.floorNanoseconds, result.ratio, result.ratio90, result.instructions?.total,
                result.instructions?.floor, result.allocations, result.retains, result.locks,
            ]
            print(pad(result.name, 36) + values.map { pad($0.map(number) ?? "–", 11, left: true) }.joined())
        }
        print("\nPer packet, report, or peer and second. \"p90\" is the 90th percentile of the ratio.")
    }
}
