import TestSupport

/// Queues that mark: RFC 8867 case 6.2 and L4S. Reports are those of RFC 8888, each 25 ms, with the ECN fields; GCC does without.
extension ScorecardCase {
    private static func viewer(baseDelayMS: Double) -> FlowSettings {
        FlowSettings(baseDelayMS: baseDelayMS, demand: 12e6, usesECN: true, reportMS: 25)
    }

    private static let l4s = QueueMarker.Settings(stepMS: 0.5)

    private static func l4s(
        _ name: String,
        _ megabits: Double,
        roundTripMS: Double,
        gates: [Gate]
    ) -> ScorecardCase {
        let link = LinkSettings([(0, megabits)]) { $0.aqm = l4s }
        return ScorecardCase(
            .ecn,
            "W14 \(name)",
            "\(megabits.short) Mbit/s behind DualPI2, round trip \(roundTripMS.short) ms",
            end: 60,
            links: { _ in [link] },
            flows: [viewer(baseDelayMS: roundTripMS / 2)],
            gates: gates
        )
    }

    static let ecn: [ScorecardCase] = [
        ScorecardCase(
            .ecn,
            "6.2",
            "5.1 behind a queue that marks instead of dropping (PI of 15 ms)",
            end: 100,
            LinkSettings(variable) { $0.aqm = QueueMarker.Settings() },
            flows: [viewer(baseDelayMS: 50)],
            .goal(.utilisation, 0.8),
            .bound(.queue, 80)
        ),
        l4s("2", 2, roundTripMS: 50, gates: [.goal(.utilisation, 0.75), .goal(.queue99, 20)]),
        // A packet of 1200 bytes takes 16 ms here.
        l4s(
            "0.6",
            0.6,
            roundTripMS: 100,
            gates: [.goal(.utilisation, 0.75), .missed(.queue99, goal: 20, bound: 50)]
        ),
        l4s("1", 1, roundTripMS: 100, gates: [.goal(.utilisation, 0.75), .goal(.queue99, 20)]),
        l4s("10", 10, roundTripMS: 50, gates: [.goal(.utilisation, 0.85), .goal(.queue99, 10)]),
        ScorecardCase(
            .ecn,
            "W14 steps",
            "5.1 behind DualPI2",
            end: 100,
            LinkSettings(variable) { $0.aqm = l4s },
            flows: [viewer(baseDelayMS: 25)],
            .bound(.utilisation, 0.75),
            .bound(.rise, 8),
            .bound(.drain, 1.5)
        ),
        ScorecardCase(
            .ecn,
            "W14 bleached",
            "2 Mbit/s behind DualPI2; the ECN field is cleared from 20 s on",
            end: 60,
            LinkSettings([(0, 2)]) {
                $0.aqm = l4s
                $0.bleachesFrom = 20
            },
            flows: [viewer(baseDelayMS: 25)],
            .goal(.unmarked(after: 20), 1),
            .bound(.utilisation, 0.75)
        ),
        ScorecardCase(
            .ecn,
            "W14 without AQM",
            "5.1 with ECT(1) and reports each 25 ms",
            end: 100,
            LinkSettings(variable),
            flows: [viewer(baseDelayMS: 50)],
            .goal(.utilisation, 0.88),
            .goal(.queue, 80),
            .goal(.rise, 4),
            .goal(.drain, 1.5),
            .goal(.loss, 1)
        ),
    ]
}
