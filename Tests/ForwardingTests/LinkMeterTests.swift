import Base
import MediaTypes
import Testing

@testable import Forwarding

@Suite struct LinkMeterTests {
    typealias Sample = LinkMeter.Sample
    typealias Level = LinkQuality.Level

    @Test(arguments: [
        (Sample(), Level.unknown), (Sample(roundTrip: .milliseconds(1)), .unknown),
        (Sample(fractionLost: 0), .excellent),
        (Sample(fractionLost: 0.009, roundTrip: .milliseconds(149), rateShare: 0.9), .excellent),
        (Sample(fractionLost: 0.01), .good), (Sample(fractionLost: 0.03), .poor), (Sample(fractionLost: 0.08), .bad),
        (Sample(fractionLost: 0.15), .veryBad), (Sample(fractionLost: 0.4), .disconnected),
        (Sample(fractionLost: 1), .disconnected),
        (Sample(fractionLost: 0, roundTrip: .milliseconds(150)), .good),
        (Sample(fractionLost: 0, roundTrip: .milliseconds(250)), .poor),
        (Sample(fractionLost: 0, roundTrip: .milliseconds(500)), .bad),
        (Sample(fractionLost: 0, roundTrip: .milliseconds(800)), .veryBad),
        (Sample(fractionLost: 0, roundTrip: .seconds(2)), .disconnected),
        (Sample(rateShare: 1), .excellent), (Sample(rateShare: 0.89), .good), (Sample(rateShare: 0.74), .poor),
        (Sample(rateShare: 0.49), .bad), (Sample(rateShare: 0.29), .veryBad), (Sample(rateShare: 0.09), .disconnected),
        (Sample(fractionLost: 0.02, roundTrip: .milliseconds(600), rateShare: 0.8), .bad),
        (Sample(fractionLost: 0, isSilent: true), .disconnected), (Sample(isSilent: true), .disconnected),
        (Sample(fractionLost: .infinity), .disconnected), (Sample(rateShare: -1), .disconnected),
    ])
    func `a second is as bad as the worst of its figures`(sample: Sample, level: Level) {
        #expect(LinkMeter.rating(of: sample) == level)
    }

    @Test func `there is a threshold for each level from good on, in order`() {
        let count = Level.disconnected.rawValue - Level.excellent.rawValue
        #expect(LinkMeter.fractionsLost.count == count && LinkMeter.fractionsLost.sorted() == LinkMeter.fractionsLost)
        #expect(LinkMeter.roundTrips.count == count && LinkMeter.roundTrips.sorted() == LinkMeter.roundTrips)
        #expect(LinkMeter.rateShares.count == count && LinkMeter.rateShares.sorted(by: >) == LinkMeter.rateShares)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// What each second is by itself; 7 for silence.
        let ratings: [Int]
        /// The changes of the level, by the index of the second.
        let changes: [Int: Int]
    }
    static let rows = [
        Row(testDescription: "the first second counts", ratings: [2, 2], changes: [0: 2]),
        Row(testDescription: "one bad second is nothing", ratings: [1, 5, 1, 5, 1, 1], changes: [0: 1]),
        Row(
            testDescription: "two count, as the lesser of both",
            ratings: [1, 5, 3, 5, 5],
            changes: [0: 1, 2: 3, 4: 5]
        ),
        Row(testDescription: "two good ones are too few", ratings: [4, 1, 1, 4, 1, 1], changes: [0: 4]),
        Row(
            testDescription: "three count, as the worst of them",
            ratings: [4, 1, 2, 1, 1, 1, 1],
            changes: [0: 4, 3: 2, 6: 1]
        ),
        Row(
            testDescription: "silence counts at once",
            ratings: [1, 7, 7, 0, 1],
            changes: [0: 1, 1: 6, 3: 0, 4: 1]
        ),
        Row(testDescription: "without media it is kept for a while", ratings: [1, 0, 0, 0, 2, 1], changes: [0: 1]),
        Row(
            testDescription: "and is unknown after it",
            ratings: [1] + Array(repeating: 0, count: 14),
            changes: [0: 1, 12: 0]
        ),
    ]

    @Test(arguments: rows)
    func `the level changes late enough not to flap`(row: Row) {
        var meter = LinkMeter()
        var changes: [Int: Int] = [:]
        for (second, rating) in row.ratings.enumerated() {
            let before = meter.level
            let fraction = [nil, 0, 0.02, 0.05, 0.1, 0.2, 0.5][min(rating, 6)]
            meter.rate(Sample(fractionLost: fraction, isSilent: rating == 7))
            if meter.level != before { changes[second] = meter.level.rawValue }
        }
        #expect(changes == row.changes)
    }
}
