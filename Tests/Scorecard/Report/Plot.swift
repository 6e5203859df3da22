/// A picture of one case: rates above, the queue below, both controllers over time. Its colours suit light and dark
/// pages.
enum Plot {
    private struct Panel {
        var top: Double
        var height: Double
        var maximum: Double
        var end: Double

        func x(_ seconds: Double) -> Double { left + seconds / end * width }
        func y(_ value: Double) -> Double { top + height - min(value, maximum) / maximum * height }

        func path(_ points: [(Double, Double)]) -> String {
            points.map { "\(x($0).fixed(1)),\(y($1).fixed(1))" }.joined(separator: " ")
        }
    }

    private static let left = 52.0
    private static let width = 730.0
    private static let colors = ["#2f81f7", "#d9730d"]
    private static let text = "#767676"

    static func svg(_ scorecardCase: ScorecardCase, seed: UInt64 = 1) -> String {
        let runs = [ControllerKind.reference, .product].map { scorecardCase.run($0, seed: seed) }
        let capacity = capacityLine(runs[0])
        let queueMax = runs.flatMap { $0.testbed.samples.map(\.queueMS) }.max() ?? 0
        let rates = Panel(
            top: 26,
            height: 230,
            maximum: 1.25 * (capacity.map(\.1).max() ?? 1),
            end: scorecardCase.end
        )
        let queues = Panel(top: 286, height: 100, maximum: max(queueMax, 50), end: scorecardCase.end)
        var svg = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 412" font-family="sans-serif" font-size="12">
            <title>\(scorecardCase.name): \(scorecardCase.setup)</title>

            """
        svg += area(rates, capacity)
        svg += axis(rates, label: "Mbit/s") + axis(queues, label: "queue, ms")
        svg += timeAxis(queues)
        for (run, color) in zip(runs, [colors[1], colors[0]]) { svg += lines(run, color, rates, queues) }
        svg += legend()
        return svg + "</svg>\n"
    }

    private static func capacityLine(_ run: Run) -> [(Double, Double)] {
        let link = run.testbed.links[0].settings
        return stride(from: 0, through: run.end, by: 0.1).map { ($0, link.rate(at: Int64($0 * 1e6)) / 1e6) }
    }

    private static func lines(_ run: Run, _ color: String, _ rates: Panel, _ queues: Panel) -> String {
        var svg = ""
        let samples = run.testbed.samples.enumerated().filter { $0.offset % 4 == 0 }.map(\.element)
        for flow in run.testbed.flows.indices {
            let start = run.testbed.flows[flow].settings.startAt
            let seconds = stride(from: start + 0.5, through: run.end, by: 0.5)
            let arrived = seconds.map { ($0, run.arrivalsOfFlows[flow].rate(from: $0 - 0.5, to: $0) / 1e6) }
            let targets = samples.filter { Double($0.at) / 1e6 >= start }
                .map { (Double($0.at) / 1e6, $0.targets[flow] / 1e6) }
            svg += line(rates.path(targets), color, width: 0.7, opacity: 0.7)
            svg += line(rates.path(arrived), color, width: 1.8, opacity: 0.9)
        }
        return svg + line(queues.path(samples.map { (Double($0.at) / 1e6, $0.queueMS) }), color, width: 1, opacity: 0.9)
    }

    private static func line(_ points: String, _ color: String, width: Double, opacity: Double) -> String {
        "<polyline fill=\"none\" stroke=\"\(color)\" stroke-width=\"\(width)\" stroke-opacity=\"\(opacity)\" "
            + "points=\"\(points)\"/>\n"
    }

    private static func area(_ panel: Panel, _ capacity: [(Double, Double)]) -> String {
        // Only the corners of the steps.
        var points: [(Double, Double)] = [(0, 0)]
        for (seconds, rate) in capacity {
            if let last = points.last, last.1 != rate { points += [(seconds, last.1), (seconds, rate)] }
        }
        points += [(panel.end, points.last?.1 ?? 0), (panel.end, 0)]
        return "<polygon fill=\"\(text)\" fill-opacity=\"0.2\" points=\"\(panel.path(points))\"/>\n"
    }

    private static func axis(_ panel: Panel, label: String) -> String {
        var svg = "<text x=\"\(left.fixed(0))\" y=\"\((panel.top - 8).fixed(0))\" fill=\"\(text)\">\(label)</text>\n"
        for value in stride(from: 0, through: panel.maximum, by: step(panel.maximum)) {
            let y = panel.y(value)
            svg += "<line x1=\"\(left)\" x2=\"\(left + width)\" y1=\"\(y.fixed(1))\" y2=\"\(y.fixed(1))\" "
            svg += "stroke=\"\(text)\" stroke-opacity=\"0.3\"/>\n"
            svg += "<text x=\"\(left - 6)\" y=\"\((y + 4).fixed(1))\" fill=\"\(text)\" text-anchor=\"end\">"
            svg += "\(value.short)</text>\n"
        }
        return svg
    }

    private static func timeAxis(_ panel: Panel) -> String {
        var svg = ""
        for seconds in stride(from: 0, through: panel.end, by: panel.end > 60 ? 20 : 10) {
            svg += "<text x=\"\(panel.x(seconds).fixed(1))\" y=\"\((panel.top + panel.height + 18).fixed(0))\" "
            svg += "fill=\"\(text)\" text-anchor=\"middle\">\(seconds.short) s</text>\n"
        }
        return svg
    }

    private static func legend() -> String {
        var svg = ""
        for (index, name) in ["Nagare", "GCC"].enumerated() {
            let x = 640 + 80 * Double(index)
            svg += "<rect x=\"\(x)\" y=\"9\" width=\"14\" height=\"4\" fill=\"\(colors[index])\"/>\n"
            svg += "<text x=\"\(x + 20)\" y=\"15\" fill=\"\(text)\">\(name)</text>\n"
        }
        return svg
    }

    /// Three to six lines.
    private static func step(_ maximum: Double) -> Double {
        [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].first { maximum / $0 <= 6 } ?? 1_000
    }
}
