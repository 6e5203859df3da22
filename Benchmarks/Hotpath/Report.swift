import Foundation
import Kit

/// The results of one workload. Each run of the program adds a part of them.
struct Row: Codable {
    var name: String
    var costs: Costs?
    var timing: Timing?
    var instructions: Instructions?
    var memory: Memory?
    var figure: Figure?

    /// Bytes of the heap, and those of the same without what the row measures.
    struct Memory: Codable {
        var bytes: Double
        var plainBytes: Double
    }

    /// Per unit.
    struct Instructions: Codable {
        var total: Double
        /// In encryption libraries.
        var crypto: Double
        var floor: Double?
        var floorCrypto: Double?
        /// Of the same work without what the workload measures.
        var plain: Double?
        /// Calls counted by callgrind, including those within the runtime.
        var calls: [String: Double]
        /// The most frequent callers of each category.
        var callers: [String: [String]]
    }
}

struct Report: Codable {
    var rows: [Row] = []

    init() {}
    init(contentsOf path: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
    }

    /// Adds callgrind's results: the files `path.1`, `path.2` and so on.
    mutating func addInstructions(from path: String) throws {
        var parts: [String: CallgrindPart] = [:]
        var runs: [String: Double] = [:]
        var number = 1
        while FileManager.default.fileExists(atPath: "\(path).\(number)") {
            let part = try CallgrindPart(contentsOf: "\(path).\(number)")
            parts[part.name] = parts[part.name].map { $0 + part } ?? part
            runs[part.name, default: 0] += 1
            number += 1
        }
        for (name, part) in parts {
            let pieces = name.components(separatedBy: " | ")
            guard pieces.count == 2, let unitsPerRun = Double(pieces[1]) else { continue }
            let units = unitsPerRun * runs[name, default: 1]
            // The floor has as many runs as the workload.
            let floor = parts["\(name) | floor"]
            let kinds = Set(part.calls.keys.map(\.kind))
            let instructions = Row.Instructions(
                total: Double(part.instructions) / units,
                crypto: Double(part.cryptoInstructions) / units,
                floor: floor.map { Double($0.instructions) / units },
                floorCrypto: floor.map { Double($0.cryptoInstructions) / units },
                plain: parts["\(name) | plain"].map { Double($0.instructions) / units },
                calls: Dictionary(uniqueKeysWithValues: kinds.map { ($0, Double(part.count(of: $0)) / units) }),
                callers: Dictionary(
                    uniqueKeysWithValues: kinds.map { kind in
                        (kind, part.callers(of: kind).prefix(6).map { "\($0.count) × \($0.caller)" })
                    }
                )
            )
            if let index = rows.firstIndex(where: { $0.name == pieces[0] }) {
                rows[index].instructions = instructions
            } else {
                rows.append(Row(name: pieces[0], instructions: instructions))
            }
        }
    }

    // MARK: - Tables

    func printCosts() {
        let costed = rows.compactMap { row in row.costs.map { (row, $0) } }
        guard let names = costed.first?.1.named.map(\.name) else { return }
        print("\nPer unit, counted:")
        print(pad("", 38) + names.map { pad($0, 13, left: true) }.joined())
        for (row, costs) in costed {
            print(pad(row.name, 38) + costs.named.map { pad(number($0.value), 13, left: true) }.joined())
        }
    }

    /// The counts that one more subscriber adds to a packet, by suite, from one subscriber to ten. Without libsrtp2.
    var marginalCosts: [(suite: String, costs: [(name: String, value: Double)])] {
        rows.compactMap { row in
            guard row.name.hasPrefix("fan-out 10, "), !row.name.hasSuffix("libsrtp2"), let ten = row.costs else {
                return nil
            }
            let suite = String(row.name.dropFirst("fan-out 10, ".count))
            guard let one = rows.first(where: { $0.name == "fan-out 1, \(suite)" })?.costs else { return nil }
            // Rounded, because runs differ by the timers that expire in them: hundredths of an event per packet.
            let costs = zip(one.named, ten.named).map { one, ten in
                (name: one.name, value: tenths(max((10 * ten.value - one.value) / 9, 0)))
            }
            return (suite, costs)
        }
    }

    func printMarginalCosts() {
        guard let names = marginalCosts.first?.costs.map(\.name) else { return }
        print("\nPer packet and further subscriber, counted:")
        print(pad("", 38) + names.map { pad($0, 13, left: true) }.joined())
        for (suite, costs) in marginalCosts {
            print(pad(suite, 38) + costs.map { pad(number($0.value), 13, left: true) }.joined())
        }
    }

    func printTimes() {
        let timed = rows.compactMap { row in row.timing.map { (row, $0) } }
        guard !timed.isEmpty else { return }
        print("\nTime per unit, beside the same in C; \"added\" to the same without what the row measures:")
        print(pad("", 38) + ["ns", "C: ns", "ratio", "added ns"].map { pad($0, 13, left: true) }.joined())
        for (row, timing) in timed {
            let values = [timing.nanoseconds, timing.floorNanoseconds, timing.ratio, timing.addedNanoseconds]
                .map { $0.map(number) ?? "–" }
            print(pad(row.name, 38) + values.map { pad($0, 13, left: true) }.joined())
        }
    }

    func printMemory() {
        for row in rows {
            guard let memory = row.memory else { continue }
            let added = number(memory.bytes - memory.plainBytes)
            print("\n\(row.name): \(number(memory.bytes)) bytes of the heap, \(added) of them added.")
        }
    }

    func printFigures() {
        let figures = rows.compactMap(\.figure)
        guard !figures.isEmpty else { return }
        print("\nFigures without the CPU's time:")
        printTable(figures)
    }

    func printInstructions() {
        let counted = rows.compactMap { row in row.instructions.map { (row, $0) } }
        guard !counted.isEmpty else { return }
        print("\nInstructions per unit, beside the same in C:")
        let heads = ["all", "not crypto", "C: all", "C: not crypto", "ratio", "added"]
        print(pad("", 38) + heads.map { pad($0, 15, left: true) }.joined())
        for (row, it) in counted {
            let values: [Double?] = [
                it.total, it.total - it.crypto, it.floor, it.floor.map { $0 - (it.floorCrypto ?? 0) },
                it.floor.map { it.total / $0 }, it.plain.map { it.total - $0 },
            ]
            print(pad(row.name, 38) + values.map { pad($0.map(number) ?? "–", 15, left: true) }.joined())
        }
    }
}

private func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }

func printTable(_ figures: [Figure]) {
    print(pad("", 52) + ["measured", "goal", "ratio"].map { pad($0, 14, left: true) }.joined())
    for figure in figures {
        let values = [figure.value, figure.goal, figure.ratio].map { pad($0.map(number) ?? "–", 14, left: true) }
        print(pad(figure.name, 52) + values.joined() + "  \(figure.unit)")
    }
}

/// The larger the number, the fewer decimals.
func number(_ value: Double) -> String {
    if value == 0 { return "0" }
    if value == value.rounded(), value < 1e6 { return String(Int(value)) }
    let digits = value >= 1_000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 4
    return String(format: "%.\(digits)f", value)
}

func pad(_ text: String, _ width: Int, left: Bool = false) -> String {
    let space = String(repeating: " ", count: max(width - text.count, 0))
    return left ? space + text : text + space
}
