import Foundation
import Kit

/// What the forwarding path may cost: `Benchmarks/thresholds.json`.
struct Thresholds: Codable {
    /// By how much instructions may exceed what is written, as a share.
    var tolerance: Double
    var workloads: [String: Limits]

    struct Limits: Codable {
        /// Per unit, by the names of the table; what is not named is not limited.
        var counts: [String: Double] = [:]
        /// Per unit, and exact to the tolerance: callgrind counts the same each time.
        var instructions: Double?
        /// The same without the libraries that encrypt.
        var ownInstructions: Double?
    }

    /// Counts that everything in the forwarding path is limited in.
    private static let limited: Set = [
        "allocations", "retains", "releases", "locks", "exclusivity", "onces", "hops", "casts",
    ]

    init(contentsOf path: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
    }

    /// What of `report` is more than it may be, a sentence each.
    func excesses(in report: Report) -> [String] {
        var excesses: [String] = []
        // No threshold to be raised: a subscriber costs arithmetic and crypto.
        for (suite, costs) in report.marginalCosts {
            for (name, value) in costs where value > 0 {
                excesses.append("\(suite): each further subscriber adds \(number(value)) \(name) to a packet.")
            }
        }
        for row in report.rows {
            guard let limits = workloads[row.name] else {
                excesses.append("\(row.name) has no thresholds.")
                continue
            }
            for (name, value) in row.costs?.named ?? [] {
                if let limit = limits.counts[name], value > limit + 1e-9 {
                    excesses.append("\(row.name): \(number(value)) \(name) where \(number(limit)) are allowed.")
                }
            }
            guard let instructions = row.instructions else { continue }
            for (name, value) in instructions.calls {
                guard let limit = limits.counts[name], value > limit + 1e-9 else { continue }
                // What the runtime allocates is for somebody else.
                let kinds = name == "allocations" ? ["allocations", "objects"] : [name]
                let callers = kinds.flatMap { instructions.callers[$0, default: []] }.joined(separator: "; ")
                excesses.append("\(row.name): \(number(value)) \(name) seen by callgrind: \(callers).")
            }
            check(instructions.total, limits.instructions, "\(row.name): instructions", &excesses)
            check(
                instructions.total - instructions.crypto,
                limits.ownInstructions,
                "\(row.name): instructions outside crypto",
                &excesses
            )
        }
        return excesses
    }

    private func check(_ value: Double, _ limit: Double?, _ name: String, _ excesses: inout [String]) {
        guard let limit, value > limit * (1 + tolerance) else { return }
        let share = number(tolerance * 100)
        excesses.append("\(name) are \(number(value)), over \(number(limit)) by more than \(share) %.")
    }

    /// What has become so much cheaper that its threshold guards it no more.
    func slack(in report: Report) -> [String] {
        report.rows.compactMap { row in
            guard let limit = workloads[row.name]?.instructions, let value = row.instructions?.total,
                value < limit * (1 - tolerance)
            else { return nil }
            return "\(row.name): instructions are \(number(value)), well under \(number(limit))."
        }
    }

    /// What has thresholds and was not measured: backends that this machine does not have.
    func unmeasured(in report: Report) -> [String] {
        let measured = Set(report.rows.map(\.name))
        return workloads.keys.filter { !measured.contains($0) }.sorted()
    }

    /// Takes what was measured as the measure of what comes. Counts are rounded up to thousandths.
    mutating func update(from report: Report) {
        for row in report.rows {
            var limits = workloads[row.name] ?? Limits()
            for (name, value) in row.costs?.named ?? [] where Self.limited.contains(name) {
                limits.counts[name] = (value * 1_000).rounded(.up) / 1_000
            }
            if let instructions = row.instructions {
                limits.instructions = instructions.total.rounded()
                limits.ownInstructions = (instructions.total - instructions.crypto).rounded()
                for (name, value) in instructions.calls where Self.limited.contains(name) {
                    limits.counts[name] = max(limits.counts[name] ?? 0, (value * 1_000).rounded(.up) / 1_000)
                }
            }
            workloads[row.name] = limits
        }
    }
}
