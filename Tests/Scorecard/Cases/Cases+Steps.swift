import TestSupport

/// Starts, steps of the capacity, outages. Source F only: cases with simulcast and screens belong to the layers above.
extension ScorecardCase {
    /// Seconds until three quarters of the demand or the link arrive, over 300 ms.
    private static func start(_ rate: Double, roundTrip: Double) -> ScorecardCase {
        ScorecardCase(
            .starts,
            "S1 \(rate.short) \(roundTrip.short)",
            "\(rate.short) Mbit/s, RTT \(roundTrip.short) ms, 2.5 wanted",
            end: 8,
            LinkSettings([(0, rate)]),
            flows: [FlowSettings(baseDelayMS: roundTrip / 2, demand: 2.5e6)],
            .goal(.time("T start", after: 0, until: 0.75 * min(rate, 2.5), span: 0.3), roundTrip > 100 ? 2 : 1),
            .goal(.queueMax(from: 0, to: 8), 150)
        )
    }

    static let starts: [ScorecardCase] = [0.3, 0.6, 1, 2.5, 5, 20].flatMap { rate in
        [20, 100, 250].map { start(rate, roundTrip: $0) }
    }

    /// 3 Mbit/s that fall to 0.7 within 40 s.
    private static let ramp: [(Double, Double)] = (0...40).map { index -> (Double, Double) in
        let second = Double(index)
        return (index == 0 ? 0 : 14 + second, 3 - 2.3 * second / 40)
    }

    static let steps: [ScorecardCase] = [
        ScorecardCase(
            .steps,
            "S2",
            "5 Mbit/s, 1 from 15 to 17 s",
            end: 40,
            LinkSettings([(0, 5), (15, 1), (17, 5)]),
            .goal(.time("T back", after: 17, until: 4), 5),
            .goal(.drain, 1.5)
        ),
        ScorecardCase(
            .steps,
            "S3",
            "10 Mbit/s, 0.8 from 15 to 30 s",
            end: 80,
            LinkSettings([(0, 10), (15, 0.8), (30, 10)]),
            .goal(.drain, 1.5),
            .goal(.time("T back", after: 30, until: 4.8), 10)
        ),
        ScorecardCase(
            .steps,
            "S4",
            "0.5 Mbit/s, 3 from 3 s on",
            end: 40,
            LinkSettings([(0, 0.5), (3, 3)]),
            .goal(.time("T up", after: 3, until: 2.4), 5)
        ),
        ScorecardCase(
            .steps,
            "S5",
            "5 Mbit/s; 150 kbit/s wanted, 4 Mbit/s from 20 s on",
            end: 40,
            LinkSettings([(0, 5)]),
            flows: [FlowSettings(demandSteps: [(0, 150_000), (20, 4e6)])],
            .goal(.time("T up", after: 20, until: 3), 3)
        ),
        ScorecardCase(
            .steps,
            "S6",
            "5 Mbit/s; 30 kbit/s wanted from 10 s on, 2.5 Mbit/s again at 70 s",
            end: 80,
            LinkSettings([(0, 5)]),
            flows: [FlowSettings(demandSteps: [(0, 2.5e6), (10, 30_000), (70, 2.5e6)])],
            .bound(.time("T up", after: 70, until: 2), 2),
            .goal(.overhead, 3)
        ),
        ScorecardCase(
            .steps,
            "S7",
            "3 Mbit/s, nothing from 20 to 26 s",
            end: 60,
            LinkSettings([(0, 3)]) { $0.outages = [20...26] },
            .goal(.time("T back", after: 26, until: 2.4), 5)
        ),
        ScorecardCase(
            .steps,
            "S10",
            "3 Mbit/s, falling to 0.7 from 15 to 55 s",
            end: 70,
            LinkSettings(ramp),
            .goal(.queue, 60)
        ),
        ScorecardCase(
            .steps,
            "S11",
            "1 Mbit/s, the base delay 10 ms, 80 from 30 s on",
            end: 70,
            LinkSettings([(0, 1)]) { $0.extraDelay = [(30, 70)] },
            flows: [FlowSettings(baseDelayMS: 10)],
            .goal(.low(from: 35, to: 70), 0.8)
        ),
        ScorecardCase(
            .steps,
            "S13",
            "6 Mbit/s; four flows, a fifth from 25 s on",
            end: 60,
            LinkSettings([(0, 6)]),
            flows: Array(repeating: FlowSettings(), count: 4) + [FlowSettings(startAt: 25)],
            .goal(.fairness, 0.97),
            .goal(.time("T of flow 5", after: 25, until: 0.8 * 6 / 5, of: 4), 3),
            .goal(.loss, 0.1)
        ),
    ]
}
