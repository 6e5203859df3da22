/// The scorecard as aligned text.
enum TextTable {
    static func text(_ rows: [Scoreboard.Row]) -> String {
        let header = ["case"] + Metric.columns.map { $0.name + $0.unit.suffix } + ["others", "goals missed"]
        var table = [header]
        for row in rows {
            let missed = row.missed.map { $0.goal.map($0.text) ?? "" }
            table.append(
                [row.scorecardCase.name] + Metric.columns.map(row.cell)
                    + [row.others.joined(separator: ", "), missed.joined(separator: ", ")]
            )
        }
        let widths = header.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        let lines = table.map { row in
            zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
        }
        return (["Nagare / GCC, the worst of \(ScorecardCase.seeds.count) seeds"] + lines).joined(separator: "\n")
    }
}
