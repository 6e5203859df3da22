import Base
import MediaTypes
import Negotiation
import Wire

@testable import Forwarding

extension AdaptationCase {
    /// What a camera sends.
    struct Camera {
        var bitrates: [Int]
        var hasTemporalLayers: Bool

        /// As in all cases that say nothing of it.
        static let standard = Camera(bitrates: MeasuredCall.bitrates, hasTemporalLayers: true)
        /// As `nagare load --simulcast --video-kbps 2500`.
        static let load = Camera(bitrates: [625_000, 1_250_000, 2_500_000], hasTemporalLayers: false)
        /// As Chromium sends 720p.
        static let chromium = Camera(bitrates: [149_000, 598_000, 1_799_000], hasTemporalLayers: true)

        func step(_ layer: Int) -> PictureModel.Step {
            PictureModel.Step(layer: layer, temporal: hasTemporalLayers ? 2 : 0)
        }
    }

    /// A link that is thin for 20 seconds.
    /// - Parameter settling: the time of the thin link whose queue does not count, in which what waited leaves.
    static func thin(
        _ name: String,
        _ setup: String,
        _ camera: Camera,
        mbits: Double,
        low: Double,
        roundTrip: Int = 100,
        queue: Int = 300,
        queueSeenAfter settling: Interval = .seconds(3),
        audio: CodecParameters = .standard(.opus),
        video: CodecParameters = .standard(.vp8),
        _ gates: [AdaptationGate]
    ) -> AdaptationCase {
        AdaptationCase(name, setup, gates, failsFor: [.neverEstimates]) { seed, fault in
            let call = try MeasuredCall(
                seed: seed,
                fault,
                rate: Int(mbits * 1e6),
                roundTrip: .milliseconds(roundTrip),
                queue: .milliseconds(queue),
                bitrates: camera.bitrates,
                hasTemporalLayers: camera.hasTemporalLayers,
                audio: [audio],
                video: [video]
            )
            call.run(20)
            let fall = call.world.now
            call.rate = Int(low * 1e6)
            call.run(20)
            let rise = call.world.now
            call.rate = Int(mbits * 1e6)
            call.run(20)
            return [
                "T top": call.time(to: camera.step(2), after: call.start),
                "frozen": (rise - fall).seconds * call.picture.frozenShare(from: fall, until: rise),
                "freeze": call.picture.longestFreeze(from: fall, until: rise),
                "N": Double(call.picture.changeCount(from: fall, until: rise)),
                "used": call.link.usedPercent(of: Int(low * 1e6), from: fall + .seconds(5), until: rise),
                "T picture": call.time(to: camera.step(0), after: rise),
                "T next": call.time(to: camera.step(1), after: rise),
                "T back": call.time(to: camera.step(2), after: rise),
                "Q": call.link.queue95(from: fall + settling, until: rise),
                "A": call.audioLossPercent,
            ]
        }
    }

    static let returns: [AdaptationCase] = [
        thin(
            "Return 0.6",
            "3 Mbit/s, 0.6 from 20 to 40 s: no layer of 625, 1,250 and 2,500 kbit/s fits beside the sound",
            .load,
            mbits: 3,
            low: 0.6,
            [.atMost("T picture", 3, "s"), .atMost("T next", 5, "s"), .atMost("T back", 8, "s")]
        ),
        thin(
            "Return 1",
            "the same with 1 Mbit/s: the lowest layer fits",
            .load,
            mbits: 3,
            low: 1,
            [.atMost("frozen", 1, "s"), .atMost("T next", 5, "s"), .atMost("T back", 8, "s")]
        ),
        thin(
            "Return 0.7",
            "5 Mbit/s, 0.7 from 20 to 40 s, RTT 60 ms, a queue of 200 ms; the lowest layer and the sound fill the link",
            .load,
            mbits: 5,
            low: 0.7,
            roundTrip: 60,
            queue: 200,
            [.atMost("frozen", 2, "s"), .atMost("T back", 8, "s"), .atMost("A", 0.5, "%"), .atMost("Q", 150, "ms")]
        ),
        thin(
            "Return 0.8",
            "5 Mbit/s, 0.8 from 20 to 40 s, RTT 60 ms, a queue of 200 ms; the lowest layer fits",
            .load,
            mbits: 5,
            low: 0.8,
            roundTrip: 60,
            queue: 200,
            [.atMost("frozen", 1, "s"), .atMost("N", 1), .atMost("T back", 8, "s")]
        ),
        thin(
            "Return of 720p",
            "3 Mbit/s, 0.6 from 20 to 40 s; layers of 149, 598 and 1,799 kbit/s with three temporal layers",
            .chromium,
            mbits: 3,
            low: 0.6,
            [
                .atMost("freeze", 0.8, "s"), .atLeast("used", 70, "%"), .atMost("T back", 8, "s"),
                .atMost("Q", 150, "ms"),
            ]
        ),
    ]

    /// A format of a client that does not support all that browsers do.
    private static func simple(_ name: CodecName, reports: Bool) -> CodecParameters {
        var codec = CodecParameters.standard(name)
        codec.rtxPayloadType = nil
        if !reports { codec.feedback.remove(.transportCC) }
        return codec
    }

    static let simpleClients: [AdaptationCase] = [
        thin(
            "No RTX",
            "a viewer without RTX; 5 Mbit/s, 1 from 20 to 40 s; layers of 625, 1,250 and 2,500 kbit/s",
            .load,
            mbits: 5,
            low: 1,
            video: simple(.vp8, reports: true),
            [.atMost("T top", 3, "s"), .atMost("frozen", 2, "s"), .atMost("T back", 8, "s")]
        ),
        thin(
            "Reports only",
            "the same without transport-cc: receiver reports alone",
            .load,
            mbits: 5,
            low: 1,
            audio: simple(.opus, reports: false),
            video: simple(.vp8, reports: false),
            [.atMost("T top", 2, "s"), .atMost("T back", 8, "s", bound: 20)]
        ),
    ]

    static let outage = AdaptationCase(
        "Outage",
        "3 Mbit/s; nothing arrives from 20 to 26 s; layers of 149, 598 and 1,799 kbit/s",
        [.atMost("T picture", 1, "s"), .atMost("T back", 6, "s")],
        failsFor: [.staysLow]
    ) { seed, fault in
        let call = try MeasuredCall(seed: seed, fault, rate: 3_000_000, bitrates: Camera.chromium.bitrates)
        call.run(20)
        let end = call.world.now + .seconds(6)
        call.world.network.conditions[call.viewer.address]?.outages = [call.world.now..<end]
        call.run(26)
        return [
            "T picture": call.time(to: MeasuredCall.Step(layer: 0, temporal: 0), after: end),
            "T back": call.time(to: Camera.chromium.step(2), after: end),
        ]
    }
}
