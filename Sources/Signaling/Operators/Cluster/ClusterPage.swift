import Access
import Base
import ChannelTypes
import MediaTypes
import Web

/// The page of `/clusterz` for people: a table on wide screens, a card for each node on narrow ones.
enum ClusterPage {
    /// - Parameter nonce: of the style, for the response's policy.
    static func text(_ status: ClusterStatus, nonce: String) -> String {
        let nodes = [status.own] + status.others
        let known = nodes.filter { !$0.isIgnored }
        let ready = known.count { $0.state == .ready && !$0.isAbsent }
        let shared = status.roomsByNodeCount.sorted { $0.key < $1.key }
            .map { count, rooms in
                "\(rooms) \(rooms == 1 ? "room" : "rooms") on \(count) \(count == 1 ? "node" : "nodes")"
            }
            .joined(separator: ", ")
        let members = known.reduce(0) { $0 + $1.members }
        let ignored = nodes.count - known.count
        let facts = [
            "\(ready) of \(known.count) nodes ready", ignored > 0 ? "\(ignored) ignored" : "", "\(members) members",
            store(status.store), shared,
        ]
        let rows = nodes.map { row($0, isOwn: $0.incarnation == status.own.incarnation) }.joined(separator: "\n")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="refresh" content="5">
            <title>\(escaped(status.name)) – Nagare cluster</title>
            <style nonce="\(nonce)">\(style)</style>
            </head>
            <body>
            <h1>\(escaped(status.name))</h1>
            <p>\(facts.filter { !$0.isEmpty }.map(escaped).joined(separator: " · "))</p>
            <p>Seen from <b>\(escaped(status.own.name))</b>, run \(escaped(status.own.incarnation.description)).</p>
            <table>
            <thead><tr>\(columns.map { "<th scope=\"col\">\($0)</th>" }.joined())</tr></thead>
            <tbody>
            \(rows)
            </tbody>
            </table>
            </body>
            </html>

            """
    }

    private static let columns = [
        "Node", "State", "Load", "Members", "Rooms", "Link", "Round trip", "Place", "Version",
    ]

    private static func row(_ node: ClusterStatus.Node, isOwn: Bool) -> String {
        let isGood = node.state == .ready && !node.isAbsent
        let state = node.isAbsent ? "\(node.state.rawValue), absent" : node.state.rawValue
        let isLinkBad = [.down, .suspect, .refused].contains(node.link)
        let cells: [(text: String, kind: String)] = [
            (escaped(node.name) + (isOwn ? " <i>this node</i>" : "<i>\(node.incarnation)</i>"), "name"),
            (escaped(node.isIgnored ? "\(state), ignored" : state), isGood && !node.isIgnored ? "good" : "warn"),
            ("<meter min=\"0\" max=\"100\" high=\"85\" value=\"\(node.load)\"></meter> \(node.load) %", ""),
            ("\(node.members)", ""), ("\(node.rooms)", ""),
            (isOwn ? "–" : node.link?.rawValue ?? ClusterStatus.Node.noLink, isLinkBad ? "bad" : ""),
            (node.roundTrip.map(roundTrip) ?? "–", ""),
            (escaped([node.region, node.zone].filter { !$0.isEmpty }.joined(separator: " / ")), ""),
            (escaped(node.version), ""),
        ]
        let text = zip(columns, cells).map { column, cell in
            "<td data-name=\"\(column)\" class=\"\(cell.kind)\"><span>\(cell.text.isEmpty ? "–" : cell.text)</span></td>"
        }
        return "<tr>\(text.joined())</tr>"
    }

    private static func roundTrip(_ time: Interval) -> String {
        let hundredths = time.nanoseconds / 10_000
        return "\(hundredths / 100).\(hundredths % 100 / 10)\(hundredths % 10) ms"
    }

    private static func store(_ state: ClusterStatus.StoreState) -> String {
        switch state {
        case .none: "no store"
        case .up: "store up"
        case .down: "store down: calls and known rooms go on"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.printable.reduce(into: "") { escaped, character in
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.append(character)
            }
        }
    }

    /// The colours are those of the built-in page.
    private static let style = """
        :root { color-scheme: light dark; --paper: #f3f6f5; --surface: #fff; --ink: #16262b; --quiet: #54686e;
          --line: #d3dedd; --good: #18794e; --warn: #8a5a00; --bad: #b3261e;
          font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
        @media (prefers-color-scheme: dark) { :root { --paper: #0b1215; --surface: #121c21; --ink: #e4eeee;
          --quiet: #94a9ae; --line: #22323a; --good: #6fcf97; --warn: #e5b567; --bad: #ff9d94; } }
        body { margin: 0 auto; max-width: 1100px; padding: 16px; background: var(--paper); color: var(--ink); }
        h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere; }
        p { margin: 4px 0; color: var(--quiet); overflow-wrap: anywhere; }
        table { width: 100%; margin-top: 16px; border-collapse: collapse; background: var(--surface);
          border: 1px solid var(--line); }
        th { color: var(--quiet); font-weight: 500; font-size: .85rem; }
        th, td { padding: 8px 12px; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
        meter { width: 64px; }
        i { display: block; font-size: .8rem; font-style: normal; font-weight: 400; color: var(--quiet); }
        .name { font-weight: 600; white-space: normal; overflow-wrap: anywhere; }
        .good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
        @media (max-width: 800px) {
          table, tbody, tr, td { display: block; } thead { display: none; }
          table { background: none; border: 0; }
          tr { margin-bottom: 12px; padding: 4px 0; background: var(--surface); border: 1px solid var(--line);
            border-radius: 12px; }
          td { display: flex; justify-content: space-between; gap: 16px; border: 0; padding: 4px 14px;
            text-align: right; white-space: normal; overflow-wrap: anywhere; }
          td::before { flex: none; content: attr(data-name); color: var(--quiet); font-weight: 400; text-align: left; }
        }
        """
}
