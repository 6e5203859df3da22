import Base
import MediaTypes
import Testing
import Wire

@testable import Forwarding

@Suite struct NACKTrackerTests {
    private func requests(_ tracker: inout NACKTracker, at now: Instant) -> (lost: [UInt16], gaveUp: Bool) {
        var lost: [SequenceNumber] = []
        let requests = tracker.takeRequests(at: now, into: &lost)
        #expect(requests.asked == lost.count)
        return (lost.map(\.rawValue), requests.gaveUp > 0)
    }

    @Test(arguments: [false, true])
    func `a packet that is given up needs a key frame unless one began after it`(hasKeyFrame: Bool) {
        var tracker = NACKTracker()
        _ = tracker.received(10, at: .ms(0))
        _ = tracker.received(12, at: .ms(0))
        if hasKeyFrame {
            _ = tracker.received(13, at: .ms(1))
            tracker.keyFrameBegan(at: 13)
        }
        var given = NACKTracker.Requests()
        for round in 0..<20 where given.gaveUp == 0 {
            var lost: [SequenceNumber] = []
            given = tracker.takeRequests(at: .ms(1_000 * round), into: &lost)
        }
        #expect(given == NACKTracker.Requests(gaveUp: 1, wantsKeyFrame: !hasKeyFrame))
    }

    @Test func `an unbroken stream asks for nothing`() {
        var tracker = NACKTracker()
        for number in 65_500..<65_600 {
            #expect(tracker.received(ExtendedSequenceNumber(rawValue: Int64(number)), at: .ms(number)) == .inOrder)
        }
        #expect(tracker.nextDeadline == nil)
        #expect(requests(&tracker, at: .ms(1_000_000)).lost.isEmpty)
    }

    @Test func `a gap is asked for after the reordering tolerance, across the wrap`() {
        var tracker = NACKTracker()
        _ = tracker.received(65_534, at: .ms(0))
        #expect(tracker.received(65_538, at: .ms(1)) == .inOrder)
        #expect(tracker.nextDeadline == .ms(1) + NACKTracker.reorderingTolerance)
        #expect(requests(&tracker, at: .ms(5)).lost.isEmpty)
        #expect(requests(&tracker, at: .ms(6)).lost == [65_535, 0, 1])
    }

    @Test func `a packet that was only reordered is not asked for`() {
        var tracker = NACKTracker()
        _ = tracker.received(10, at: .ms(0))
        _ = tracker.received(12, at: .ms(1))
        #expect(tracker.received(11, at: .ms(3)) == .recovered)
        #expect(tracker.missing.count == 0)
        #expect(tracker.nextDeadline == nil)
    }

    @Test func `a request is repeated after the round trip and no sooner`() {
        var tracker = NACKTracker()
        _ = tracker.received(10, at: .ms(0))
        _ = tracker.received(12, at: .ms(0))
        #expect(requests(&tracker, at: .ms(5)).lost == [11])
        #expect(requests(&tracker, at: .ms(20)).lost.isEmpty)
        #expect(requests(&tracker, at: .ms(105)).lost == [11])
        #expect(tracker.received(11, at: .ms(150)) == .recovered)
        #expect(requests(&tracker, at: .ms(1_000)).lost.isEmpty)
    }

    @Test func `a short measured round trip shortens the wait`() {
        var tracker = NACKTracker()
        var now = 0
        for round in 0..<40 {
            _ = tracker.received(ExtendedSequenceNumber(rawValue: Int64(round * 2)), at: .ms(now))
            _ = tracker.received(ExtendedSequenceNumber(rawValue: Int64(round * 2 + 2)), at: .ms(now))
            #expect(requests(&tracker, at: .ms(now + 5)).lost.count == 1)
            _ = tracker.received(ExtendedSequenceNumber(rawValue: Int64(round * 2 + 1)), at: .ms(now + 15))
            now += 100
        }
        _ = tracker.received(82, at: .ms(now))
        _ = requests(&tracker, at: .ms(now + 5))
        #expect(requests(&tracker, at: .ms(now + 26)).lost.count == 1)
    }

    @Test func `after ten requests a packet is given up and never asked for again`() {
        var tracker = NACKTracker()
        _ = tracker.received(1, at: .ms(0))
        _ = tracker.received(3, at: .ms(0))
        var asked = 0
        var gaveUp = false
        for now in stride(from: 0, through: 5_000, by: 5) where !gaveUp {
            let (lost, given) = requests(&tracker, at: .ms(now))
            asked += lost.count
            gaveUp = given
        }
        #expect(asked == NACKTracker.attemptsMax)
        #expect(gaveUp)
        #expect(tracker.nextDeadline == nil)
        #expect(tracker.received(2, at: .ms(6_000)) == .late)
    }

    @Test func `a gap too wide is not asked for and clears what was missing`() {
        var tracker = NACKTracker()
        _ = tracker.received(100, at: .ms(0))
        _ = tracker.received(103, at: .ms(0))
        #expect(
            tracker.received(ExtendedSequenceNumber(rawValue: 104 + Int64(NACKTracker.missingMax)), at: .ms(1))
                == .gapTooWide
        )
        #expect(tracker.missing.count == 0)
        #expect(tracker.nextDeadline == nil)
    }

    @Test func `the widest gap that is asked for stays within the bound`() {
        var tracker = NACKTracker()
        _ = tracker.received(0, at: .ms(0))
        #expect(
            tracker.received(ExtendedSequenceNumber(rawValue: Int64(NACKTracker.missingMax) + 1), at: .ms(0))
                == .inOrder
        )
        #expect(tracker.missing.count == NACKTracker.missingMax)
        #expect(
            tracker.received(ExtendedSequenceNumber(rawValue: Int64(NACKTracker.missingMax) + 3), at: .ms(0))
                == .gapTooWide
        )
    }

    @Test func `a start that was overtaken by its own second packet is asked for in between`() {
        var tracker = NACKTracker()
        _ = tracker.received(105, at: .ms(0))
        #expect(tracker.received(102, at: .ms(1)) == .late)
        #expect(requests(&tracker, at: .ms(10)).lost == [103, 104])
        // Far before the start is another life of the stream.
        #expect(tracker.received(1, at: .ms(11)) == .late)
        #expect(tracker.missing.count == 2)
    }

    @Test func `duplicates change nothing`() {
        var tracker = NACKTracker()
        _ = tracker.received(1, at: .ms(0))
        _ = tracker.received(2, at: .ms(0))
        #expect(tracker.received(2, at: .ms(1)) == .late)
        #expect(tracker.received(1, at: .ms(1)) == .late)
        #expect(tracker.missing.count == 0)
    }
}

@Suite struct KeyFrameRequesterTests {
    @Test func `repairs wait for their budget, and who has no picture does not`() {
        var requester = KeyFrameRequester()
        var sent = 0
        var waited = 0
        for step in 0..<6_000 {
            let now = Instant.ms(step * 10)
            if !requester.wantRepair(at: now) { waited += 1 }
            if requester.takeRequest(at: now) {
                sent += 1
                requester.receivedKeyFrame(at: now)
            }
        }
        #expect(sent <= KeyFrameRequester.repairsBurst + 60 / 2)
        #expect(sent >= 30)
        #expect(waited > 5_000)
        requester.want(at: .ms(60_500))
        #expect(requester.takeRequest(at: .ms(60_500)) == true)
    }

    @Test func `a repair that waits is asked for when the budget allows for it`() throws {
        var requester = KeyFrameRequester()
        for step in 0..<KeyFrameRequester.repairsBurst {
            let now = Instant.ms(step * 500)
            #expect(requester.wantRepair(at: now) == true)
            #expect(requester.takeRequest(at: now) == true)
            requester.receivedKeyFrame(at: now)
        }
        #expect(requester.nextDeadline == nil)
        #expect(requester.wantRepair(at: .ms(1_900)) == false)
        let due = try #require(requester.nextDeadline)
        #expect(due == .ms(2_000))
        #expect(requester.takeRequest(at: .ms(1_999)) == false)
        #expect(requester.takeRequest(at: due) == true)
        requester.receivedKeyFrame(at: due)
        #expect(requester.nextDeadline == nil)
    }

    @Test func `a first wish is granted at once, and only once`() {
        var requester = KeyFrameRequester()
        #expect(requester.nextDeadline == nil)
        #expect(requester.takeRequest(at: .ms(0)) == false)
        requester.want(at: .ms(10))
        requester.want(at: .ms(10))
        #expect(requester.nextDeadline == .ms(10))
        #expect(requester.takeRequest(at: .ms(10)) == true)
        #expect(requester.takeRequest(at: .ms(10)) == false)
        #expect(requester.takeRequest(at: .ms(509)) == false)
        #expect(requester.takeRequest(at: .ms(510)) == true)
    }

    @Test func `a key frame ends the asking`() {
        var requester = KeyFrameRequester()
        requester.want(at: .ms(0))
        _ = requester.takeRequest(at: .ms(0))
        requester.receivedKeyFrame(at: .ms(80))
        #expect(requester.nextDeadline == nil)
        #expect(requester.takeRequest(at: .ms(1_000)) == false)
    }

    @Test(arguments: [30, 100, 199])
    func `two requests are never closer than the spacing`(second: Int) {
        var requester = KeyFrameRequester()
        requester.want(at: .ms(0))
        #expect(requester.takeRequest(at: .ms(0)) == true)
        requester.want(at: .ms(second))
        #expect(requester.takeRequest(at: .ms(499)) == false)
        #expect(requester.takeRequest(at: .ms(500)) == true)
    }

    @Test(arguments: [30, 100, 199])
    func `after an answer the next need waits the shorter spacing`(second: Int) {
        var requester = KeyFrameRequester()
        requester.want(at: .ms(0))
        #expect(requester.takeRequest(at: .ms(0)) == true)
        requester.receivedKeyFrame(at: .ms(20))
        requester.want(at: .ms(second))
        #expect(requester.takeRequest(at: .ms(349)) == false)
        #expect(requester.takeRequest(at: .ms(350)) == true)
    }

    @Test func `a source that never answers is left in peace until the next wish`() {
        var requester = KeyFrameRequester()
        requester.want(at: .ms(0))
        var sent = 0
        for now in stride(from: 0, through: 60_000, by: 100) where requester.takeRequest(at: .ms(now)) { sent += 1 }
        #expect(sent == KeyFrameRequester.attemptsMax)
        #expect(requester.nextDeadline == nil)
        requester.want(at: .ms(61_000))
        #expect(requester.takeRequest(at: .ms(61_000)) == true)
    }

    @Test func `a wish that comes every frame does not ask faster than the spacing`() {
        var requester = KeyFrameRequester()
        var sent = 0
        for now in stride(from: 0, to: 10_000, by: 33) {
            requester.want(at: .ms(now))
            if requester.takeRequest(at: .ms(now)) { sent += 1 }
        }
        #expect((15...20).contains(sent))
    }
}

@Suite struct RetransmissionLimiterTests {
    private func number(_ value: Int) -> SequenceNumber { SequenceNumber(rawValue: UInt16(truncatingIfNeeded: value)) }

    @Test func `a packet is repeated at most ten times, never twice within ten milliseconds`() {
        var limiter = RetransmissionLimiter()
        var allowed: [Int] = []
        for now in 0..<1_000 where limiter.allow(number(7), at: .ms(now)) { allowed.append(now) }
        #expect(allowed == Array(stride(from: 0, to: 100, by: 10)))
    }

    @Test func `a number that comes round again starts anew`() {
        var limiter = RetransmissionLimiter()
        for now in 0..<200 { _ = limiter.allow(number(7), at: .ms(now)) }
        #expect(limiter.allow(number(7), at: .ms(300)) == false)
        #expect(limiter.allow(number(7), at: .ms(6_000)) == true)
    }

    @Test func `different packets do not hinder each other`() {
        var limiter = RetransmissionLimiter()
        for value in 0..<200 { #expect(limiter.allow(number(65_500 + value), at: .ms(0)) == true) }
    }

    @Test func `a flood over the whole range stays within the rate`() {
        var limiter = RetransmissionLimiter()
        var allowed = 0
        for now in 0..<5_000 {
            for value in 0..<50 where limiter.allow(number(now * 50 + value), at: .ms(now)) { allowed += 1 }
        }
        #expect(allowed <= RetransmissionLimiter.burstMax + 5 * RetransmissionLimiter.ratePerSecond)
        #expect(allowed >= 5 * RetransmissionLimiter.ratePerSecond)
    }
}

@Suite struct DeadlineQueueTests {
    /// The peer whose deadline is least, if that has come; it leaves the queue.
    private func popDue(_ queue: inout DeadlineQueue, at now: Instant) -> PeerID? {
        let peer = queue.firstDue(at: now)
        if let peer { queue.set(peer, to: nil) }
        return peer
    }

    @Test func `deadlines come due least first and leave`() {
        var queue = DeadlineQueue()
        for (peer, deadline) in [(1, 30), (2, 10), (3, 20)] {
            queue.set(PeerID(rawValue: UInt64(peer)), to: .ms(deadline))
        }
        #expect(queue.next == .ms(10))
        #expect(popDue(&queue, at: .ms(9)) == nil)
        #expect(popDue(&queue, at: .ms(25)) == PeerID(rawValue: 2))
        #expect(popDue(&queue, at: .ms(25)) == PeerID(rawValue: 3))
        #expect(popDue(&queue, at: .ms(25)) == nil)
        #expect(queue.count == 1)
    }

    @Test func `a peer stands in the queue once, wherever its deadline moves`() {
        var queue = DeadlineQueue()
        let peer = PeerID(rawValue: 1)
        queue.set(PeerID(rawValue: 2), to: .ms(50))
        for deadline in [10, 90, 40, 60] { queue.set(peer, to: .ms(deadline)) }
        #expect(queue.count == 2)
        #expect(queue.next == .ms(50))
        queue.set(peer, to: nil)
        queue.set(peer, to: nil)
        #expect(queue.count == 1)
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func `whatever is set, moved and removed, the least comes first`(seed: UInt64) {
        var queue = DeadlineQueue()
        var model: [UInt64: Int] = [:]
        var state = seed
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        for step in 0..<2_000 {
            let peer = UInt64(random(40))
            switch random(4) {
            case 0:
                queue.set(PeerID(rawValue: peer), to: nil)
                model[peer] = nil
            case 1:
                let due = popDue(&queue, at: .ms(random(1_000)))
                if let due {
                    #expect(model[due.rawValue] == model.values.min(), "step \(step)")
                    model[due.rawValue] = nil
                }
            default:
                let deadline = random(1_000)
                queue.set(PeerID(rawValue: peer), to: .ms(deadline))
                model[peer] = deadline
            }
            #expect(queue.next == model.values.min().map { .ms($0) })
            #expect(queue.count == model.count)
        }
    }
}
