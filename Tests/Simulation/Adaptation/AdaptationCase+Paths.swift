import Base
import MediaTypes
import Negotiation
import TestSupport
import Wire

@testable import Forwarding

extension AdaptationCase {
    private static let top = PictureModel.Step(layer: 2, temporal: 2)
    private static let lowest = PictureModel.Step(layer: 0, temporal: 0)

    static let paths = [stairs, manyDips, mobile, shared, lostReports, pausedVideo, soundOnly] + queues

    private static let stairs = AdaptationCase(
        "Stairs",
        "5, 3, 1.5, 0.8, 1.5, 3 and 5 Mbit/s, 10 s each",
        [.atMost("frozen", 1, "s"), .atMost("N", 8), .atMost("T back", 8, "s"), .atMost("Q", 150, "ms")],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 5_000_000)
        call.run(10)
        let fall = call.world.now
        for rate in [3_000_000, 1_500_000, 800_000, 1_500_000, 3_000_000, 5_000_000] {
            call.rate = rate
            call.run(10)
        }
        let end = call.world.now
        return [
            "frozen": (end - fall).seconds * call.picture.frozenShare(from: fall, until: end),
            "N": Double(call.picture.changeCount(from: fall, until: end)),
            "T back": call.time(to: top, after: end - .seconds(20)),
            "Q": call.link.queue95(from: fall, until: end),
        ]
    }

    private static let manyDips = AdaptationCase(
        "Dips",
        "3 Mbit/s, 0.6 for two seconds of each 20, five times",
        [
            .atMost("freeze", 1, "s", bound: 2), .atMost("T back", 5, "s", bound: 1_000),
            .atMost("N a dip", 2, bound: 4.5),
        ],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 3_000_000)
        call.run(10)
        let start = call.world.now
        var back = 0.0
        for _ in 0..<5 {
            call.rate = 600_000
            call.run(2)
            let rise = call.world.now
            call.rate = 3_000_000
            call.run(18)
            back = max(back, call.time(to: top, after: rise))
        }
        return [
            "freeze": call.picture.longestFreeze(from: start, until: call.world.now),
            "T back": back,
            "N a dip": Double(call.picture.changeCount(from: start, until: call.world.now)) / 5,
        ]
    }

    /// Each seed has another trace.
    private static let mobile = AdaptationCase(
        "Mobile",
        "0.4 to 6 Mbit/s: each second 0.6 to 1.6 times what the last one carried; RTT 80 ms, a queue of 600 ms",
        [.atMost("Z", 3, "%"), .atLeast("used", 40, "%"), .atMost("Q", 300, "ms"), .atMost("A", 0.5, "%")],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(
            seed: seed,
            fault,
            rate: 3_000_000,
            roundTrip: .milliseconds(80),
            queue: .milliseconds(600)
        )
        call.run(10)
        let start = call.world.now
        var generator = SeededGenerator(seed: seed)
        var (rate, carried) = (3e6, 0.0)
        for _ in 0..<60 {
            rate = min(max(rate * .random(in: 0.6...1.6, using: &generator), 4e5), 6e6)
            call.rate = Int(rate)
            carried += min(rate, 2_750_000)
            call.run(1)
        }
        let passed = call.link.passedRate(from: start, until: call.world.now)
        return [
            "Z": 100 * call.picture.frozenShare(from: start, until: call.world.now),
            // Of what the link carries of all that is wanted.
            "used": 100 * passed * 60 / carried,
            "Q": call.link.queue95(from: start, until: call.world.now),
            "A": call.audioLossPercent,
        ]
    }

    private static let shared = AdaptationCase(
        "Shared",
        "3 Mbit/s for two viewers behind one address, of whom one leaves after 20 s",
        [
            .atMost("Z", 1, "%", bound: 12.5), .atMost("Q", 150, "ms", bound: 305),
            .atMost("T back", 8, "s", bound: 14),
        ],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 3_000_000)
        let other = try call.world.watch(audio: [.standard(.opus)], video: [.standard(.vp8)], beside: call.viewer)
        call.world.network.conditions[other.address] = call.world.network.conditions[call.viewer.address]
        call.world.network.sharedBottlenecks[other.address] = call.viewer.address
        try call.world.connect(other, to: call.publisher)
        call.run(20)
        call.world.remove(other)
        let left = call.world.now
        call.run(20)
        return [
            "Z": 100 * call.picture.frozenShare(from: call.at(5), until: left),
            "Q": call.link.queue95(from: call.at(5), until: left),
            "T back": call.time(to: top, after: left),
        ]
    }

    /// The queues of a router at home, and of one that holds far too much.
    private static let queues = [(60, 20), (2_000, 300)].map { queue, roundTrip in
        thin(
            "Queue \(queue)",
            "3 Mbit/s, 0.8 from 20 to 40 s; RTT \(roundTrip) ms, a queue of \(queue) ms",
            .standard,
            mbits: 3,
            low: 0.8,
            roundTrip: roundTrip,
            queue: queue,
            queueSeenAfter: .seconds(5),
            [
                .atMost("frozen", 2, "s"), .atMost("T back", 8, "s"), .atMost("Q", 150, "ms"),
                .atMost("A", 0.5, "%", bound: queue < 100 ? 2.5 : nil),
            ]
        )
    }

    private static let lostReports = AdaptationCase(
        "Lost reports",
        "3 Mbit/s, 1 from 10 to 20 s; 30 % of what the viewer sends gets lost",
        [.atMost("frozen", 1.5, "s"), .atMost("T back", 8, "s", bound: 14), .atMost("Q", 150, "ms")],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 3_000_000)
        let viewer = call.viewer.address
        call.world.network.between = { from, _ in
            from == viewer ? LinkConditions(delay: .milliseconds(50), loss: 0.3) : nil
        }
        call.run(10)
        let fall = call.world.now
        call.rate = 1_000_000
        call.run(10)
        let rise = call.world.now
        call.rate = 3_000_000
        call.run(15)
        return [
            "frozen": (rise - fall).seconds * call.picture.frozenShare(from: fall, until: rise),
            "T back": call.time(to: top, after: rise),
            "Q": call.link.queue95(from: fall + .seconds(3), until: rise),
        ]
    }

    private static let pausedVideo = AdaptationCase(
        "Paused",
        "the viewer pauses its only video from 10 to 40 s; 3 Mbit/s, 0.3 from 20 to 35 s",
        [.atMost("T picture", 1, "s"), .atMost("T back", 3, "s"), .atMost("A", 0, "%")],
        failsFor: [.staysLow]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 3_000_000)
        call.run(10)
        call.choose(LayerPreference(cap: .nothing))
        call.run(10)
        call.rate = 300_000
        call.run(15)
        call.rate = 3_000_000
        call.run(5)
        let wanted = call.world.now
        call.choose(LayerPreference())
        call.run(10)
        return [
            "T picture": call.time(to: lowest, after: wanted),
            "T back": call.time(to: top, after: wanted),
            "A": call.audioLossPercent,
        ]
    }

    private static let soundOnly = AdaptationCase(
        "Sound",
        "a viewer of sound alone; 100 kbit/s, 40 from 20 to 40 s, which the sound exceeds",
        [.atMost("Q after", 20, "ms"), .atMost("L after", 0, "%")],
        failsFor: [.pauses]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 100_000, video: [])
        call.run(20)
        call.rate = 40_000
        call.run(20)
        call.rate = 100_000
        // The queue of the thin link takes this long.
        call.run(1)
        let after = call.world.now
        call.run(20)
        return [
            "Q after": call.link.queue95(from: after, until: call.world.now),
            "L after": call.link.lossPercent(from: after, until: call.world.now),
        ]
    }
}
