import Base
import Testing

@testable import SCTP

/// An association whose packets take another path from now on: ICE selected another pair. What was learned of the old path says
/// nothing about the new one (as RFC 9000 §9.4 has it for QUIC).
@Suite struct PathChangeTests {
    /// A pair whose left end sends all the time.
    private func busyPair(_ conditions: LinkConditions, seconds: Int = 5) -> Pair {
        let pair = Pair.connected(seed: 1, conditions)
        for _ in 0..<seconds * 10 {
            while pair.left.send(payload(0, count: 10_000), at: pair.now) {}
            pair.run(for: .milliseconds(100))
        }
        return pair
    }

    private func change(_ pair: Pair, _ conditions: LinkConditions) {
        pair.conditions = conditions
        for node in pair.nodes { node.association.pathChanged(at: pair.now) }
    }

    @Test func `a large window falls to the initial one, and the round trip is measured anew`() {
        let pair = busyPair(LinkConditions(delay: .milliseconds(20)))
        #expect(pair.left.association.congestionWindow > 100_000)
        #expect(pair.left.association.roundTripTime.map { $0 < .milliseconds(60) } == true)
        change(pair, LinkConditions(delay: .milliseconds(150)))
        #expect(pair.left.association.congestionWindow == CongestionWindow.initialBytes)
        #expect(pair.left.association.roundTripTime == nil)
        #expect(pair.left.association.sender.roundTrip.timeout == RoundTripTime().timeout)
        pair.run(for: .seconds(5)) { pair.left.association.sender.isDrained }
        pair.left.send(payload(1, count: 10), at: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.left.association.roundTripTime.map { $0 > .milliseconds(250) } == true)
    }

    @Test func `a small window stays small until the new path has shown that it carries more`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20)))
        pair.loses = { source, _ in source == 0 }
        pair.left.send(payload(0, count: 100), at: pair.now)
        pair.run(for: .seconds(5))
        #expect(pair.left.association.congestionWindow == CongestionWindow.unit)
        change(pair, LinkConditions(delay: .milliseconds(20)))
        #expect(pair.left.association.congestionWindow == CongestionWindow.unit)
    }

    @Test func `data that a dead path lost is sent over the new one within the initial timeout`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20)))
        pair.left.send(payload(0, count: 100), at: pair.now)
        pair.run(for: .milliseconds(100))
        pair.loses = { source, _ in source == 0 }
        pair.left.send(payload(1, count: 100), at: pair.now)
        // Long enough for the timer to be backed off, and just after it has expired once more.
        pair.run(for: .seconds(20))
        let retransmissions = pair.left.association.retransmissions
        pair.run(for: .seconds(5)) { pair.left.association.retransmissions > retransmissions }
        #expect(pair.left.association.retransmissions > retransmissions)
        #expect(pair.left.association.sender.roundTrip.timeout >= .seconds(3))
        pair.loses = nil
        change(pair, LinkConditions(delay: .milliseconds(20)))
        let began = pair.now
        pair.run(for: .seconds(5)) { pair.right.messages.count == 2 }
        #expect(pair.right.messages.count == 2)
        #expect(pair.now - began <= RoundTripTime().timeout + .milliseconds(20), "\(pair.now - began)")
    }

    @Test func `a timer that would expire earlier is not put off`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20)))
        pair.left.send(payload(0, count: 100), at: pair.now)
        pair.run(for: .milliseconds(100))
        pair.loses = { source, _ in source == 0 }
        let began = pair.now
        pair.left.send(payload(1, count: 100), at: pair.now)
        // Whoever changes paths all the time sends lost data nevertheless.
        while pair.now < began + .seconds(2) {
            pair.run(for: .milliseconds(50))
            change(pair, LinkConditions(delay: .milliseconds(20)))
        }
        #expect(pair.left.association.retransmissions > 0)
    }

    @Test func `nothing is sent on a change alone`() {
        let pair = Pair.connected(LinkConditions(delay: .milliseconds(20)))
        pair.run(for: .seconds(1))
        let before = pair.sentPackets
        change(pair, LinkConditions(delay: .milliseconds(20)))
        #expect(pair.nodes.allSatisfy { $0.association.nextDeadline == nil })
        pair.run(for: .seconds(60))
        #expect(pair.sentPackets == before)
    }

    @Test func `slow start goes on over a better path, wherever the old one ended it`() {
        // A narrow path that loses much: the window and its threshold are small.
        let pair = busyPair(LinkConditions(lossPercent: 8, delay: .milliseconds(30), rate: 500_000))
        pair.run(for: .seconds(60)) { pair.left.association.sender.isDrained }
        #expect(pair.left.association.sender.window.threshold < 30_000)
        change(pair, LinkConditions(delay: .milliseconds(30)))
        #expect(pair.left.association.sender.window.isSlowStart)
        for _ in 0..<200 {
            while pair.left.send(payload(0, count: 10_000), at: pair.now) {}
            pair.run(for: .milliseconds(10))
        }
        #expect(pair.left.association.sender.window.isSlowStart, "without a loss, nothing ends it")
        #expect(pair.left.association.congestionWindow > 60_000)
    }

    @Test(arguments: [1, 60, 150], [1, 2, 3])
    func `a transfer goes on over another path, once and in order`(delay: Int, seed: Int) {
        let pair = Pair.connected(seed: UInt64(seed), LinkConditions(delay: .milliseconds(20)))
        for index in 0..<60 { pair.left.send(payload(index, count: 8_000), on: UInt16(index % 2), at: pair.now) }
        pair.run(for: .milliseconds(90))
        #expect(!pair.left.association.sender.isDrained)
        change(pair, LinkConditions(lossPercent: 1, delay: .milliseconds(delay)))
        pair.run(for: .seconds(20)) { pair.right.messages.count == 60 }
        for stream in 0..<2 as Range<UInt16> {
            let numbers = pair.right.messages.filter { $0.stream.rawValue == stream }.map { number(of: $0.bytes) }
            #expect(numbers == Array(stride(from: Int(stream), to: 60, by: 2)))
        }
        pair.run(for: .seconds(20))
        #expect(pair.nodes.allSatisfy { $0.association.nextDeadline == nil && !$0.association.hasEnded })
    }
}
