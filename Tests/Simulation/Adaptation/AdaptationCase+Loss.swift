import TestSupport
import Wire

@testable import Forwarding

extension AdaptationCase {
    /// Loss that the rate does not make: that of a radio.
    static let losses = [
        bursts(
            percent: 2,
            [.atMost("Z", 0.5, "%", bound: 1.2), .atLeast("layer", 2), .atMost("O", 5, "%", bound: 8)]
        ),
        bursts(percent: 5, [.atMost("Z", 1, "%", bound: 1.7), .atLeast("layer", 2), .atMost("O", 15, "%")]),
    ]

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
            let viewer = call.viewer.address
            var lossy = call.world.network.conditions[viewer]
            lossy?.loss = Double(percent) / 100
            lossy?.lossLength = 4
            call.world.network.between = { [lossy] _, to in to == viewer ? lossy : nil }
            let start = call.world.now
            call.run(40)
            let layer = call.picture.changes.last { $0.at <= start }?.step.layer ?? 0
            return [
                "Z": 100 * call.picture.frozenShare(from: start, until: call.world.now),
                "layer": Double(call.picture.changes.filter { $0.at > start }.map(\.step.layer).min() ?? layer),
                "O": call.overheadPercent,
            ]
        }
    }
}
