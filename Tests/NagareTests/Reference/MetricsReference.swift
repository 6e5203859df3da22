import Metrics

/// The page of all metrics, from the text of a scrape that has them all.
struct MetricsReference {
    struct Family {
        let name: String
        let help: String
        let kind: String
        /// The values of each label.
        var labels: [String: Set<String>] = [:]
    }

    let families: [Family]

    init(of page: MetricsPage) {
        var families: [Family] = []
        var help = ""
        for line in page.text.split(separator: "\n") {
            if let match = line.wholeMatch(of: /# HELP (\w+) (.*)/) {
                help = String(match.2)
            } else if let match = line.wholeMatch(of: /# TYPE (\w+) (\w+)/) {
                families.append(Family(name: String(match.1), help: help, kind: String(match.2)))
            } else {
                for label in line.matches(of: /(\w+)="([^"]*)"/) where label.1 != "le" {
                    families[families.count - 1].labels[String(label.1), default: []].insert(String(label.2))
                }
            }
        }
        self.families = families
    }

    /// The first group whose prefix a metric has is its own.
    private static let groups: [(title: String, prefix: String)] = [
        ("Clusters", "nagare_cluster_"), ("Media over TCP", "nagare_tcp_"), ("TURN", "nagare_turn_"),
        ("Webhooks and subscriptions to events", "nagare_webhook_"), ("The 1:1 relay", "nagare_ayame_"),
        ("The relay between loops", "nagare_relay_"), ("Connections, as Sora's exporter names them", "sora_"),
        ("The process", "process_"),
    ]

    /// Labels whose values depend on the node.
    private static let open = [
        "loop": "the number of the media loop, from 0", "version": "the program's version",
        "mode": "how the program was built", "compiler": "the compiler's version", "backend": "the name of the backend",
        "node": "the other node's name", "channel": "the channel's name",
    ]
    /// More values of a label are listed below the table.
    private static let valuesMax = 5

    var page: String {
        var lines: [String] = []
        var left = families
        var sections: [(title: String, families: [Family])] = []
        for group in Self.groups {
            sections.append((group.title, left.filter { $0.name.hasPrefix(group.prefix) }))
            left.removeAll { $0.name.hasPrefix(group.prefix) }
        }
        let media = left.filter { $0.labels["loop"] != nil }
        left.removeAll { $0.labels["loop"] != nil }
        for section in [("The node", left), ("Media loops", media)] + sections where !section.1.isEmpty {
            lines += ["", "## \(section.0)", "", "| Metric | Type | Meaning | Labels |", "| --- | --- | --- | --- |"]
            lines += section.1.map(row)
            lines += section.1.flatMap(longLabels)
        }
        return Markdown.page(
            "Metrics",
            "Every metric of `/metrics`, with its type, labels and meaning.",
            [
                """
                The admin address serves them in the Prometheus text format. Samples of a media loop have the label \
                `loop`: sum over it for the node. Its value is `tls` for connections of TURN over TLS that belong to no \
                media loop yet. Counters begin at 0 with the node. Metrics of TURN, TCP and clusters exist on nodes that \
                have these only. <doc:Monitoring> has alerts, probes and a dashboard.
                """
            ],
            lines
        )
    }

    private func row(_ family: Family) -> String {
        let labels = family.labels.sorted { $0.key < $1.key }.map { name, values in
            if let meaning = Self.open[name] { return name == "loop" ? "`loop`" : "`\(name)`: \(meaning)" }
            if isCloseReason(family, name) { return "`\(name)`: a close reason of <doc:SoraSDKs>" }
            return values.count > Self.valuesMax ? "`\(name)`: see below" : "`\(name)`: \(Self.list(values))"
        }
        return "| `\(family.name)` | \(family.kind) | \(family.help) | \(labels.joined(separator: "; ")) |"
    }

    private func isCloseReason(_ family: Family, _ label: String) -> Bool {
        family.name == "sora_connection_error_total" && label == "reason"
    }

    private func longLabels(_ family: Family) -> [String] {
        family.labels.sorted { $0.key < $1.key }.flatMap { name, values -> [String] in
            guard values.count > Self.valuesMax, Self.open[name] == nil else { return [] }
            return ["", "`\(name)` of `\(family.name)`: \(Self.list(values))."]
        }
    }

    private static func list(_ values: Set<String>) -> String {
        values.sorted().map { "`\($0)`" }.joined(separator: ", ")
    }
}
