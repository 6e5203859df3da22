import Base
import Testing
import Wire

@testable import Forwarding

@Suite struct NetworkQualityTests {
    typealias Sample = NetworkQuality.Sample

    @Test(arguments: [
        (Sample(), 0),
        (Sample(fractionLost: 0.039, roundTrip: .milliseconds(399), jitter: .milliseconds(59)), 0),
        (Sample(fractionLost: 0.04), 1), (Sample(fractionLost: 0.1), 2), (Sample(fractionLost: 0.2), 3),
        (Sample(fractionLost: 1), 3),
        (Sample(roundTrip: .milliseconds(400)), 1), (Sample(roundTrip: .milliseconds(800)), 2),
        (Sample(roundTrip: .milliseconds(1_500)), 3), (Sample(roundTrip: .seconds(29)), 3),
        (Sample(jitter: .milliseconds(60)), 1), (Sample(jitter: .milliseconds(120)), 2),
        (Sample(jitter: .milliseconds(250)), 3), (Sample(jitter: .seconds(100_000)), 3),
        (Sample(fractionLost: 0.05, roundTrip: .milliseconds(900), jitter: .milliseconds(70)), 2),
    ])
    func `a second is as bad as the worst of its figures`(sample: Sample, level: Int) {
        #expect(NetworkQuality.rating(of: sample) == level)
    }

    struct Row: Sendable {
        let name: String
        /// What each second is by itself.
        let ratings: [Int]
        /// The changes, by the index of the second.
        let changes: [Int: Int]
    }
    static let rows = [
        Row(name: "good from the start", ratings: [0, 0, 0, 0, 0, 0], changes: [:]),
        Row(name: "one bad second is nothing", ratings: [0, 3, 0, 3, 0, 0, 3], changes: [:]),
        Row(name: "two bad seconds count", ratings: [0, 2, 2, 2], changes: [2: 2]),
        Row(name: "as the lesser of both", ratings: [3, 1, 3, 3], changes: [1: 1, 3: 3]),
        Row(name: "worse and worse", ratings: [1, 1, 2, 2, 3, 3], changes: [1: 1, 3: 2, 5: 3]),
        Row(name: "four good seconds are too few", ratings: [2, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0], changes: [1: 2]),
        Row(name: "five are", ratings: [2, 2, 0, 0, 0, 0, 0, 0], changes: [1: 2, 6: 0]),
        Row(
            name: "as the worst of them",
            ratings: [3, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            changes: [1: 3, 6: 1, 11: 0]
        ),
        Row(
            name: "a worse one begins it anew",
            ratings: [1, 1, 0, 0, 3, 0, 0, 0, 0, 0],
            changes: [1: 1, 9: 0]
        ),
    ]

    @Test(arguments: rows)
    func `the level changes late enough not to flap`(row: Row) {
        var quality = NetworkQuality()
        var changes: [Int: Int] = [:]
        for (second, rating) in row.ratings.enumerated() {
            changes[second] = quality.rate(Sample(fractionLost: [0, 0.05, 0.15, 0.5][rating]))
        }
        #expect(changes == row.changes, "\(row.name)")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `whatever the figures, a change for the better is five seconds after the last change`(seed: UInt64) {
        var state = seed
        var quality = NetworkQuality()
        var changes: [(second: Int, level: Int)] = [(-5, 0)]
        for second in 0..<2_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let fraction = [0, 0, 0.05, 0.15, 0.5, .infinity][Int(state >> 33) % (2 + Int(seed % 5))]
            guard let level = quality.rate(Sample(fractionLost: fraction)) else { continue }
            let last = changes[changes.count - 1]
            #expect(level != last.level && second - last.second >= (level > last.level ? 2 : 5))
            changes.append((second, level))
        }
    }

    // MARK: - Reports

    private let now = Instant(nanoseconds: 1_000_000_000)

    private func block(_ highest: UInt32, lost: Int32) -> ReportBlock {
        ReportBlock(ssrc: SSRC(rawValue: 1), cumulativeLost: lost, highestSequence: highest)
    }

    private func tally(_ reports: SlotReports) -> PacketTally {
        var tally = PacketTally()
        reports.add(to: &tally)
        return tally
    }

    @Test func `what was lost on the way is counted, what the source lost is not`() {
        var reports = SlotReports()
        reports.received(block(1_000, lost: 10), packetsSent: 500)
        reports.measure(at: now)
        #expect(tally(reports).sent == 0 && !reports.areFresh(at: now), "one report alone says nothing")
        reports.received(block(1_100, lost: 20), packetsSent: 600)
        reports.measure(at: now)
        #expect(tally(reports).fractionLost == 0.1)
        // Of 100 numbers 90 were sent, and all of them arrived.
        reports.received(block(1_200, lost: 30), packetsSent: 690)
        reports.measure(at: now)
        #expect(tally(reports).sent == 90 && tally(reports).lost == 0)
        // Of 100 numbers 90 were sent, and 80 of them arrived.
        reports.received(block(1_300, lost: 50), packetsSent: 780)
        reports.measure(at: now)
        #expect(tally(reports).sent == 90 && tally(reports).lost == 10)
        // Receivers of audio do not report every second.
        reports.measure(at: now + .seconds(5))
        #expect(tally(reports).lost == 10 && reports.areFresh(at: now + .seconds(5)))
        #expect(!reports.areFresh(at: now + .seconds(8)))
    }

    @Test func `reports of any figures give a fraction from 0 to 1`() {
        var reports = SlotReports()
        let highest: [UInt32] = [0, .max, 1, 0x8000_0000, 2]
        let lost: [Int32] = [0, .min, .max, -1]
        let sent: [UInt32] = [0, .max, 100]
        for highest in highest {
            for lost in lost {
                for sent in sent {
                    reports.received(block(highest, lost: lost), packetsSent: sent)
                    reports.measure(at: now)
                    #expect((0...1).contains(tally(reports).fractionLost))
                }
            }
        }
    }

    @Test func `a few packets say nothing, and those of several streams are taken together`() {
        var tally = PacketTally()
        tally.add(sent: 19, lost: 19)
        #expect(tally.fractionLost == 0)
        tally.add(sent: 0, lost: 50)
        tally.add(sent: -5, lost: 3)
        tally.add(sent: 171, lost: -4)
        #expect(tally.fractionLost == 0.1)
    }
}
