import Base
import MediaTypes

@testable import Forwarding

extension AdaptationCase {
    private typealias Step = PictureModel.Step

    /// The best step of the camera's ladder that fits 0.95 of a capacity less 50 kbit/s of audio.
    private static func best(_ megabits: Double) -> (step: PictureModel.Step, name: String) {
        switch megabits {
        case ..<0.5: (PictureModel.Step(layer: 0, temporal: 2), "180p")
        case ..<0.7: (PictureModel.Step(layer: 1, temporal: 1), "360p at 15 fps")
        case ..<2: (PictureModel.Step(layer: 1, temporal: 2), "360p")
        case ..<3: (PictureModel.Step(layer: 2, temporal: 1), "720p at 15 fps")
        default: (PictureModel.Step(layer: 2, temporal: 2), "720p")
        }
    }

    static let starts: [AdaptationCase] = [0.3, 0.6, 1, 2.5, 5, 20].flatMap { capacity in
        [20, 100, 250].map { start(capacity, roundTrip: $0) }
    }

    private static func start(_ capacity: Double, roundTrip: Int) -> AdaptationCase {
        let name = "S1 \(AdaptationGate.text(capacity)) \(roundTrip)"
        // The key frame of 720p fills the queue of a link that carries two thirds of its layers.
        let isBetween = capacity == 2.5 && roundTrip >= 100
        return AdaptationCase(
            name,
            "start on \(AdaptationGate.text(capacity)) Mbit/s, RTT \(roundTrip) ms; best is \(best(capacity).name)",
            [
                .atMost("T best", roundTrip <= 100 ? 1 : 2, "s", bound: isBetween ? 5 : nil),
                .atMost(
                    "T first",
                    (Double(roundTrip) + 300) / 1_000,
                    "s",
                    bound: capacity < 0.4 ? (roundTrip < 100 ? 0.38 : roundTrip == 100 ? 0.42 : 0.5) : nil
                ),
                .atMost("Q max", 150, "ms", bound: capacity < 0.5 ? 170 : roundTrip > 100 ? 250 : nil),
            ],
            failsFor: capacity < 2 ? [.neverEstimates] : [.staysLow]
        ) { seed, fault in
            let call = try MeasuredCall(
                seed: seed,
                fault,
                rate: Int(capacity * 1e6),
                roundTrip: .milliseconds(roundTrip)
            )
            call.run(6)
            let first = call.picture.firstFrameAt.map { ($0 - call.start).seconds } ?? 1_000
            return [
                "T best": call.time(to: best(capacity).step, after: call.start),
                "T first": first,
                "Q max": call.link.queueMax(from: call.start, until: call.world.now),
            ]
        }
    }

    static let swing = AdaptationCase(
        "S8",
        "0.8 and 2.5 Mbit/s in turn, 10 s each, for 2 minutes",
        [
            .atMost("N a swing", 1, bound: 2.5), .atMost("L", 2, "%"), .atMost("Z", 1, "%", bound: 12.5),
            .atMost("Q", 150, "ms", bound: 210),
        ],
        failsFor: [.neverEstimates, .flaps]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 2_500_000)
        call.run(10)
        let begin = call.world.now
        var falls: [Range<Instant>] = []
        for swing in 0..<12 {
            call.rate = swing % 2 == 0 ? 800_000 : 2_500_000
            if swing % 2 == 0 { falls.append(call.world.now..<call.world.now + .seconds(2)) }
            call.run(10)
        }
        let end = call.world.now
        return [
            "N a swing": Double(call.picture.changeCount(from: begin, until: end)) / 12,
            "L": call.link.lossPercent(from: begin, until: end, without: falls),
            "Z": 100 * call.picture.frozenShare(from: begin, until: end),
            "Q": call.link.queue95(from: begin, until: end, without: falls),
        ]
    }

    static let between = AdaptationCase(
        "S9",
        "1.2 Mbit/s, between two layers, for 5 minutes",
        [.atMost("N a minute", 1), .atMost("O", 5, "%"), .atMost("Z", 0.5, "%"), .atMost("Q", 80, "ms")],
        failsFor: [.flaps, .probesAlways, .pauses]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 1_200_000)
        call.run(20)
        let begin = call.world.now
        call.run(280)
        return [
            "N a minute": Double(call.picture.changeCount(from: begin, until: call.world.now)) / (280 / 60),
            "O": call.overheadPercent,
            "Z": 100 * call.picture.frozenShare(from: begin, until: call.world.now),
            "Q": call.link.queue95(from: begin, until: call.world.now),
        ]
    }

    static let audio = AdaptationCase(
        "S15",
        "100 kbit/s; audio, and video of 2.5 Mbit/s wanted",
        [.atMost("A", 0.2, "%", bound: 0.5), .atMost("Q", 60, "ms", bound: 62), .atMost("layer", 0)],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 100_000)
        call.run(60)
        return [
            "A": call.audioLossPercent,
            "Q": call.link.queue95(from: call.at(5), until: call.world.now),
            "layer": Double(call.picture.changes.map(\.step.layer).max() ?? 0),
        ]
    }

    static let raisedMaximum = AdaptationCase(
        "S5",
        "5 Mbit/s; 180p is shown, and 720p is wanted from 20 s on",
        // A key frame takes 150 ms to make and 100 ms on the link.
        [.atMost("T best", 1.25, "s"), .atMost("L", 0, "%"), .atMost("Z", 0, "%")],
        failsFor: [.neverProbes, .pauses]
    ) { seed, fault in
        let call = try MeasuredCall(
            seed: seed,
            fault,
            rate: 5_000_000,
            preference: LayerPreference(cap: .level(0))
        )
        call.run(20)
        let raised = call.world.now
        call.choose(LayerPreference())
        call.run(10)
        return [
            "T best": call.time(to: best(5).step, after: raised),
            "L": call.link.lossPercent(from: raised, until: call.world.now),
            "Z": 100 * call.picture.frozenShare(from: raised, until: call.world.now),
        ]
    }
}
