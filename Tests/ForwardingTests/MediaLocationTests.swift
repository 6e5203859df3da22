import MediaTypes
import Testing
import Wire

struct MediaLocationTests {
    @Test func `a peer identifier holds the incarnation and the number`() throws {
        let node = try #require(NodeIncarnation(rawValue: 0x8F03A1))
        let peer = PeerID(node: node, number: 17)
        #expect(peer.node == node)
        #expect(peer.number == 17)
        #expect(peer.rawValue == 0x8F03_A100_0000_0011)
        #expect("\(peer)" == "peer-8f03a1-17")
        #expect(PeerID(rawValue: peer.rawValue) == peer)
        let last = PeerID(node: node, number: 1 << 40 - 1)
        #expect(last.node == node && last.number == 1 << 40 - 1)
    }

    @Test func `a node without an incarnation has short names`() {
        #expect("\(PeerID(rawValue: 17))" == "peer-17")
        #expect("\(MediaLocation(loop: LoopIndex(rawValue: 2)))" == "loop-2")
        #expect("\(TrackID(peer: PeerID(rawValue: 3), mid: MID("v")!))" == "peer-3/v")
    }

    @Test func `an incarnation has 24 bits`() throws {
        #expect(NodeIncarnation(rawValue: 1 << 24) == nil)
        #expect(NodeIncarnation(rawValue: 1 << 24 - 1)?.description == "ffffff")
        let low = try #require(NodeIncarnation(rawValue: 0xA1))
        #expect("\(MediaLocation(node: low, loop: LoopIndex(rawValue: 0)))" == "loop-0@0000a1")
    }

    @Test func `a provisional incarnation is in the upper half`() {
        struct Counter: RandomNumberGenerator {
            var value: UInt64 = 0
            mutating func next() -> UInt64 {
                value &+= 0x9E37_79B9_7F4A_7C15
                return value
            }
        }
        var generator = Counter()
        for _ in 0..<100 { #expect(NodeIncarnation(using: &generator).rawValue >> 23 == 1) }
    }

    @Test func `the identifiers of two incarnations differ`() throws {
        var first = PeerIDSequence(node: try #require(NodeIncarnation(rawValue: 5)))
        var second = PeerIDSequence(node: try #require(NodeIncarnation(rawValue: 6)))
        let made = (0..<100).flatMap { _ in [first.next(), second.next()] }
        #expect(Set(made).count == made.count)
        #expect(made.allSatisfy { $0.number > 0 })
    }
}
