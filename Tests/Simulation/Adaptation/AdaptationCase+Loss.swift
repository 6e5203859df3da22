import Base
import TestSupport

@testable import Forwarding

extension AdaptationCase {
    /// Loss that the rate does not make: that of a radio.
    static let losses = [
        bursts(
            percent: 2,
            [.atMost("Z", 0.5, "%", bound: 0.75), .atLeast("layer", 2), .atMost("O", 5, "%", bound: 8)]
        ),
        bursts(percent: 5, [.atMost("Z", 1, "%"), .atLeast("layer", 2), .atMost("O", 15, "%")]),
        lossyJoin,
    ]

    /// The viewer comes by a path that loses packets already.
    private static let lossyJoin = AdaptationCase(
        "Bursts join",
        "a viewer joins by 5 Mbit/s, RTT 60 ms; 5 % of the packets get lost, four in a row; layers of 149, 598 and "
            + "1,300 kbit/s without temporal ones",
        [.atMost("T best", 2, "s"), .atLeast("layer", 2), .atMost("Z", 1, "%")],
        failsFor: [.staysLow]
    ) { seed, fault in
        let call = try MeasuredCall(
            seed: seed,
            fault,
            rate: 5_000_000,
            roundTrip: .milliseconds(60),
            bitrates: [149_000, 598_000, 1_300_000],
            hasTemporalLayers: false
        )
        losePackets(percent: 5, of: call)
        let start = call.world.now
        call.run(30)
        let settled = start + .seconds(5)
        return [
            "T best": call.picture.changes.first { $0.step.layer == 2 }.map { ($0.at - start).seconds } ?? .infinity,
            "layer": lowestLayer(of: call, from: settled),
            "Z": 100 * call.picture.frozenShare(from: settled, until: call.world.now),
        ]
    }

    /// Runs of four packets on average.
    private static func losePackets(percent: Int, of call: MeasuredCall) {
        let viewer = call.viewer.address
        var lossy = call.world.network.conditions[viewer]
        lossy?.loss = Double(percent) / 100
        lossy?.lossLength = 4
        call.world.network.between = { [lossy] _, to in to == viewer ? lossy : nil }
    }

    /// The lowest layer that is seen after a change, or the one that plays on.
    private static func lowestLayer(of call: MeasuredCall, from start: Instant) -> Double {
        let playing = call.picture.changes.last { $0.at <= start }?.step.layer ?? 0
        return Double(call.picture.changes.filter { $0.at > start }.map(\.step.layer).min() ?? playing)
    }

    private static func bursts(percent: Int, _ gates: [AdaptationGate]) -> AdaptationCase {
        AdaptationCase(
            "Bursts \(percent)",
            "5 Mbit/s, RTT 60 ms; \(percent) % of the packets get lost, four in a row; "
                + "layers of 149, 598 and 1,799 kbit/s without temporal ones",
            gates,
            failsFor: [.staysLow]
        ) { seed, fault in
            let call = try MeasuredCall(
                seed: seed,
                fault,
                rate: 5_000_000,
                roundTrip: .milliseconds(60),
                bitrates: Camera.chromium.bitrates,
                hasTemporalLayers: false
            )
            call.run(5)
            losePackets(percent: percent, of: call)
            let start = call.world.now
            call.run(40)
            return [
                "Z": 100 * call.picture.frozenShare(from: start, until: call.world.now),
                "layer": lowestLayer(of: call, from: start),
                "O": call.overheadPercent,
            ]
        }
    }
}
