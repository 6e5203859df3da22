import Foundation
import Kit

/// Measures the forwarding path with calls in memory. The measured code uses no socket and no clock.
///
/// `Benchmarks/check` runs this program three times: natively, under callgrind, and to compare both results with the
/// thresholds. `Benchmarks/run` uses it to combine the microbenchmarks' results with callgrind's.
@main
enum Hotpath {
    static let usage = """
        hotpath measure REPORT [FILTER]      count events and measure times of every workload, natively
        hotpath collect [FILTER]             run every workload for callgrind
        hotpath judge REPORT CALLGRIND THRESHOLDS [--update]
                                             print the tables and compare them with the thresholds
        hotpath data REPORT                  measure data channels and print the figures beside their goals
        hotpath turn REPORT                  the same for clients over TURN and TCP
        hotpath summarise EXPORT CALLGRIND RESULTS
                                             print the microbenchmarks' table and write it as JSON

        FILTER is a part of a workload's name, or `figures` for those without the CPU's time.
        """

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "measure" where arguments.count >= 2: try await measure(arguments[1], arguments.dropFirst(2).first)
            case "collect": try collect(arguments.dropFirst().first)
            case "judge" where arguments.count >= 4:
                let succeeded = try judge(arguments[1], arguments[2], arguments[3], arguments.contains("--update"))
                exit(succeeded ? 0 : 1)
            case "data" where arguments.count == 2: try measure(DataFigures.all(), arguments[1])
            case "turn" where arguments.count == 2: try measure(TURNFigures.all(), arguments[1])
            case "summarise" where arguments.count == 4:
                let suite = try Suite(contentsOf: arguments[1], instructions: arguments[2])
                try suite.write(to: arguments[3])
                suite.printTable()
            default:
                print(usage)
                exit(2)
            }
        } catch {
            print("hotpath: \(error)")
            exit(1)
        }
    }

    private static func measure(_ path: String, _ filter: String?) async throws {
        let faults = await SelfTest.run()
        guard faults.isEmpty else {
            for fault in faults { print("A counter is broken: expected that \(fault).") }
            exit(1)
        }
        var report = Report()
        for make in Workloads.all where filter.map(make.name.contains) ?? true {
            let workload = try make()
            // The first run may allocate memory that later runs reuse.
            _ = try workload.count(runs: make.runs)
            let costs = try workload.count(runs: make.runs)
            let timing = try workload.time(runs: make.runs)
            report.rows.append(Row(name: workload.name, costs: costs, timing: timing))
        }
        let memoryName = "memory of an estimated viewer"
        if filter.map(memoryName.contains) ?? true {
            let (bytes, plainBytes) = try Workloads.viewerMemory()
            report.rows.append(Row(name: memoryName, memory: Row.Memory(bytes: bytes, plainBytes: plainBytes)))
        }
        if filter.map("figures".contains) ?? true {
            report.rows += try StableFigures.all().map { Row(name: $0.name, figure: $0) }
        }
        try report.write(to: path)
        report.printCosts()
        report.printTimes()
        report.printMemory()
        report.printFigures()
    }

    private static func measure(_ figures: [Figure], _ path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(figures) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
        printTable(figures)
    }

    private static func collect(_ filter: String?) throws {
        for make in Workloads.all where make.isCollected && (filter.map(make.name.contains) ?? true) {
            try make().collect(runs: 8)
        }
    }

    private static func judge(_ path: String, _ callgrind: String, _ limits: String, _ updates: Bool) throws -> Bool {
        var report = try Report(contentsOf: path)
        try report.addInstructions(from: callgrind)
        try report.write(to: path)
        report.printCosts()
        report.printMarginalCosts()
        report.printTimes()
        report.printMemory()
        report.printFigures()
        report.printInstructions()
        var thresholds = try Thresholds(contentsOf: limits)
        if updates {
            thresholds.update(from: report)
            try thresholds.write(to: limits)
            print("\n\(limits) now has the measured costs.")
            return true
        }
        let violations = thresholds.violations(in: report)
        let improvements = thresholds.improvements(in: report)
        print("")
        for name in thresholds.unmeasured(in: report) { print("note: \(name) was not measured.") }
        for line in improvements { print("note: \(line)") }
        if !improvements.isEmpty { print("note: Benchmarks/check --update lowers the thresholds.") }
        for line in violations { print("error: \(line)") }
        return violations.isEmpty
    }
}
