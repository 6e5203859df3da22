import Base
import MediaTypes
import Testing
import Wire

@testable import Forwarding

// Bounds on what a peer, a receiver or another node can make the node do.

@Suite struct ViewerKeyFrameRequestTests {
    @Test func `a receiver's requests are passed on until its budget is spent, and one comes back in time`() {
        var requests = ViewerKeyFrameRequests()
        let passed = (0..<60).count { requests.take(at: .ms($0)) }
        #expect(passed == ViewerKeyFrameRequests.burst)
        #expect(requests.take(at: .ms(2_900)) == false)
        #expect(requests.take(at: .ms(3_060)) == true)
        #expect(requests.take(at: .ms(3_070)) == false)
    }

    @Test func `a request soon after one that was passed on repeats it`() {
        var requests = ViewerKeyFrameRequests()
        #expect(requests.received(at: .ms(0)) == false)
        #expect(requests.take(at: .ms(0)) == true)
        #expect(requests.received(at: .ms(499)) == true)
        #expect(requests.received(at: .ms(500)) == false)
        requests.notePassed(at: .ms(600))
        #expect(requests.received(at: .ms(700)) == true)
        #expect(requests.count == 4)
    }
}

@Suite struct DataBudgetTests {
    @Test func `only an association that holds more than its part ends when all hold too much`() {
        let budget = DataBudget()
        budget.peerCount = 4
        let part = DataBudget.heldBytesMax / 4
        budget.heldBytes = DataBudget.heldBytesMax
        #expect(!budget.exceedsHeld(part + 1))
        budget.heldBytes += 1
        #expect(budget.exceedsHeld(part + 1))
        #expect(!budget.exceedsHeld(part))
    }

    @Test func `only an association that queued more than its part queues no more when all queued too much`() {
        let budget = DataBudget()
        budget.peerCount = 4
        let part = DataBudget.queuedBytesMax / 4
        budget.queuedBytes = DataBudget.queuedBytesMax
        #expect(!budget.exceedsQueued(part + 1))
        budget.queuedBytes += 1
        #expect(budget.exceedsQueued(part + 1))
        #expect(!budget.exceedsQueued(part))
    }
}

@Suite struct DataTurnTests {
    @Test func `a turn has so many packets, and the next one follows when a peer found none`() {
        let budget = DataBudget()
        let now = Instant(nanoseconds: 1_000)
        for _ in 0..<DataBudget.packetsPerTurnMax {
            #expect(budget.hasTurn)
            budget.takePacket()
        }
        #expect(!budget.hasTurn)
        budget.turnEnded(at: now)
        #expect(budget.hasTurn && budget.nextTurnAt == nil)
        budget.addWaiting(PeerID(rawValue: 1))
        budget.turnEnded(at: now)
        #expect(budget.nextTurnAt == now + .milliseconds(1))
    }
}

@Suite struct DataCreditTests {
    @Test func `senders whose messages wait leave the others their part of the credit`() {
        let all = DataCredit(bytesMax: 100_000)
        let (busy, other) = (DataCredit(bytesMax: 200_000, parent: all), DataCredit(bytesMax: 200_000, parent: all))
        let waiting = busy.lease(bytes: 100_000)
        withExtendedLifetime(waiting) {
            #expect(!all.hasRoom && !busy.hasRoom && other.hasRoom)
            let part = other.lease(bytes: DataCredit.partBytes)
            withExtendedLifetime(part) { #expect(!other.hasRoom) }
            // All together hold twice as much at most.
            let third = DataCredit(bytesMax: 200_000, parent: all)
            #expect(third.hasRoom)
            let rest = all.lease(bytes: 100_000)
            withExtendedLifetime(rest) { #expect(!third.hasRoom) }
        }
    }

    @Test func `what was made of a message counts until it is read`() {
        let credit = DataCredit(bytesMax: 100_000)
        let lease = credit.lease(bytes: 100)
        let received = credit.bytesTaken
        do {
            let content = lease.extended(by: 99_000)
            withExtendedLifetime(content) { #expect(credit.bytesTaken == received + 99_000) }
        }
        withExtendedLifetime(lease) { #expect(credit.bytesTaken == received) }
    }
}

@Suite struct SenderSharesTests {
    @Test func `only one who sent more than an equal part, and not alone, exceeds it`() {
        var shares = SenderShares()
        shares.add(10_000, of: 1)
        #expect(!shares.exceedsPart(1), "alone")
        shares.add(100, of: 2)
        #expect(shares.exceedsPart(1) && !shares.exceedsPart(2))
        shares.add(9_900, of: 2)
        #expect(!shares.exceedsPart(1) && !shares.exceedsPart(2), "equal parts")
        #expect(!shares.exceedsPart(3))
        shares.removeAll()
        shares.add(100, of: 2)
        #expect(!shares.exceedsPart(2))
    }

    @Test func `what was long ago does not count, and no number overflows`() {
        var shares = SenderShares()
        shares.add(1 << 20, of: 1)
        for _ in 0..<30 { shares.add(20_000, of: 2) }
        #expect(shares.exceedsPart(2) && !shares.exceedsPart(1))
        for _ in 0..<100 { shares.add(.max, of: .max) }
        #expect(!shares.exceedsPart(.max), "alone by now")
        shares.add(100, of: 2)
        #expect(shares.exceedsPart(.max) && !shares.exceedsPart(2))
    }
}

@Suite struct HandshakeAllowanceTests {
    @Test func `a handshake sends no more than it may, and three bytes for each that came`() {
        var allowance = HandshakeAllowance()
        #expect(allowance.take(HandshakeAllowance.initialBytes) == true)
        #expect(allowance.take(1) == false)
        allowance.received(100)
        #expect(allowance.take(100 * HandshakeAllowance.factor + 1) == false)
        #expect(allowance.take(100 * HandshakeAllowance.factor) == true)
        #expect(allowance.take(1) == false)
    }

    @Test func `what came adds up to a bound`() {
        var allowance = HandshakeAllowance()
        for _ in 0..<100 { allowance.received(65_536) }
        #expect(allowance.take(65_537) == false)
        #expect(allowance.take(65_536) == true)
    }
}

@Suite struct MissingDatagramsTests {
    @Test func `a gap is reported three times, at intervals, and then no more`() {
        var missing = MissingDatagrams()
        missing.note(10..<13)
        #expect(missing.takeReport(at: .ms(0)).map(\.first) == [10])
        #expect(missing.takeReport(at: .ms(29)) == [])
        #expect(missing.takeReport(at: .ms(30)).map(\.count) == [3])
        #expect(missing.takeReport(at: .ms(60)).map(\.first) == [10])
        #expect(missing.isEmpty)
        #expect(missing.takeReport(at: .ms(90)) == [])
    }

    @Test func `of a gap that is too wide the newest part is asked for`() {
        var missing = MissingDatagrams()
        missing.note(1..<MissingDatagrams.gapMax + 11)
        let report = missing.takeReport(at: .ms(0))
        #expect(report.map(\.first) == [11])
        #expect(report.map { Int($0.count) } == [Int(MissingDatagrams.gapMax)])
    }

    @Test func `what came after all divides its gap`() {
        var missing = MissingDatagrams()
        missing.note(10..<15)
        #expect(missing.received(12) == true)
        #expect(missing.received(12) == false)
        #expect(missing.received(15) == false)
        #expect(missing.takeReport(at: .ms(0)).map(\.first) == [10, 13])
    }
}

@Suite struct UpgradeBackoffTests {
    /// Fails an upgrade at `second`, and tells how many seconds its like is barred for.
    private func barredSeconds(_ bar: inout UpgradeBackoff, failingAt second: Int) -> Int {
        bar.upgraded(to: 1_000_000, rate: 1_100_000, at: .ms(second * 1_000))
        bar.downgraded(from: 1_000_000, at: .ms(second * 1_000 + 1_000))
        let from = second + 1
        return (0...120).first { bar.limit(atRate: 1_100_000, at: .ms((from + $0) * 1_000)) == nil } ?? .max
    }

    @Test func `each further failure bars twice as long, up to a minute`() {
        var bar = UpgradeBackoff()
        #expect(barredSeconds(&bar, failingAt: 0) == 5)
        #expect(barredSeconds(&bar, failingAt: 10) == 10)
        #expect(barredSeconds(&bar, failingAt: 30) == 20)
        #expect(barredSeconds(&bar, failingAt: 60) == 40)
        #expect(barredSeconds(&bar, failingAt: 110) == 60)
        #expect(barredSeconds(&bar, failingAt: 180) == 60)
    }

    /// Not before five seconds: what failed is not tried again at once.
    @Test func `as many probes in a row as upgrades failed end the bar after five seconds`() {
        var bar = UpgradeBackoff()
        #expect(barredSeconds(&bar, failingAt: 0) == 5)
        #expect(barredSeconds(&bar, failingAt: 10) == 10)
        // Barred for 20 s from second 31 on.
        bar.upgraded(to: 1_000_000, rate: 1_100_000, at: .ms(30_000))
        bar.downgraded(from: 1_000_000, at: .ms(31_000))
        bar.looked(3, at: .ms(35_999))
        #expect(bar.limit(atRate: 1_100_000, at: .ms(35_999)) == 850_000)
        bar.looked(2, at: .ms(36_000))
        #expect(bar.limit(atRate: 1_100_000, at: .ms(36_000)) == 850_000)
        bar.looked(3, at: .ms(36_000))
        #expect(bar.limit(atRate: 1_100_000, at: .ms(36_000)) == nil)
    }

    @Test func `an upgrade that lasted did not fail`() {
        var bar = UpgradeBackoff()
        bar.upgraded(to: 1_000_000, rate: 1_100_000, at: .ms(0))
        bar.downgraded(from: 1_000_000, at: .ms(5_000))
        #expect(bar.limit(atRate: 1_100_000, at: .ms(5_001)) == nil)
    }

    @Test func `the bar limits the cost, until the rate is another path's`() {
        var bar = UpgradeBackoff()
        bar.upgraded(to: 1_000_000, rate: 1_000_000, at: .ms(0))
        bar.downgraded(from: 1_000_000, at: .ms(1_000))
        #expect(bar.limit(atRate: 1_199_999, at: .ms(2_000)) == 850_000)
        #expect(bar.limit(atRate: 1_200_000, at: .ms(2_000)) == nil)
    }

    @Test func `the bar falls when the bottleneck carries more than what failed`() {
        var bar = UpgradeBackoff()
        bar.upgraded(to: 1_000_000, rate: 1_000_000, at: .ms(0))
        bar.downgraded(from: 1_000_000, at: .ms(1_000))
        #expect(bar.limit(atRate: 1_000_000, bottleneck: 1_199_999, at: .ms(2_000)) == 850_000)
        #expect(bar.limit(atRate: 1_000_000, bottleneck: 1_200_000, at: .ms(2_000)) == nil)
    }
}
