import Base
import Testing

@testable import SCTP

/// The congestion window of a sender that had nothing to send (RFC 9260 §7.2.1). What it knew of the network grows old: a burst as
/// large as the last one may meet a full queue.
@Suite struct IdleTests {
    /// A pair with a large window, whose last message left just now and is acknowledged.
    private func pair(window: Int = 80_000) -> (pair: Pair, lastSentAt: Instant) {
        var settings = AssociationSettings()
        settings.queuedBytesMax = 4 << 20
        settings.queuedBytesPerStreamMax = 4 << 20
        settings.windowBytes = 16 << 20
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20)), left: settings, right: settings)
        let sender = pair.left
        for _ in 0..<2_000 where sender.association.congestionWindow < window {
            let queued = max(500_000, window)
            while sender.association.bufferedBytes < queued, sender.send(payload(0, count: 10_000), at: pair.now) {}
            pair.run(for: .milliseconds(10))
        }
        pair.run(for: .seconds(10)) { sender.association.sender.isDrained }
        #expect(sender.association.congestionWindow >= window)
        let lastSentAt = pair.now
        sender.send(payload(1, count: 10), at: lastSentAt)
        pair.run(for: .milliseconds(100))
        #expect(sender.association.sender.isDrained)
        return (pair, lastSentAt)
    }

    /// What a message finds that is sent `interval` after the last one.
    private func window(of pair: Pair, _ interval: Interval, after lastSentAt: Instant) -> Int {
        pair.run(for: lastSentAt + interval - pair.now)
        pair.left.send(payload(2, count: 10), at: pair.now)
        pair.flush()
        return pair.left.association.congestionWindow
    }

    private func timeout(_ pair: Pair) -> Interval { pair.left.association.sender.roundTrip.timeout }

    @Test(arguments: [1, 2, 3, 4])
    func `the window is halved for each timeout without data`(timeouts: Int) {
        let (pair, lastSentAt) = pair()
        let before = pair.left.association.congestionWindow
        let interval = timeout(pair) * timeouts
        #expect(window(of: pair, interval, after: lastSentAt) == before >> timeouts)
    }

    @Test(arguments: [1, 2, 4])
    func `just before the next timeout it is not halved once more`(timeouts: Int) {
        let (pair, lastSentAt) = pair()
        let before = pair.left.association.congestionWindow
        let interval = timeout(pair) * timeouts - .microseconds(1)
        #expect(window(of: pair, interval, after: lastSentAt) == before >> (timeouts - 1))
    }

    @Test(arguments: [80_000, 700_000], [60, 86_400])
    func `however long the pause and large the window, four packets are left`(window: Int, seconds: Int) {
        let (pair, lastSentAt) = pair(window: window)
        #expect(self.window(of: pair, .seconds(seconds), after: lastSentAt) == 4 * PacketLayout.bytesMax)
    }

    @Test func `after a pause the first burst is as small as the window`() {
        // Headers do not count in the window, so that a fifth packet begins in it.
        for (pause, packets) in [(Interval.milliseconds(100), 16), (.seconds(60), 5)] {
            let (pair, lastSentAt) = pair()
            pair.run(for: lastSentAt + pause - pair.now)
            let before = pair.sentPackets[0]
            pair.left.send(payload(2, count: 200_000), at: pair.now)
            pair.flush()
            #expect(pair.sentPackets[0] - before == packets, "after \(pause)")
        }
    }

    @Test func `pauses that are shorter than a timeout cost nothing, and each is counted from the last data`() {
        let (pair, _) = pair()
        let before = pair.left.association.congestionWindow
        for _ in 0..<50 {
            pair.left.send(payload(2, count: 10), at: pair.now)
            pair.run(for: timeout(pair) - .milliseconds(1))
        }
        #expect(pair.left.association.congestionWindow >= before)
    }

    @Test func `acknowledgements that a receiver sends are no data`() {
        let (pair, lastSentAt) = pair()
        let before = pair.left.association.congestionWindow
        // The other end sends all the time, so that this one's packets have no data.
        let sent = pair.sentPackets[0]
        while pair.now < lastSentAt + timeout(pair) * 3 - .milliseconds(20) {
            pair.right.send(payload(3, count: 1_000), at: pair.now)
            pair.run(for: .milliseconds(10))
        }
        #expect(pair.sentPackets[0] - sent > 20)
        #expect(window(of: pair, timeout(pair) * 3, after: lastSentAt) <= before / 4)
    }

    @Test func `a pause does not open a window that losses closed`() {
        let (pair, _) = pair()
        pair.loses = { source, _ in source == 0 }
        pair.left.send(payload(2, count: 100), at: pair.now)
        pair.run(for: .milliseconds(900))
        pair.loses = nil
        pair.run(for: .seconds(10)) { pair.left.association.sender.isDrained }
        let before = pair.left.association.congestionWindow
        #expect(before < 4 * PacketLayout.bytesMax)
        #expect(window(of: pair, .seconds(60), after: pair.now) <= before)
    }

    @Test func `slow start leads back to the window before the pause`() {
        var window = CongestionWindow(threshold: 1 << 20)
        while window.bytes < 100_000 {
            window.acknowledged(window.bytes, wasFull: true, isAllAcked: false)
        }
        window.lost(hasQueue: true)
        let threshold = window.threshold
        // Congestion avoidance has found that more is possible.
        while window.bytes < 2 * threshold {
            window.acknowledged(window.bytes, wasFull: true, isAllAcked: false)
        }
        let before = window.bytes
        for _ in 0..<10 { window.idled() }
        #expect(window.bytes == CongestionWindow.bytesMin && window.threshold == before)
        var rounds = 0
        while window.bytes < before {
            for _ in 0..<window.bytes / CongestionWindow.unit {
                window.acknowledged(CongestionWindow.unit, wasFull: true, isAllAcked: false)
            }
            rounds += 1
        }
        #expect(rounds <= 6, "doubled in each round trip")
        window.acknowledged(CongestionWindow.unit, wasFull: true, isAllAcked: false)
        #expect(!window.isSlowStart)
    }
}
