import Base
import TestSupport
import Testing

@testable import SCTP

@Suite struct ResetTests {
    @Test(arguments: [0.0, 10, 30], [1, 2, 3])
    func `a stream is reset after its messages, and starts again`(loss: Double, seed: Int) {
        let pair = Pair.connected(seed: UInt64(seed), LinkConditions(lossPercent: loss))
        for round in 0..<3 {
            for index in 0..<20 { pair.left.send(payload(round * 20 + index, count: 3_000), on: 5, at: pair.now) }
            pair.left.association.reset(stream(5), at: pair.now)
            #expect(pair.left.refusal(1, on: 5, at: pair.now) == .closing)
            pair.run(for: .seconds(60)) { pair.left.events.count == 2 + round }
            pair.flush()
            #expect(pair.left.events.last == .outgoingReset([stream(5)]))
            #expect(pair.right.events.count { $0 == .incomingReset([stream(5)]) } == round + 1)
            #expect(pair.right.messages.count == (round + 1) * 20)
        }
        #expect(pair.right.messages.map { number(of: $0.bytes) } == Array(0..<60))
    }

    @Test func `many streams are reset at once, from both sides`() {
        let pair = Pair.connected(LinkConditions(lossPercent: 5))
        for node in pair.nodes {
            for id in 0..<100 as Range<UInt16> {
                node.send(payload(Int(id), count: 100), on: id, at: pair.now)
                node.association.reset(stream(id), at: pair.now)
            }
        }
        pair.run(for: .seconds(30))
        for node in pair.nodes {
            #expect(node.messages.count == 100)
            var own: [StreamID] = []
            var peer: [StreamID] = []
            for event in node.events {
                if case .outgoingReset(let streams) = event { own += streams }
                if case .incomingReset(let streams) = event { peer += streams ?? [] }
            }
            #expect(own.sorted() == (0..<100).map { stream($0) })
            #expect(peer.sorted() == own.sorted())
            #expect(node.association.nextDeadline == nil)
        }
    }

    @Test func `a reset goes with messages that are given up`() {
        let pair = Pair.connected(LinkConditions(lossPercent: 40))
        for index in 0..<50 {
            pair.left.send(payload(index, count: 2_000), on: 1, SendPolicy(limit: .retransmissions(0)), at: pair.now)
        }
        pair.left.association.reset(stream(1), at: pair.now)
        pair.run(for: .seconds(120)) { pair.left.events.count == 2 }
        #expect(pair.left.events.last == .outgoingReset([stream(1)]))
        #expect(pair.right.events.last == .incomingReset([stream(1)]))
        pair.conditions.lossPercent = 0
        pair.left.send(payload(77, count: 5), on: 1, at: pair.now)
        pair.run(for: .seconds(10))
        #expect(pair.right.messages.last.map { number(of: $0.bytes) } == 77)
    }

    @Test func `resets that the owner does not take wait with the peer, and are performed when it goes on`() {
        let pair = Pair.connected()
        pair.right.isPaused = true
        let numbers = 1...3 as ClosedRange<UInt16>
        for number in numbers {
            pair.left.send(payload(Int(number), count: 100), on: number, at: pair.now)
            pair.left.association.reset(stream(number), at: pair.now)
            pair.run(for: .seconds(2))
        }
        #expect(pair.left.events == [.established, .outgoingReset([stream(1)])])
        pair.right.isPaused = false
        pair.run(for: .seconds(10))
        let outgoing = numbers.map { AssociationEvent.outgoingReset([stream($0)]) }
        #expect(pair.left.events == [.established] + outgoing)
        let incoming = numbers.map { AssociationEvent.incomingReset([stream($0)]) }
        #expect(pair.right.events == [.established] + incoming)
        #expect(pair.right.messages.map { number(of: $0.bytes) } == [1, 2, 3])
    }

    @Test(
        arguments: [
            (0, .perform), (1, .answer(.badSequenceNumber)), (-1, .answer(.nothingToDo)),
            (-2, .answer(.badSequenceNumber)),
        ] as [(Int, StreamResets.Order)]
    )
    func `requests are numbered`(offset: Int, order: StreamResets.Order) {
        let resets = StreamResets(firstTSN: 5, peerFirstTSN: 0)
        #expect(resets.check(UInt32(truncatingIfNeeded: offset)) == order)
    }
}
