import TestSupport

/// Random loss, jitter, wireless links, policers, late and lost reports. Not here: W14 and W15, as the controller does
/// not read ECN.
extension ScorecardCase {
    private static func randomLoss(_ percent: Double, goal: Double) -> ScorecardCase {
        ScorecardCase(
            .loss,
            "W1 \(percent.short) %",
            "3 Mbit/s, RTT 100 ms, \(percent.short) % random loss",
            end: 60,
            LinkSettings([(0, 3)]) { $0.loss = percent / 100 },
            .goal(.utilisation, goal)
        )
    }

    private static func gilbert(
        _ name: String,
        _ setup: String,
        _ link: LinkSettings,
        delay: Double,
        low: Double,
        rise: Double? = nil
    ) -> ScorecardCase {
        ScorecardCase(
            .loss,
            "W3 \(name)",
            setup,
            end: 40,
            link,
            flows: [FlowSettings(baseDelayMS: delay)],
            rise.map { .missed(.time("T to 5", after: 0, until: 5), goal: 3, bound: $0) }
                ?? .goal(.time("T to 5", after: 0, until: 5), 3),
            .goal(.low(from: 10, to: 40), low)
        )
    }

    /// A capacity whose logarithm walks: autoregressive per 100 ms, around 2.5 Mbit/s, 0.15 to 12.
    private static func walk(_ seed: UInt64, rho: Double, sigma: Double, queueMS: Double, outages: Int) -> LinkSettings
    {
        var generator = SeededGenerator(seed: seed &* 77 &+ 5)
        var exponent = 0.0
        let steps = (0..<1_200).map { index in
            exponent = rho * exponent + sigma * generator.normal()
            return (Double(index) / 10, min(max(2.5 * powerOfTwo(exponent), 0.15), 12))
        }
        return LinkSettings(steps) { link in
            link.isWalk = true
            link.queueMS = queueMS
            link.outages = (0..<outages).map { index in
                let at = 20 + 30 * Double(index) + 8 * generator.uniform()
                return at...at + 0.2 + 1.3 * generator.uniform()
            }
        }
    }

    /// Each 4 s arrivals wait for 100 to 500 ms.
    private static let spikes = (0..<14).map { index -> ClosedRange<Double> in
        let at = 4 + 4 * Double(index)
        return at...at + 0.1 + 0.1 * Double(index % 5)
    }

    private static func spiked(_ rate: Double) -> ScorecardCase {
        ScorecardCase(
            .loss,
            "W5 \(rate.short)",
            "\(rate.short) Mbit/s, all waits for 100 to 500 ms each 4 s",
            end: 60,
            LinkSettings([(0, rate)]) { $0.spikes = spikes },
            .goal(.utilisation, 0.75),
            .goal(.audioLoss, 0)
        )
    }

    static let lossAndJitter: [ScorecardCase] = [
        randomLoss(1, goal: 0.85), randomLoss(5, goal: 0.7), randomLoss(10, goal: 0.5), randomLoss(20, goal: 0.25),
        ScorecardCase(
            .loss,
            "W2",
            "2 Mbit/s, 1 from 20 to 40 s, 20 % random loss",
            end: 60,
            LinkSettings([(0, 2), (20, 1), (40, 2)]) { $0.loss = 0.2 },
            .missed(.dips(from: 5), goal: 1, bound: 4),
            .bound(.utilisation, 0.4)
        ),
        gilbert(
            "wifi",
            "100 Mbit/s, 5 ms σ 2 ms, loss in runs, 1 % in all",
            LinkSettings([(0, 100)]) { ($0.gilbert, $0.jitterMS, $0.queueBytes) = ((200, 2), 2, 200_000) },
            delay: 5,
            low: 4
        ),
        gilbert(
            "poor",
            "50 Mbit/s, 15 ms σ 10 ms, loss in runs, 5 %",
            LinkSettings([(0, 50)]) { ($0.gilbert, $0.jitterMS, $0.queueBytes) = ((40, 2), 10, 100_000) },
            delay: 15,
            low: 4,
            rise: 6.5
        ),
        gilbert(
            "cellular",
            "30 Mbit/s, 50 ms σ 15 ms, loss in runs, 2 %",
            LinkSettings([(0, 30)]) { ($0.gilbert, $0.jitterMS, $0.queueBytes) = ((100, 2), 15, 100_000) },
            delay: 50,
            low: 4,
            rise: 6
        ),
        gilbert(
            "congested",
            "10 Mbit/s, 80 ms σ 40 ms, loss in runs, 10 %",
            LinkSettings([(0, 10)]) { ($0.gilbert, $0.jitterMS, $0.queueBytes) = ((20, 2), 40, 50_000) },
            delay: 80,
            low: 2,
            rise: 11.5
        ),
        ScorecardCase(
            .loss,
            "W4 jitter",
            "4 Mbit/s, σ 10 ms",
            end: 60,
            LinkSettings([(0, 4)]) { $0.jitterMS = 10 },
            .goal(.utilisation, 0.8),
            .goal(.targetMin(from: 15, to: 60), 3.2)
        ),
        ScorecardCase(
            .loss,
            "W4 batch",
            "4 Mbit/s, arrivals each 30 ms",
            end: 60,
            LinkSettings([(0, 4)]) { $0.batchMS = 30 },
            .goal(.utilisation, 0.8),
            .goal(.targetMin(from: 15, to: 60), 3.2)
        ),
        spiked(2), spiked(4), spiked(5),
        ScorecardCase(
            .loss,
            "W5 single",
            "4 Mbit/s, all waits for 500 ms at 30 s",
            end: 60,
            LinkSettings([(0, 4)]) { $0.spikes = [30...30.5] },
            .goal(.time("T back", after: 30.5, until: 3.2), 2),
            .goal(.audioLoss, 0)
        ),
        ScorecardCase(
            .loss,
            "W6",
            "3 Mbit/s, σ 5 ms that reorders",
            end: 60,
            LinkSettings([(0, 3)]) { ($0.jitterMS, $0.keepsOrder) = (5, false) },
            .goal(.utilisation, 0.85)
        ),
        ScorecardCase(
            .loss,
            "W6 late",
            "3 Mbit/s, one packet in a hundred up to 40 ms late",
            end: 60,
            LinkSettings([(0, 3)]) { ($0.lateMS, $0.keepsOrder) = (40, false) },
            .goal(.utilisation, 0.85)
        ),
        ScorecardCase(
            .loss,
            "W7",
            "1 Mbit/s, a queue of three packets",
            end: 60,
            LinkSettings([(0, 1)]) { $0.queuePackets = 3 },
            .goal(.loss, 2),
            .goal(.utilisation, 0.75)
        ),
        ScorecardCase(
            .loss,
            "W8 256k",
            "5 Mbit/s policed to 256 kbit/s, bucket 16 kB",
            end: 60,
            LinkSettings([(0, 5)]) { $0.policer = (256_000, 16_384) },
            .goal(.loss(from: 10), 2),
            .goal(.policed(megabits: 0.256, from: 10), 0.8)
        ),
        ScorecardCase(
            .loss,
            "W8 1.5M",
            "5 Mbit/s policed to 1.5 Mbit/s, bucket 64 kB",
            end: 60,
            LinkSettings([(0, 5)]) { $0.policer = (1_500_000, 65_536) },
            .goal(.loss(from: 10), 2),
            .goal(.policed(megabits: 1.5, from: 10), 0.8)
        ),
        ScorecardCase(
            .loss,
            "W9",
            "LTE walk around 2.5 Mbit/s, outages of 0.2 to 1.5 s, a queue of 500 ms",
            end: 120,
            links: { [walk($0, rho: 0.98, sigma: 0.12, queueMS: 500, outages: 4)] },
            gates: [.goal(.utilisation, 0.7), .missed(.queue, goal: 150, bound: 180)]
        ),
        ScorecardCase(
            .loss,
            "W10",
            "drive around 2.5 Mbit/s, a queue of 1 s",
            end: 120,
            links: { [walk($0, rho: 0.95, sigma: 0.25, queueMS: 1_000, outages: 0)] },
            gates: [.goal(.utilisation, 0.6), .missed(.queue, goal: 200, bound: 320)]
        ),
        ScorecardCase(
            .loss,
            "W11 loss",
            "1 Mbit/s, 20 % of the reports lost, three at once",
            end: 60,
            LinkSettings([(0, 1)]),
            flows: [FlowSettings(reportLoss: (0.2, 3))],
            .goal(.utilisation, 0.8),
            .missed(.targetMin(from: 10, to: 60), goal: 0.8, bound: 0.55)
        ),
        ScorecardCase(
            .loss,
            "W11 off",
            "1 Mbit/s, no reports from 30 to 33 s",
            end: 60,
            LinkSettings([(0, 1)]),
            flows: [FlowSettings(reportsOff: 30...33)],
            .goal(.time("T back", after: 33, until: 0.8), 2),
            .bound(.targetMost(at: 32.5), 0.5)
        ),
        ScorecardCase(
            .loss,
            "W12 2 s",
            "1 Mbit/s, reports 2 s late from 30 to 40 s",
            end: 60,
            LinkSettings([(0, 1)]),
            flows: [FlowSettings(reportDelay: [(30, 2_000), (40, 0)])],
            .goal(.time("T back", after: 42, until: 0.8), 5),
            .bound(.queue, 150)
        ),
        ScorecardCase(
            .loss,
            "W12 300 s",
            "1 Mbit/s, reports 300 s late from 30 s on",
            end: 60,
            LinkSettings([(0, 1)]),
            flows: [FlowSettings(reportDelay: [(30, 300_000)])],
            .goal(.targetMost(at: 36), 0.1)
        ),
        ScorecardCase(
            .loss,
            "W13",
            "150 kbit/s",
            end: 60,
            LinkSettings([(0, 0.15)]),
            .missed(.above(megabits: 0.18), goal: 2, bound: 16),
            .bound(.queue, 110)
        ),
    ]
}
