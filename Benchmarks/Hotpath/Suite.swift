import Foundation
import Kit

/// The suite's results as the benchmark library exports them, in the format of the Java Microbenchmark Harness, with
/// what callgrind counted.
struct Suite: Codable {
    var results: [Result] = []

    /// Of one unit of a workload. Times are medians with the time that nine in ten runs stay under.
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
            /// All are exported in thousandths.
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
        for recipe in Workloads.all + Workloads.large {
            guard let metrics = byName[Self.exportedName(recipe)]?.secondaryMetrics, let time = metrics["ps"] else {
                continue
            }
            let ratio = metrics["ratio, thousandths"]
            results.append(
                Result(
                    name: recipe.name,
                    unit: recipe.unit,
                    nanoseconds: time.percentile("50.0"),
                    nanoseconds90: time.percentile("90.0"),
                    floorNanoseconds: metrics["C: ps"]?.percentile("50.0"),
                    ratio: ratio?.percentile("50.0"),
                    ratio90: ratio?.percentile("90.0"),
                    allocations: metrics["allocations, thousandths"]?.percentile("50.0") ?? .nan,
                    retains: metrics["retains, thousandths"]?.percentile("50.0") ?? .nan,
                    locks: metrics["locks, thousandths"]?.percentile("50.0") ?? .nan,
                    instructions: report.rows.first { $0.name == recipe.name }?.instructions
                )
            )
        }
    }

    /// The name of its target stands before that of a workload, whose spaces are not kept.
    private static func exportedName(_ recipe: Workloads.Recipe) -> String {
        "package.benchmark.Micro.\(recipe.name.replacingOccurrences(of: " ", with: "_"))"
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
    }

    func printTable() {
        let heads = ["ns", "C: ns", "ratio", "9 in 10", "instr.", "C: instr.", "alloc.", "retains", "locks"]
        print(pad("", 36) + heads.map { pad($0, 11, left: true) }.joined())
        for result in results {
            let values: [Double?] = [
                result.nanoseconds, result.floorNanoseconds, result.ratio, result.ratio90, result.instructions?.total,
                result.instructions?.floor, result.allocations, result.retains, result.locks,
            ]
            print(pad(result.name, 36) + values.map { pad($0.map(number) ?? "–", 11, left: true) }.joined())
        }
        print("\nPer packet, report, or peer and second. \"9 in 10\": nine runs in ten stay under this ratio.")
    }
}
