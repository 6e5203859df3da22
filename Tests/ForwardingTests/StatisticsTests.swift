import Base
import MediaTypes
import Testing
import Wire

@testable import Forwarding

@Suite struct ReceiveStatisticsTests {
    private func receive(
        _ statistics: inout ReceiveStatistics,
        _ numbers: some Sequence<Int>,
        startingAt start: Int = 0
    ) {
        for number in numbers {
            statistics.receivedPacket(
                ExtendedSequenceNumber(rawValue: Int64(number)),
                RTPTimestamp(rawValue: UInt32(number * 3_000)),
                at: .ms(start + number)
            )
        }
    }

    private func takeReport(
        _ statistics: inout ReceiveStatistics
    ) throws -> (fractionLost: UInt8, cumulativeLost: Int32, highest: UInt32, jitter: UInt32) {
        let report = statistics.takeReport()
        return try #require(report)
    }

    @Test func `nothing is reported before a packet`() {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        #expect(statistics.takeReport() == nil)
        #expect(statistics.cumulativeLost == 0)
    }

    @Test func `loss is counted as in RFC 3550 appendix A.3`() throws {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, 0x1_0000..<0x1_0064)
        var report = try takeReport(&statistics)
        #expect(report.fractionLost == 0)
        #expect(report.cumulativeLost == 0)
        #expect(report.highest == 99)
        // 100 more are expected, 25 of them do not come: a quarter, 64/256.
        receive(&statistics, (0x1_0064..<0x1_00C8).filter { $0 % 4 != 1 })
        report = try takeReport(&statistics)
        #expect(report.fractionLost == 64)
        #expect(report.cumulativeLost == 25)
        #expect(report.highest == 199)
        // The fraction is of the interval alone, the sum of the whole.
        receive(&statistics, 0x1_00C8..<0x1_012C)
        report = try takeReport(&statistics)
        #expect(report.fractionLost == 0)
        #expect(report.cumulativeLost == 25)
        // Nothing in the interval is no loss, and no division by zero.
        #expect(statistics.takeReport()?.fractionLost == 0)
    }

    @Test func `late packets make an interval's loss negative, which is reported as none`() throws {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, [0x1_0000, 0x1_0001, 0x1_0004])
        #expect(statistics.takeReport()?.cumulativeLost == 2)
        receive(&statistics, [0x1_0002, 0x1_0003])
        let report = try takeReport(&statistics)
        #expect(report.fractionLost == 0)
        #expect(report.cumulativeLost == 0)
    }

    @Test func `everything lost but one packet is 255, which is not none`() throws {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, [0x1_0000])
        _ = statistics.takeReport()
        receive(&statistics, [0x1_0000 + 1_000])
        #expect(statistics.takeReport()?.fractionLost == 255)
    }

    @Test func `the highest number counts the cycles`() throws {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, [0x1_FFFF, 0x2_0000, 0x2_0003])
        #expect(statistics.takeReport()?.highest == 0x1_0003)
    }

    @Test func `a cumulative loss beyond 24 bits is clamped`() throws {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, [0x1_0000])
        statistics.receivedPacket(ExtendedSequenceNumber(rawValue: 1 << 40), RTPTimestamp(rawValue: 0), at: .ms(1))
        #expect(statistics.takeReport()?.cumulativeLost == 0x7F_FFFF)
    }

    /// Appendix A.8: J += |D| − (J + 8) >> 4 in sixteenths.
    @Test func `jitter follows RFC 3550 appendix A.8`() {
        var statistics = ReceiveStatistics(clockRate: 8_000)
        var expected = 0
        var last: Int?
        for (number, arrival) in [0, 20, 45, 60, 79, 130, 131, 140].enumerated() {
            statistics.receivedPacket(
                ExtendedSequenceNumber(rawValue: Int64(0x1_0000 + number)),
                RTPTimestamp(rawValue: UInt32(number * 160)),
                at: .ms(arrival)
            )
            let transit = arrival * 8 - number * 160
            if let last { expected += abs(transit - last) - (expected + 8) >> 4 }
            last = transit
            #expect(statistics.jitterTicks == UInt32(expected >> 4), "packet \(number)")
        }
        #expect(expected > 0)
    }

    @Test func `a timestamp that wraps or a source that begins anew is not jitter`() {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        for number in 0..<100 {
            statistics.receivedPacket(
                ExtendedSequenceNumber(rawValue: Int64(0x1_0000 + number)),
                RTPTimestamp(rawValue: UInt32.max - 4_500 &+ UInt32(number) &* 900),
                at: .ms(number * 10)
            )
        }
        #expect(statistics.jitterTicks == 0)
        statistics.receivedPacket(0x1_0064, RTPTimestamp(rawValue: 0x8000_0000), at: .ms(1_000))
        #expect(statistics.jitterTicks == 0)
    }

    @Test func `a late packet does not move the jitter`() {
        var statistics = ReceiveStatistics(clockRate: 90_000)
        receive(&statistics, [0x1_0000])
        statistics.receivedPacket(0x1_0002, RTPTimestamp(rawValue: 0x1_0000 * 3_000 + 180), at: .ms(0x1_0000 + 2))
        let before = statistics.jitterTicks
        statistics.receivedPacket(0x1_0001, RTPTimestamp(rawValue: 0), at: .ms(0x1_0000 + 500))
        #expect(statistics.jitterTicks == before)
        #expect(statistics.receivedCount == 3)
    }
}

@Suite struct ClockTests {
    @Test func `a sender's clock maps both ways around its report`() throws {
        var clock = SenderClock(clockRate: 90_000)
        #expect(!clock.isKnown)
        #expect(clock.timestamp(atSenderNanoseconds: 0) == nil)
        #expect(clock.senderNanoseconds(at: RTPTimestamp(rawValue: 0)) == nil)
        clock.receivedReport(senderNanoseconds: 5_000_000_000, timestamp: RTPTimestamp(rawValue: 1_000))
        #expect(clock.timestamp(atSenderNanoseconds: 6_000_000_000) == RTPTimestamp(rawValue: 91_000))
        #expect(clock.timestamp(atSenderNanoseconds: 4_900_000_000) == RTPTimestamp(rawValue: 0xFFFF_FFFF - 7_999))
        #expect(clock.senderNanoseconds(at: RTPTimestamp(rawValue: 91_000)) == 6_000_000_000)
        #expect(clock.senderNanoseconds(at: RTPTimestamp(rawValue: 0xFFFF_FFFF - 7_999)) == 4_900_000_000)
    }

    @Test(arguments: [Int64.min, .max, 0, -1] as [Int64], [Int64.min, .max, 0] as [Int64])
    func `no report and no time that a peer could claim traps`(report: Int64, time: Int64) {
        var clock = SenderClock(clockRate: 90_000)
        clock.receivedReport(senderNanoseconds: report, timestamp: RTPTimestamp(rawValue: .max))
        _ = clock.timestamp(atSenderNanoseconds: time)
        _ = clock.senderNanoseconds(at: RTPTimestamp(rawValue: 0x7FFF_FFFF))
        let peer = PeerClock()
        peer.receivedReport(senderNanoseconds: report, ourNanoseconds: time)
        peer.receivedReport(senderNanoseconds: time, ourNanoseconds: report)
        _ = NTPTimestamp(rawValue: UInt64(bitPattern: report)).nanoseconds
    }

    @Test func `a network time of a whole and a half second is that many nanoseconds`() {
        #expect(NTPTimestamp(rawValue: 1 << 32 | 1 << 31).nanoseconds == 1_500_000_000)
        #expect(NTPTimestamp(rawValue: .max).nanoseconds == 4_294_967_295_999_999_999)
    }

    @Test func `a peer's clock follows less delay sooner than more, and a jump at once`() {
        let clock = PeerClock()
        #expect(clock.nanoseconds == nil)
        clock.receivedReport(senderNanoseconds: 0, ourNanoseconds: 100_000_000)
        #expect(clock.nanoseconds == 100_000_000)
        clock.receivedReport(senderNanoseconds: 0, ourNanoseconds: 164_000_000)
        #expect(clock.nanoseconds == 101_000_000)
        clock.receivedReport(senderNanoseconds: 0, ourNanoseconds: 93_000_000)
        #expect(clock.nanoseconds == 100_000_000)
        clock.receivedReport(senderNanoseconds: 0, ourNanoseconds: 3_600_000_000_000)
        #expect(clock.nanoseconds == 3_600_000_000_000)
    }
}

@Suite struct DropReasonTests {
    @Test func `every reason has a label of its own that metrics can carry`() {
        let labels = DropReason.allCases.map(\.label)
        #expect(Set(labels).count == labels.count)
        for label in labels { #expect(label.allSatisfy { $0 == "_" || $0.isLowercase }, "\(label)") }
        #expect(DropReason.malformedSTUN.label == "malformed_stun")
        #expect(DropReason.srtpReplay.label == "srtp_replay")
        #expect(DropReason.malformedRTCP.label == "malformed_rtcp")
    }

    @Test func `every reason is counted in a place of its own`() {
        for reason in DropReason.allCases {
            var counters = ForwarderCounters()
            counters.drop(reason)
            for other in DropReason.allCases { #expect(counters[other] == (other == reason ? 1 : 0)) }
        }
        for reason in PeerCloseReason.allCases {
            var counters = ForwarderCounters()
            counters.close(reason)
            for other in PeerCloseReason.allCases { #expect(counters[other] == (other == reason ? 1 : 0)) }
        }
    }
}
