/// Bounds that libwebrtc (L) and str0m (S) test themselves against, for one flow. Not here: libwebrtc's bound of the
/// pacer's delay and those without transport feedback.
extension ScorecardCase {
    static let anchors: [ScorecardCase] = [
        ScorecardCase(
            .anchors,
            "L steps",
            "0.5 Mbit/s at 100 ms, 0.8 @25, 0.1 at 200 ms @45",
            end: 95,
            LinkSettings([(0, 0.5), (25, 0.8), (45, 0.1)]) { $0.extraDelay = [(45, 100)] },
            flows: [FlowSettings(baseDelayMS: 100)],
            .goal(.target(at: 25), 0.35),
            .goal(.targetMost(at: 25), 0.55),
            .goal(.target(at: 45), 0.6),
            .goal(.targetMost(at: 45), 0.9),
            .goal(.target(at: 95), 0.065),
            .missed(.targetMost(at: 95), goal: 0.115, bound: 0.165)
        ),
        ScorecardCase(
            .anchors,
            "L start 200k",
            "200 kbit/s, 10 ms",
            end: 10,
            LinkSettings([(0, 0.2)]),
            flows: [FlowSettings(baseDelayMS: 10)],
            .goal(.target(at: 0.5), 0.15),
            .goal(.targetMost(at: 0.5), 0.25)
        ),
        ScorecardCase(
            .anchors,
            "L start 1M",
            "1 Mbit/s, 50 ms",
            end: 10,
            LinkSettings([(0, 1)]),
            .goal(.target(at: 0.5), 0.7),
            .goal(.targetMost(at: 0.5), 1.3)
        ),
        ScorecardCase(
            .anchors,
            "L loss",
            "2 Mbit/s, 200 ms, 10 % random loss",
            end: 120,
            LinkSettings([(0, 2)]) { $0.loss = 0.1 },
            flows: [FlowSettings(baseDelayMS: 200)],
            .goal(.target(at: 119), 0.1)
        ),
        ScorecardCase(
            .anchors,
            "L TCP",
            "1 Mbit/s; TCP from 10 s on",
            end: 30,
            LinkSettings([(0, 1)]),
            transfers: [CubicSender.Settings(startAt: 10)],
            .goal(.targetMost(at: 20), 0.75)
        ),
        ScorecardCase(
            .anchors,
            "L after TCP",
            "5 Mbit/s; TCP transfer of 2 MB at 10 s",
            end: 30,
            LinkSettings([(0, 5)]),
            transfers: [CubicSender.Settings(startAt: 10, bytes: 2e6)],
            .goal(.target(at: 20), 1.5)
        ),
        ScorecardCase(
            .anchors,
            "L pause",
            "2 Mbit/s; nothing is sent from 20 to 24 s",
            end: 40,
            LinkSettings([(0, 2)]),
            flows: [FlowSettings(pauses: [20...24])],
            .goal(.targetMin(from: 20, to: 25), 1)
        ),
        ScorecardCase(
            .anchors,
            "L up",
            "0.5 Mbit/s, 3 from 3 s on",
            end: 20,
            LinkSettings([(0, 0.5), (3, 3)]),
            .goal(.target(at: 2), 0.3),
            .goal(.targetMost(at: 2), 0.65),
            .goal(.target(at: 18), 1)
        ),
        ScorecardCase(
            .anchors,
            "L 600k",
            "600 kbit/s, 100 ms",
            end: 30,
            LinkSettings([(0, 0.6)]),
            flows: [FlowSettings(baseDelayMS: 100)],
            .goal(.targetMin(from: 3, to: 30), 0.25),
            .goal(.targetMax(from: 3, to: 30), 0.7)
        ),
        ScorecardCase(
            .anchors,
            "L 2M",
            "2 Mbit/s, 50 ms",
            end: 30,
            LinkSettings([(0, 2)]),
            .goal(.targetMin(from: 3, to: 30), 1.3),
            .goal(.targetMax(from: 3, to: 30), 2.5)
        ),
        ScorecardCase(
            .anchors,
            "L 500k to 5M",
            "0.5 Mbit/s, 5 from 5 s on",
            end: 30,
            LinkSettings([(0, 0.5), (5, 5)]),
            .goal(.targetMin(from: 9, to: 30), 1.2),
            .missed(.targetMax(from: 9, to: 30), goal: 5, bound: 6)
        ),
        ScorecardCase(
            .anchors,
            "L 50M",
            "50 Mbit/s, 20 ms, 2.5 wanted",
            end: 10,
            LinkSettings([(0, 50)]),
            flows: [FlowSettings(baseDelayMS: 20, demand: 2.5e6)],
            .goal(.targetMin(from: 0.45, to: 10), 1.2)
        ),
        ScorecardCase(
            .anchors,
            "S start",
            "20 Mbit/s, 50 ms",
            end: 10,
            LinkSettings([(0, 20)]),
            .goal(.target(at: 1), 1.8)
        ),
        ScorecardCase(
            .anchors,
            "S up",
            "1 Mbit/s, 5 from 10 s on",
            end: 30,
            LinkSettings([(0, 1), (10, 5)]),
            .goal(.time("T up", after: 10, until: 4), 12)
        ),
        ScorecardCase(
            .anchors,
            "S loss",
            "5 Mbit/s, 10 % random loss",
            end: 60,
            LinkSettings([(0, 5)]) { $0.loss = 0.1 },
            .goal(.mean(from: 20, to: 60), 1)
        ),
    ]
}
