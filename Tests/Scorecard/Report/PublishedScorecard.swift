import Foundation

/// `Benchmarks/scorecard`: the figures of all cases and pictures of some.
enum PublishedScorecard {
    /// Set to `update`, it writes the folder anew.
    static let variable = "NAGARE_SCORECARD"
    static let pictures = ["5.1", "5.2", "S2", "S7", "5.6", "W1 5 %"]

    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Benchmarks/scorecard")

    /// Never in an unoptimised build, which runs one seed only.
    static var isUpdateRequested: Bool {
        ProcessInfo.processInfo.environment[variable] == "update" && ScorecardCase.seeds.count > 1
    }

    static func read() throws -> String {
        try String(contentsOf: folder.appendingPathComponent("README.md"), encoding: .utf8)
    }

    static func hasPicture(of name: String) -> Bool {
        FileManager.default.fileExists(atPath: folder.appendingPathComponent(fileName(of: name)).path)
    }

    static func write(_ rows: [Scoreboard.Row]) throws {
        try text(rows).write(to: folder.appendingPathComponent("README.md"), atomically: true, encoding: .utf8)
        for row in rows where pictures.contains(row.scorecardCase.name) {
            let picture = Plot.svg(row.scorecardCase)
            let url = folder.appendingPathComponent(fileName(of: row.scorecardCase.name))
            try picture.write(to: url, atomically: true, encoding: .utf8)
        }
    }

    /// The names of the cases that a published text lists, in its order.
    static func names(in text: String) -> [String] {
        text.split(separator: "\n").compactMap { line in
            line.firstMatch(of: #/^\| \*\*(.+?)\*\* /#).map { String($0.1) }
        }
    }

    static func fileName(of name: String) -> String {
        let words = name.split { !$0.isLetter && !$0.isNumber && $0 != "." }
        return words.joined(separator: "-").lowercased() + ".svg"
    }

    // MARK: - Text

    static func text(_ rows: [Scoreboard.Row]) -> String {
        let goals = rows.flatMap { row in row.scorecardCase.gates.filter { $0.goal != nil }.map { (row, $0) } }
        let met = goals.filter { $1.isGoalMet($0.product[$1.metric].value) }.count
        let referenceMet = goals.filter { row, gate in
            row.reference.map { gate.isGoalMet($0[gate.metric].value) } ?? false
        }.count
        var text = introduction(
            cases: rows.count,
            goals: "Of \(goals.count) goals Nagare meets \(met), GCC \(referenceMet)."
        )
        text += "\n## Goals that Nagare misses\n\n| case | goal | Nagare | GCC | bound in the tests |\n"
        text += "| --- | --- | ---: | ---: | --- |\n"
        for (row, gate) in goals where !gate.isGoalMet(row.product[gate.metric].value) {
            let unit = gate.metric.unit
            text += "| \(row.scorecardCase.name) | \(gate.goal.map(gate.text) ?? "") "
            text += "| \(unit.text(row.product[gate.metric].value)) "
            text += "| \(row.reference.map { unit.text($0[gate.metric].value) } ?? "–") "
            text += "| \(gate.text(gate.bound)) |\n"
        }
        text += """

            ## Pictures

            Blue is Nagare, orange GCC, the grey area the capacity. Thick lines are the media that arrived, thin
            ones the target rate; each subscriber has its own. Below is the queue of the bottleneck. All are runs of seed 1.


            """
        for row in rows where pictures.contains(row.scorecardCase.name) {
            let name = row.scorecardCase.name
            text += "### \(name): \(row.scorecardCase.setup)\n\n![\(name)](\(fileName(of: name)))\n\n"
        }
        text += "## All cases\n"
        for group in CaseGroup.allCases {
            text += "\n### \(group.rawValue)\n\n" + table(rows.filter { $0.scorecardCase.group == group })
        }
        return text
    }

    private static func table(_ rows: [Scoreboard.Row]) -> String {
        let columns = Metric.columns.filter { column in rows.contains { $0.scorecardCase.shows(column) } }
        let hasOthers = rows.contains { !$0.others.isEmpty }
        var text = "| case | " + columns.map { $0.name + $0.unit.suffix }.joined(separator: " | ") + " |"
        text += (hasOthers ? " others |" : "") + "\n| --- |" + String(repeating: " ---: |", count: columns.count)
        text += (hasOthers ? " --- |" : "") + "\n"
        for row in rows {
            text += "| **\(row.scorecardCase.name)** \(row.scorecardCase.setup) | "
            text += columns.map(row.cell).joined(separator: " | ") + " |"
            text += hasOthers ? " \(row.others.joined(separator: "<br>")) |\n" : "\n"
        }
        return text
    }

    private static func introduction(cases: Int, goals: String) -> String {
        """
        # Scorecard of the congestion controller

        How much a subscriber gets of its path, how long the queue is that the server makes there, and how fast it
        follows changes: \(cases) cases in virtual time, each with four seeds. A figure is the worst one of the four. A
        seed gives the same figures on every machine. `Tests/Scorecard` has the cases; `ops/test` runs them and fails
        when a figure leaves its bound. `Benchmarks/scorecard/update` writes this page. How the controller works is in
        `Sources/CongestionControl/CongestionControl.docc/Controller.md`.

        Each cell has two figures, **Nagare / GCC**. GCC is a port of Google Congestion Control, the controller of
        libwebrtc, with libwebrtc's constants. It is part of the tests only. \(goals)

        Unless a row says otherwise: one subscriber, audio of 50 kbit/s and video of up to 6 Mbit/s whose rate follows
        the target in steps of 50 kbit/s, 30 pictures a second of varying size; a base delay of 50 ms each way; a queue
        of 300 ms with tail drop; transport-wide feedback each 100 ms. `2.5 @40` is a capacity of 2.5 Mbit/s from second
        40 on.

        These cases test the controller alone. Simulcast layers and screens, whose steps are larger and whose key frames
        come in bursts, and REMB are in the [scorecard of the whole server](server.md). The controller has no weights of
        flows (case 6.1 shows that).

        | column | |
        | --- | --- |
        | U | media that arrived as a share of the capacity, without 5 s after a start and 3 s after a change |
        | Q | 95th percentile of the wait in queues, without 2 s after a step down |
        | T↑ | the longest time from a step up or the start until 80 % of the capacity arrive over 1 s; ∞: never |
        | T↓ | the longest time from a step down until the queue is below 50 ms and stays so for a second |
        | L | packets that a full queue dropped, without 2 s after a step down |
        | J | Jain's index of fairness in the last third: 1 is an equal share for all |
        | O | padding of all bytes sent |
        | A | audio packets that a full queue dropped |

        """
    }
}
