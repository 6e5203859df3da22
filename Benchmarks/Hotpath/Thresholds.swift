import Foundation
import Kit

/// Upper bounds for the cost of the forwarding path: `Benchmarks/thresholds.json`.
struct Thresholds: Codable {
    /// The share by which instructions may exceed their threshold.
    var tolerance: Double
    var workloads: [String: Limits]

    struct Limits: Codable {
        /// Per unit, by the names in the table. A count without a name here is not limited.
        var counts: [String: Double] = [:]
        /// Per unit, within the tolerance.
        var instructions: Double?
        /// The same without encryption libraries.
        var ownInstructions: Double?
        /// Bytes of the heap beyond those without what the workload measures.
        var addedBytes: Double?
        /// A figure without the CPU's time, within the tolerance.
        var most: Double?
        var least: Double?
    }

    /// Counts that have a threshold for every workload.
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

    /// One sentence for each cost in `report` that exceeds its threshold.
    func violations(in report: Report) -> [String] {
        var violations: [String] = []
        // These limits are always 0: a further subscriber costs arithmetic and encryption only.
        for (suite, costs) in report.marginalCosts {
            for (name, value) in costs where value > 0 {
                violations.append("\(suite): each further subscriber adds \(number(value)) \(name) to a packet.")
            }
        }
        for row in report.rows {
            guard let limits = workloads[row.name] else {
                violations.append("\(row.name) has no thresholds.")
                continue
            }
            for (name, value) in row.costs?.named ?? [] {
                if let limit = limits.counts[name], value > limit + 1e-9 {
                    violations.append("\(row.name): \(number(value)) \(name), and \(number(limit)) are allowed.")
                }
            }
            if let memory = row.memory {
                check(memory.bytes - memory.plainBytes, limits.addedBytes, "\(row.name): added bytes", &violations)
            }
            if let figure = row.figure { check(figure, limits, &violations) }
            guard let instructions = row.instructions else { continue }
            for (name, value) in instructions.calls {
                guard let limit = limits.counts[name], value > limit + 1e-9 else { continue }
                // The callers of the runtime's own allocations are listed as callers of objects.
                let kinds = name == "allocations" ? ["allocations", "objects"] : [name]
                let callers = kinds.flatMap { instructions.callers[$0, default: []] }.joined(separator: "; ")
                violations.append("\(row.name): \(number(value)) \(name) seen by callgrind: \(callers).")
            }
            check(instructions.total, limits.instructions, "\(row.name): instructions", &violations)
            check(
                instructions.total - instructions.crypto,
                limits.ownInstructions,
                "\(row.name): instructions outside crypto",
                &violations
            )
        }
        return violations
    }

    private func check(_ figure: Figure, _ limits: Limits, _ violations: inout [String]) {
        switch (limits.most, limits.least) {
        case (let most?, nil): check(figure.value, most, "\(figure.name): \(figure.unit)", &violations)
        case (nil, let least?) where figure.value < least * (1 - tolerance):
            let share = number(tolerance * 100)
            violations.append(
                "\(figure.name): \(number(figure.value)) \(figure.unit), under \(number(least)) by more than \(share) %."
            )
        case (nil, _?): break
        default: violations.append("\(figure.name) has not one threshold.")
        }
    }

    private func check(_ value: Double, _ limit: Double?, _ name: String, _ violations: inout [String]) {
        guard let limit, value > limit * (1 + tolerance) else { return }
        let share = number(tolerance * 100)
        violations.append("\(name) are \(number(value)), over \(number(limit)) by more than \(share) %.")
    }

    /// One sentence for each workload that is now so cheap that its threshold no longer protects it.
    func improvements(in report: Report) -> [String] {
        report.rows.compactMap { row in
            guard let limit = workloads[row.name]?.instructions, let value = row.instructions?.total,
                value < limit * (1 - tolerance)
            else { return nil }
            return "\(row.name): instructions are \(number(value)), well under \(number(limit))."
        }
    }

    /// Workloads with thresholds that were not measured, because this machine lacks their backend.
    func unmeasured(in report: Report) -> [String] {
        let measured = Set(report.rows.map(\.name))
        return workloads.keys.filter { !measured.contains($0) }.sorted()
    }

    /// Sets the thresholds to the measured costs. Counts are rounded up to thousandths.
    mutating func update(from report: Report) {
        for row in report.rows {
            var limits = workloads[row.name] ?? Limits()
            for (name, value) in row.costs?.named ?? [] where Self.limited.contains(name) {
                limits.counts[name] = (value * 1_000).rounded(.up) / 1_000
            }
            if let figure = row.figure {
                let value = (figure.value * 1_000).rounded(figure.isLeast ? .down : .up) / 1_000
                if figure.isLeast { limits.least = value } else { limits.most = value }
            }
            if let memory = row.memory { limits.addedBytes = (memory.bytes - memory.plainBytes).rounded() }
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
