/// RFC 8867 section 5 for one subscriber or several on one link. 6.2 is among the cases of ECN.
extension ScorecardCase {
    /// 5.1: 1 Mbit/s, from 40 s on 2.5, from 60 s on 0.6, from 80 s on 1.
    static let variable = [(0, 1), (40, 2.5), (60, 0.6), (80, 1)] as [(Double, Double)]
    private static let variableText = "1 Mbit/s, 2.5 @40, 0.6 @60, 1 @80"
    private static let fairnessDelays = [10.0, 25, 50, 100, 150]

    static let rfc8867: [ScorecardCase] = [
        ScorecardCase(
            .rfc8867,
            "5.1",
            variableText,
            end: 100,
            LinkSettings(variable),
            .goal(.utilisation, 0.88),
            .goal(.queue, 80),
            .goal(.rise, 4),
            .goal(.drain, 1.5),
            .goal(.loss, 1)
        ),
        ScorecardCase(
            .rfc8867,
            "5.1 d100",
            "the same with a base delay of 100 ms",
            end: 100,
            LinkSettings(variable),
            flows: [FlowSettings(baseDelayMS: 100)],
            .goal(.utilisation, 0.88),
            .goal(.queue, 80),
            .goal(.rise, 4),
            .goal(.drain, 1.5),
            .goal(.loss, 1)
        ),
        ScorecardCase(
            .rfc8867,
            "5.2",
            "two flows; 4 Mbit/s, 2 @25, 3.5 @50, 1 @75, 2 @100",
            end: 125,
            LinkSettings([(0, 4), (25, 2), (50, 3.5), (75, 1), (100, 2)]),
            flows: [FlowSettings(), FlowSettings()],
            .goal(.utilisation, 0.88),
            .goal(.fairness, 0.95),
            .goal(.rise, 5),
            .goal(.queue, 100)
        ),
        ScorecardCase(
            .rfc8867,
            "5.3",
            "a flow each way, reports in the other's queue; 2 Mbit/s, 1 @20, 0.5 @40, 2 @60; back 2, 0.8 @35, 2 @70",
            end: 100,
            links: { _ in
                [
                    LinkSettings([(0, 2), (20, 1), (40, 0.5), (60, 2)]),
                    LinkSettings([(0, 2), (35, 0.8), (70, 2)]),
                ]
            },
            flows: [
                FlowSettings(route: [0], reportRoute: [1]),
                FlowSettings(route: [1], reportRoute: [0]),
            ],
            gates: [
                .goal(.utilisation, 0.85), .goal(.rise, 5), .goal(.secondUtilisation, 0.85), .goal(.secondRise, 5),
                .goal(.audioLoss, 0.5),
            ]
        ),
        ScorecardCase(
            .rfc8867,
            "5.4",
            "3.5 Mbit/s; flows from 0, 20 and 40 s",
            end: 120,
            LinkSettings([(0, 3.5)]),
            flows: [FlowSettings(), FlowSettings(startAt: 20), FlowSettings(startAt: 40)],
            .goal(.fairness, 0.95),
            .goal(.time("T of flow 2", after: 20, until: 0.8 * 1.75, of: 1), 10),
            .goal(.time("T of flow 3", after: 40, until: 0.8 * 3.5 / 3, of: 2), 10),
            .goal(.queue, 100)
        ),
        ScorecardCase(
            .rfc8867,
            "5.5",
            "4 Mbit/s; five flows of base delays 10, 25, 50, 100, 150 ms from 0, 10, 20, 30, 40 s",
            end: 300,
            LinkSettings([(0, 4)]),
            flows: fairnessDelays.enumerated().map { FlowSettings(startAt: 10 * Double($0), baseDelayMS: $1) },
            .goal(.fairness, 0.90)
        ),
        ScorecardCase(
            .rfc8867,
            "5.6",
            "2 Mbit/s; TCP from 0, media from 5 s",
            end: 120,
            LinkSettings([(0, 2)]),
            flows: [FlowSettings(startAt: 5)],
            transfers: [CubicSender.Settings()],
            .goal(.share(from: 20), 0.30),
            .goal(.shareMost(from: 20), 0.65),
            .goal(.audioLoss, 1)
        ),
        ScorecardCase(
            .rfc8867,
            "5.6 q1000",
            "the same with a queue of 1 s",
            end: 120,
            LinkSettings([(0, 2)]) { $0.queueMS = 1_000 },
            flows: [FlowSettings(startAt: 5)],
            transfers: [CubicSender.Settings()],
            .goal(.share(from: 20), 0.20),
            .goal(.shareMost(from: 20), 0.65),
            .goal(.audioLoss, 1)
        ),
        ScorecardCase(
            .rfc8867,
            "5.6 ends",
            "2 Mbit/s; media from 0, TCP transfer of 5 MB at 40 s",
            end: 120,
            LinkSettings([(0, 2)]),
            transfers: [CubicSender.Settings(startAt: 40, bytes: 5e6)],
            .bound(.emptyAfterTransfer, 1),
            .bound(.afterTransfer(until: 1.6), 5)
        ),
        ScorecardCase(
            .rfc8867,
            "5.7",
            "2 Mbit/s; two flows from 5 s, ten TCP senders of 100 kB to 1 MB, idle 10 s on average",
            end: 300,
            LinkSettings([(0, 2)]),
            flows: [FlowSettings(startAt: 5), FlowSettings(startAt: 5)],
            transfers: Array(repeating: CubicSender.Settings(repeats: true), count: 10),
            .goal(.share(from: 10), 0.55),
            .goal(.fairness, 0.9)
        ),
        ScorecardCase(
            .rfc8867,
            "5.8",
            "3.5 Mbit/s; three flows, the second silent from 40 to 60 s",
            end: 120,
            LinkSettings([(0, 3.5)]),
            flows: [FlowSettings(), FlowSettings(pauses: [40...60]), FlowSettings()],
            .goal(.time("T others", after: 40, until: 0.8 * 3.5), 5),
            .goal(.time("T back", after: 60, until: 0.8 * 3.5 / 3, of: 1), 5),
            .goal(.utilisation, 0.85)
        ),
        ScorecardCase(
            .rfc8867,
            "6.1",
            "2 Mbit/s; two flows whose shares should be 2 to 1",
            end: 60,
            LinkSettings([(0, 2)]),
            flows: [FlowSettings(), FlowSettings()],
            .missed(.ratio(from: 20), goal: 1.6, bound: 0.7),
            .goal(.utilisation, 0.85)
        ),
        ScorecardCase(
            .rfc8867,
            "6.3",
            "links of 2 and 1 Mbit/s; a flow over both, one over each",
            end: 100,
            links: { _ in [LinkSettings([(0, 2)]), LinkSettings([(0, 1)])] },
            flows: [FlowSettings(route: [0, 1]), FlowSettings(route: [0]), FlowSettings(route: [1])],
            gates: [.goal(.utilisation, 0.8), .goal(.secondUtilisation, 0.8)]
        ),
    ]

    // MARK: - Sweeps

    private static func sweep(
        _ name: String,
        _ setup: String,
        flow: FlowSettings = FlowSettings(),
        _ change: (inout LinkSettings) -> Void = { _ in },
        gates: [Gate]
    ) -> ScorecardCase {
        let link = LinkSettings(variable, change)
        return ScorecardCase(
            .sweeps,
            "5.1 \(name)",
            "5.1 with \(setup)",
            end: 100,
            links: { _ in [link] },
            flows: [flow],
            gates: gates
        )
    }

    private static let steady = [Gate.bound(.utilisation, 0.85), .bound(.queue, 80), .bound(.drain, 2)]

    static let sweeps: [ScorecardCase] = [
        sweep("d1", "a base delay of 1 ms", flow: FlowSettings(baseDelayMS: 1), gates: steady),
        sweep("d150", "a base delay of 150 ms", flow: FlowSettings(baseDelayMS: 150), gates: steady),
        sweep("d300", "a base delay of 300 ms", flow: FlowSettings(baseDelayMS: 300), gates: steady),
        sweep("l1", "1 % random loss", { $0.loss = 0.01 }, gates: steady),
        sweep("l5", "5 % random loss", { $0.loss = 0.05 }, gates: steady),
        sweep("l10", "10 % random loss", { $0.loss = 0.1 }, gates: [.bound(.utilisation, 0.7), .bound(.queue, 80)]),
        sweep("l20", "20 % random loss", { $0.loss = 0.2 }, gates: [.bound(.utilisation, 0.45), .bound(.queue, 80)]),
        sweep("q70", "a queue of 70 ms", { $0.queueMS = 70 }, gates: steady + [.bound(.loss, 1)]),
        sweep(
            "q1000",
            "a queue of 1 s",
            { $0.queueMS = 1_000 },
            gates: [.bound(.utilisation, 0.85), .bound(.queue, 80), .bound(.drain, 3.5)]
        ),
        sweep("r50", "reports each 50 ms", flow: FlowSettings(reportMS: 50), gates: steady),
        sweep("r25", "reports each 25 ms", flow: FlowSettings(reportMS: 25), gates: steady),
        ScorecardCase(
            .sweeps,
            "wired CBR",
            "1 Mbit/s; 300 kbit/s of constant rate from 40 to 80 s",
            end: 120,
            LinkSettings([(0, 1)]),
            constants: [Testbed.ConstantSender(from: 40, to: 80, rate: 300_000)],
            .bound(.mean(from: 50, to: 80), 0.6),
            .bound(.queue, 80),
            .bound(.time("T back", after: 80, until: 0.9), 5),
            .bound(.audioLoss, 0.5)
        ),
        ScorecardCase(
            .sweeps,
            "wired TCP",
            "1 Mbit/s; TCP from 40 to 80 s",
            end: 120,
            LinkSettings([(0, 1)]),
            transfers: [CubicSender.Settings(startAt: 40, endAt: 80)],
            .bound(.mean(from: 50, to: 80), 0.3),
            .bound(.time("T back", after: 80, until: 0.9), 5),
            .bound(.audioLoss, 1)
        ),
    ]
}
