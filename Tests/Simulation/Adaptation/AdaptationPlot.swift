import Base
import Synchronization
import TestSupport

/// A picture of one call of a case: what the link carries, what is sent and what the controller aims at, the link's queue, and what
/// the viewer sees.
enum AdaptationPlot {
    /// Takes the pictures of the calls that a run of a case makes, as they end.
    final class Recorder: Sendable {
        private let pictures = Mutex<[String]>([])
        var first: String? { pictures.withLock(\.first) }
        func add(_ picture: String) { pictures.withLock { $0.append(picture) } }
    }

    /// Of the run that is to be drawn.
    @TaskLocal static var recorder: Recorder?

    private static let (blue, orange, red) = ("#2f81f7", "#d9730d", "#d1242f")
    private static let window = Interval.milliseconds(250)

    /// The picture of a case's first call.
    static func svg(_ adaptationCase: AdaptationCase, seed: UInt64 = 1) throws -> String? {
        let recorder = Recorder()
        _ = try $recorder.withValue(recorder) { try adaptationCase.run(seed, nil) }
        return recorder.first
    }

    static func svg(_ call: MeasuredCall) -> String {
        let start = call.start
        let end = (call.world.now - start).seconds
        let samples = call.samples.filter { $0.at >= start }
        func seconds(_ at: Instant) -> Double { (at - start).seconds }
        let arrived = stride(from: window.seconds, through: end, by: window.seconds).map { second in
            (
                seconds: second,
                value: call.link.passedRate(from: call.at(second - window.seconds), until: call.at(second)) / 1e6
            )
        }
        let targets = samples.map { (seconds: seconds($0.at), value: Double($0.target) / 1e6) }
        let capacity = samples.compactMap { sample in
            sample.capacity.map { (seconds: seconds(sample.at), value: Double($0) / 1e6) }
        }
        let highest = max(arrived.map(\.value).max() ?? 0, capacity.map(\.value).max() ?? 0)
        let rates = ChartPanel(top: 30, height: 210, maximum: 1.15 * max(highest, 0.1), end: end)
        let probes = zip(samples, samples.dropFirst()).filter { $1.paddingBytes > $0.paddingBytes }
            .map { (start: seconds($0.at), end: seconds($1.at)) }

        let waits = samples.map {
            (seconds: seconds($0.at), value: call.link.queueMax(from: $0.at - MeasuredCall.tick, until: $0.at))
        }
        let queues = ChartPanel(top: 270, height: 90, maximum: max(waits.map(\.value).max() ?? 0, 50), end: end)
        let losses = samples.filter { call.link.lossPercent(from: $0.at - MeasuredCall.tick, until: $0.at) > 0 }
            .map { (start: seconds($0.at - MeasuredCall.tick), end: seconds($0.at)) }

        let layers = MeasuredCall.rids.indices.map { (value: Double($0) + 0.5, name: "layer \($0)") }
        let picture = ChartPanel(top: 390, height: 60, maximum: Double(layers.count), end: end)
        // The lower third of a layer's band is its lowest temporal layer.
        let steps = call.picture.changes.map {
            (seconds: seconds($0.at), value: Double($0.step.layer) + (Double($0.step.temporal) + 0.5) / 3)
        }
        let freezes = call.picture.freezes.map { (start: max(seconds($0.end - $0.length), 0), end: seconds($0.end)) }

        var svg = rates.area(capacity) + rates.axis("Mbit/s") + rates.bars(probes, orange, opacity: 0.35)
        svg += rates.line(targets, blue, width: 0.7, opacity: 0.7) + rates.line(arrived, blue, width: 1.8)
        svg += queues.axis("queue, ms") + queues.bars(losses, red, opacity: 0.3) + queues.line(waits, blue, width: 1)
        svg += picture.axis("picture", layers) + picture.bars(freezes, red, opacity: 0.4)
        svg += picture.line(picture.steps(steps), blue, width: 1.8) + picture.timeAxis()
        let legend = [(name: "probes", color: orange), (name: "loss, freezes", color: red)]
        return Chart.svg("A call in virtual time", height: 478, legend, svg)
    }
}
