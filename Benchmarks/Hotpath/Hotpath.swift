import Foundation
import Kit

/// Measures the forwarding path on calls in memory, with no socket and no clock in what is measured.
///
/// `Benchmarks/check` runs it three times: natively, under callgrind, and once more to judge what both wrote.
/// `Benchmarks/run` lets it put the suite's results and callgrind's together.
@main
enum Hotpath {
    static let usage = """
        hotpath measure REPORT [FILTER]      counts and times every workload, natively
        hotpath collect [FILTER]             runs every workload for callgrind to collect
        hotpath judge REPORT CALLGRIND THRESHOLDS [--update]
                                             prints the tables and compares them with the thresholds
        hotpath summarise EXPORT CALLGRIND RESULTS
                                             prints the suite's table and writes it as JSON

        FILTER is a part of the workloads' names.
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
            for fault in faults { print("The counters are blind: \(fault).") }
            exit(1)
        }
        var report = Report()
        for make in Workloads.all where filter.map(make.name.contains) ?? true {
            let workload = try make()
            // The first run may take up memory that is kept from then on.
            _ = try workload.count(runs: make.runs)
            let costs = try workload.count(runs: make.runs)
            let timing = try workload.time(runs: make.runs)
            report.rows.append(Row(name: workload.name, costs: costs, timing: timing))
        }
        try report.write(to: path)
        report.printCosts()
        report.printTimes()
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
        report.printInstructions()
        var thresholds = try Thresholds(contentsOf: limits)
        if updates {
            thresholds.update(from: report)
            try thresholds.write(to: limits)
            print("\n\(limits) holds what was measured.")
            return true
        }
        let excesses = thresholds.excesses(in: report)
        let slack = thresholds.slack(in: report)
        print("")
        for name in thresholds.unmeasured(in: report) { print("note: \(name) was not measured.") }
        for line in slack { print("note: \(line)") }
        if !slack.isEmpty { print("note: Benchmarks/check --update lowers the thresholds.") }
        for line in excesses { print("error: \(line)") }
        return excesses.isEmpty
    }
}
