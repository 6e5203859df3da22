import Base
import Client
import MediaTypes
import Negotiation
import TestSupport
import Wire

@testable import Forwarding

extension AdaptationCase {
    /// A link that halves for two seconds, between two layers each.
    static let dips: [AdaptationCase] = [5, 1.2].map { capacity in
        AdaptationCase(
            "Dip \(AdaptationGate.text(capacity))",
            "\(AdaptationGate.text(capacity)) Mbit/s, half of it from 15 to 17 s",
            [
                .atMost("T↓", 1.5, "s", bound: 1.9), .atMost("freeze", 0.5, "s"),
                .atMost("T back", 5, "s"), .atMost("N", 2),
            ],
            failsFor: [.neverEstimates]
        ) { seed, fault in
            let call = try MeasuredCall(seed: seed, fault, rate: Int(capacity * 1e6))
            call.run(15)
            let (fall, before) = (call.world.now, call.picture.step ?? MeasuredCall.Step(layer: 2, temporal: 2))
            call.rate = Int(capacity * 5e5)
            call.run(2)
            let rise = call.world.now
            call.rate = Int(capacity * 1e6)
            call.run(13)
            return [
                "T↓": call.link.drainTime(from: fall),
                "freeze": call.picture.longestFreeze(from: fall, until: call.world.now),
                "T back": call.time(to: before, after: rise),
                "N": Double(call.picture.changeCount(from: fall, until: call.world.now)),
            ]
        }
    }

    static let screen = AdaptationCase(
        "S6",
        "5 Mbit/s; a screen of 2.5 Mbit/s, 30 kbit/s from 10 to 70 s, then a scroll with a key frame of 120 kB",
        [
            .atLeast("target min", 2.5, "Mbit/s"), .atMost("O", 3, "%"), .atMost("Q max", 100, "ms", bound: 110),
            .atMost("Z", 1, "%", bound: 4),
        ],
        failsFor: [.probesAlways, .neverPaces]
    ) { seed, fault in
        let call = try MeasuredCall(
            seed: seed,
            fault,
            rate: 5_000_000,
            source: .screen,
            preference: LayerPreference(importance: .screen)
        )
        call.run(10)
        let begin = call.world.now
        call.publisher.client?.changeVideo { $0.bitrate = 30_000 }
        call.run(60)
        let scroll = call.world.now
        call.publisher.client?.changeVideo {
            $0.bitrate = 2_500_000
            $0.keyFrameInterval = .seconds(30)
        }
        call.run(10)
        return [
            "target min": call.targetMin(from: begin, until: call.world.now),
            "O": call.paddingOfCapacityPercent,
            "Q max": call.link.queueMax(from: scroll, until: call.world.now),
            "Z": 100 * call.picture.frozenShare(from: scroll, until: call.world.now),
        ]
    }

    static let receiverEstimate = AdaptationCase(
        "S12",
        "a viewer that reports REMB and no packets; 2 Mbit/s, REMB of 1 from 20 to 30 s",
        [
            .atMost("T down", 1, "s"), .atMost("T up", 2, "s", bound: 1_000), .atMost("T picture", 5, "s"),
            .atMost("L", 0.5, "%"),
            .atMost("Z", 1, "%"),
        ],
        failsFor: [.neverEstimates, .staysLow]
    ) { seed, fault in
        var codec = CodecParameters.standard(.vp8)
        codec.feedback.remove(.transportCC)
        let call = try MeasuredCall(seed: seed, fault, rate: 2_000_000, video: [codec])
        var estimate: UInt64 = 2_000_000
        var nextReport = call.world.now
        call.onTick = { [unowned call] in
            guard call.world.now >= nextReport else { return }
            nextReport = call.world.now + .milliseconds(500)
            let sources = call.peer.slots.map(\.parameters.ssrc.rawValue)
            let report = RTCPPackets.remb(sender: 1, bitrate: estimate, sources: sources)
            call.world.sendSecured(report, isRTCP: true, from: call.viewer)
        }
        call.run(20)
        let fall = call.world.now
        let before = call.picture.step ?? MeasuredCall.Step(layer: 2, temporal: 2)
        (estimate, nextReport) = (1_000_000, fall)
        call.run(10)
        let lift = call.world.now
        (estimate, nextReport) = (2_000_000, lift)
        call.run(10)
        let low = call.samples.first { $0.at > fall && $0.target <= 1_000_000 }
        let high = call.samples.first { $0.at > lift && $0.target >= 1_800_000 }
        return [
            "T down": low.map { ($0.at - fall).seconds } ?? 1_000,
            "T up": high.map { ($0.at - lift).seconds } ?? 1_000,
            "T picture": call.time(to: before, after: lift),
            "L": call.link.lossPercent(from: call.at(3), until: call.world.now),
            "Z": 100 * call.picture.frozenShare(from: call.at(3), until: call.world.now),
        ]
    }

    static let audioFirst = AdaptationCase(
        "Audio",
        "a limit of 700 kbit/s on an empty link, RTT 100 ms; key frames each 2 s",
        [.atMost("audio delay", 65, "ms"), .atMost("A", 0, "%")],
        failsFor: [.pauses]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: nil)
        call.peer.setSendRateMax(700_000, at: call.world.now)
        call.publisher.client?.changeVideo { $0.keyFrameInterval = .seconds(2) }
        call.run(20)
        return ["audio delay": call.audioDelayMax, "A": call.audioLossPercent]
    }

    static let uplinkLoss = AdaptationCase(
        "Uplink",
        "5 % of the publisher's packets get lost on its way up; 5 Mbit/s",
        [.atLeast("target min", 2.5, "Mbit/s"), .atLeast("layer", 2)],
        failsFor: [.staysLow]
    ) { seed, fault in
        var uplink = LinkConditions(delay: .milliseconds(10))
        uplink.loss = 0.05
        let call = try MeasuredCall(seed: seed, fault, rate: 5_000_000, uplink: uplink)
        call.run(30)
        return [
            "target min": call.targetMin(from: call.at(3), until: call.world.now),
            "layer": Double(
                call.picture.changes.filter { $0.at > call.at(3) }.map(\.step.layer).min() ?? call.picture.step?.layer
                    ?? 0
            ),
        ]
    }

    static let neighbour = AdaptationCase(
        "Neighbour",
        "5 Mbit/s; another viewer of the publisher has 300 kbit/s from 10 s on",
        [.atLeast("layer", 2), .atMost("L", 0, "%"), .atMost("Z", 0, "%")],
        failsFor: [.staysLow, .pauses, .neverPaces]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 5_000_000)
        let other = try call.world.watch(audio: [.standard(.opus)], video: [.standard(.vp8)])
        call.world.network.conditions[other.address] = LinkConditions(delay: .milliseconds(50), rate: 5_000_000)
        try call.world.connect(other, to: call.publisher)
        call.run(10)
        let begin = call.world.now
        call.world.network.conditions[other.address]?.rate = 300_000
        call.run(20)
        let steps = call.picture.changes.filter { $0.at > begin }.map(\.step.layer)
        return [
            "layer": Double((steps + [call.picture.step?.layer ?? 0]).min() ?? 0),
            "L": call.link.lossPercent(from: begin, until: call.world.now),
            "Z": 100 * call.picture.frozenShare(from: begin, until: call.world.now),
        ]
    }

    static let crowd = AdaptationCase(
        "S14",
        "12 viewers with 9 pictures each join within a second, 3 Mbit/s each",
        [
            .atMost("requests", 2, "/s", bound: 3), .atMost("T first", 1.5, "s"), .atMost("A", 0.2, "%"),
            .atMost("Q", 150, "ms", bound: 185),
        ],
        failsFor: [.neverEstimates]
    ) { seed, fault in
        let call = try CrowdedCall(seed: seed, fault)
        call.run()
        return call.figures
    }
}
