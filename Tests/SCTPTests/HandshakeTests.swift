import Base
import TestSupport
import Testing

@testable import SCTP

@Suite struct HandshakeTests {
    private func type(_ packet: [UInt8]) -> ChunkType { ChunkType(rawValue: packet[12]) }

    @Test(arguments: [[0], [1], [0, 1]])
    func `an association is established from either side, and from both at once`(starters: [Int]) {
        let pair = Pair()
        for index in starters { pair.nodes[index].association.connect(at: pair.now) }
        pair.run(for: .milliseconds(41))
        for node in pair.nodes {
            #expect(node.events == [.established], "within two round trips")
            #expect(Bool(node.association.isInterleaved))
            #expect(Bool(node.association.supportsPartialReliability))
            #expect(node.drops.isEmpty)
        }
        pair.left.send([1], at: pair.now)
        pair.right.send([2], at: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.left.messages.map(\.bytes) == [[2]])
        #expect(pair.right.messages.map(\.bytes) == [[1]])
    }

    @Test(arguments: [ChunkType.initiation, .initiationAck, .cookieEcho, .cookieAck], [[0], [0, 1]])
    func `a lost packet of the handshake is sent again`(lost: ChunkType, starters: [Int]) {
        let pair = Pair()
        var count = 0
        pair.loses = { _, packet in
            guard ChunkType(rawValue: packet[12]) == lost, count < 2 else { return false }
            count += 1
            return true
        }
        pair.left.send([9], at: pair.now)
        for index in starters { pair.nodes[index].association.connect(at: pair.now) }
        pair.run(for: .seconds(8))
        #expect(count == 2)
        for node in pair.nodes { #expect(node.events == [.established]) }
        #expect(pair.right.messages.map(\.bytes) == [[9]], "what was queued before is delivered once")
    }

    /// Pion before 2023 drops an INIT with a parameter that it does not know, instead of ignoring that (RFC 9260 §3.2.1).
    @Test(arguments: [[0], [1], [0, 1]])
    func `a peer that refuses the parameter for packets without checksum is connected`(starters: [Int]) {
        var settings = AssociationSettings()
        settings.offersZeroChecksum = false
        let pair = Pair(right: settings)
        pair.loses = { source, packet in
            guard source == 0, [.initiation, .initiationAck].contains(ChunkType(rawValue: packet[12])) else {
                return false
            }
            return zip(packet, packet.dropFirst()).contains { $0 == (0x80, 0x01) }
        }
        for index in starters { pair.nodes[index].association.connect(at: pair.now) }
        // A peer that starts as well, as those of WebRTC do, does not wait for the second INIT.
        pair.run(for: .milliseconds(starters == [0] ? 3_100 : 41))
        for node in pair.nodes { #expect(node.events == [.established]) }
    }

    @Test func `a peer that does not answer ends the handshake after ten tries`() {
        let pair = Pair()
        pair.loses = { _, _ in true }
        pair.left.association.connect(at: pair.now)
        pair.run(for: .seconds(60))
        #expect(pair.left.events == [.ended(.timedOut)])
        #expect(pair.sentPackets[0] == 10)
        #expect(pair.left.association.nextDeadline == nil)
    }

    @Test func `data goes with the cookie, and nothing goes before it`() {
        let pair = Pair()
        pair.left.send([7], at: pair.now)
        var types: [[ChunkType]] = []
        pair.loses = { source, packet in
            guard source == 0 else { return false }
            var walk = ChunkWalk()
            var list: [ChunkType] = []
            while let chunk = withSpan(packet, { walk.next(in: $0) }) { list.append(chunk.type) }
            types.append(list)
            return false
        }
        pair.left.association.connect(at: pair.now)
        pair.run(for: .seconds(1))
        #expect(types.first == [.initiation])
        #expect(types.dropFirst().first == [.cookieEcho, .interleavedData])
        #expect(pair.right.messages.map(\.bytes) == [[7]])
    }

    @Test(arguments: [(false, true), (true, false), (false, false), (true, true)])
    func `an extension is used when both offer it`(left: Bool, right: Bool) {
        var settings = [AssociationSettings(), AssociationSettings()]
        settings[0].offersInterleaving = left
        settings[1].offersInterleaving = right
        settings[0].offersZeroChecksum = left
        settings[1].offersZeroChecksum = right
        let pair = Pair.connected(left: settings[0], right: settings[1])
        var unchecked = [0, 0]
        pair.loses = { source, packet in
            if packet[8..<12].allSatisfy({ $0 == 0 }) { unchecked[source] += 1 }
            return false
        }
        for index in 0..<50 {
            pair.left.send(payload(index, count: 3_000), at: pair.now)
            pair.right.send(payload(index, count: 3_000), at: pair.now)
        }
        pair.run(for: .seconds(5))
        for node in pair.nodes {
            #expect(Bool(node.association.isInterleaved) == (left && right))
            #expect(node.messages.map { number(of: $0.bytes) } == Array(0..<50))
            #expect(node.drops.isEmpty)
        }
        #expect((unchecked[0] > 0) == (left && right))
        #expect((unchecked[1] > 0) == (left && right))
    }

    @Test func `a peer that starts anew ends the association`() {
        let pair = Pair.connected()
        var generator = SeededGenerator(seed: 77)
        let reborn = Node(AssociationSettings(), &generator)
        reborn.association.connect(at: pair.now)
        // Its packets reach the old association, and the answers reach it.
        for _ in 0..<4 {
            while let packet = reborn.nextPacket(at: pair.now) { pair.left.receive(packet, at: pair.now) }
            while let packet = pair.left.nextPacket(at: pair.now) { reborn.receive(packet, at: pair.now) }
        }
        #expect(pair.left.events == [.established, .ended(.restartedByPeer)])
        #expect(reborn.events == [.ended(.abortedByPeer(cause: ErrorCause.userInitiated.rawValue))])
    }

    @Test func `an INIT alone changes nothing`() {
        let pair = Pair.connected()
        var generator = SeededGenerator(seed: 78)
        let stranger = Node(AssociationSettings(), &generator)
        stranger.association.connect(at: pair.now)
        while let packet = stranger.nextPacket(at: pair.now) { pair.left.receive(packet, at: pair.now) }
        pair.left.send([3], at: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.right.messages.map(\.bytes) == [[3]])
    }

    /// Made with our key, as no peer can: the cookies of an association that exists name it.
    @Test func `a cookie that names another association before it is refused`() {
        let pair = Pair.connected()
        let tags = StateCookie.TieTags(local: pair.left.association.local.tag, peer: pair.right.association.local.tag)
        var local = pair.left.association.local
        var peer = pair.right.association.local
        local.tag ^= 2
        peer.tag ^= 2
        let rows: [StateCookie.TieTags] = [
            .init(), .init(local: tags.local, peer: peer.tag), .init(local: local.tag, peer: tags.peer), tags,
        ]
        for tieTags in rows {
            #expect(pair.left.events == [.established])
            let cookie = StateCookie(local: local, peer: peer, tieTags: tieTags, createdAt: pair.now)
            let echo: [UInt8] = .chunk(.cookieEcho, cookie.encoded(key: pair.left.association.cookieKey))
            pair.left.receive(packet([echo], tag: local.tag), at: pair.now)
        }
        #expect(pair.left.drops == [.cookie, .cookie, .cookie])
        #expect(pair.left.events == [.established, .ended(.restartedByPeer)])
    }

    @Test func `an old cookie is refused`() {
        let (pair, cookies) = pairWithCookie()
        pair.right.receive(cookies[0], at: pair.now + .seconds(61))
        #expect(pair.right.drops == [.cookie] && pair.right.events.isEmpty)
    }

    @Test func `a repeated cookie is only acknowledged again`() {
        let (pair, cookies) = pairWithCookie()
        pair.right.receive(cookies[0], at: pair.now)
        pair.right.receive(cookies[0], at: pair.now)
        #expect(pair.right.events == [.established])
    }

    /// Two ends, and the COOKIE ECHO that is lost on its way to the right one.
    private func pairWithCookie() -> (Pair, cookies: [[UInt8]]) {
        let pair = Pair()
        var cookies: [[UInt8]] = []
        pair.loses = { source, packet in
            guard source == 0, ChunkType(rawValue: packet[12]) == .cookieEcho else { return false }
            cookies.append(packet)
            return true
        }
        pair.left.association.connect(at: pair.now)
        pair.run(for: .milliseconds(100))
        return (pair, cookies)
    }

    // MARK: - Ending

    @Test func `a shutdown delivers what was queued`() {
        let pair = Pair.connected(LinkConditions(lossPercent: 10))
        for index in 0..<100 { pair.left.send(payload(index, count: 2_000), at: pair.now) }
        pair.left.association.shutDown(at: pair.now)
        #expect(pair.left.refusal(1, at: pair.now) == .ended)
        pair.run(for: .seconds(60))
        #expect(pair.right.messages.map { number(of: $0.bytes) } == Array(0..<100))
        #expect(pair.left.events.last == .ended(.shutDown))
        // The last SHUTDOWN COMPLETE may be lost; then the peer gives up.
        #expect([.ended(.shutDown), .ended(.timedOut)].contains(pair.right.events.last))
    }

    @Test func `both may shut down at once`() {
        let pair = Pair.connected()
        for node in pair.nodes { node.association.shutDown(at: pair.now) }
        pair.run(for: .seconds(60))
        for node in pair.nodes { #expect(Bool(node.association.hasEnded)) }
        #expect(pair.nodes.contains { $0.events.last == .ended(.shutDown) })
    }

    @Test func `an abort reaches the peer`() {
        let pair = Pair.connected()
        pair.left.association.abort()
        pair.run(for: .seconds(1))
        #expect(pair.left.events.last == .ended(.aborted))
        #expect(pair.right.events.last == .ended(.abortedByPeer(cause: 12)))
        #expect(pair.right.nextPacket(at: pair.now) == nil)
    }
}
