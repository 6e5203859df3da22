import TestSupport

/// A picture of one case: rates above, the queue below, both controllers over time.
enum Plot {
    private static let colors = ["#2f81f7", "#d9730d"]

    static func svg(_ scorecardCase: ScorecardCase, seed: UInt64 = 1) -> String {
        let runs = [ControllerKind.reference, .product].map { scorecardCase.run($0, seed: seed) }
        let capacity = capacityLine(runs[0])
        let queueMax = runs.flatMap { $0.testbed.samples.map(\.queueMS) }.max() ?? 0
        let rates = ChartPanel(
            top: 26,
            height: 230,
            maximum: 1.25 * (capacity.map(\.value).max() ?? 1),
            end: scorecardCase.end
        )
        let queues = ChartPanel(top: 286, height: 100, maximum: max(queueMax, 50), end: scorecardCase.end)
        var svg = rates.area(capacity) + rates.axis("Mbit/s") + queues.axis("queue, ms") + queues.timeAxis()
        for (run, color) in zip(runs, [colors[1], colors[0]]) { svg += lines(run, color, rates, queues) }
        let legend = [(name: "Nagare", color: colors[0]), (name: "GCC", color: colors[1])]
        return Chart.svg("\(scorecardCase.name): \(scorecardCase.setup)", height: 412, legend, svg)
    }

    private static func capacityLine(_ run: Run) -> ChartPanel.Points {
        let link = run.testbed.links[0].settings
        return stride(from: 0, through: run.end, by: 0.1).map { ($0, link.rate(at: Int64($0 * 1e6)) / 1e6) }
    }

    private static func lines(_ run: Run, _ color: String, _ rates: ChartPanel, _ queues: ChartPanel) -> String {
        var svg = ""
        let samples = run.testbed.samples.enumerated().filter { $0.offset % 4 == 0 }.map(\.element)
        for flow in run.testbed.flows.indices {
            let start = run.testbed.flows[flow].settings.startAt
            let seconds = stride(from: start + 0.5, through: run.end, by: 0.5)
            let arrived = seconds.map {
                (seconds: $0, value: run.arrivalsOfFlows[flow].rate(from: $0 - 0.5, to: $0) / 1e6)
            }
            let targets = samples.filter { Double($0.at) / 1e6 >= start }
                .map { (seconds: Double($0.at) / 1e6, value: $0.targets[flow] / 1e6) }
            svg += rates.line(targets, color, width: 0.7, opacity: 0.7) + rates.line(arrived, color, width: 1.8)
        }
        let queue = samples.map { (seconds: Double($0.at) / 1e6, value: $0.queueMS) }
        return svg + queues.line(queue, color, width: 1)
    }
}
