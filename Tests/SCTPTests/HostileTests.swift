import Base
import TestSupport
import Testing

@testable import SCTP

/// What peers must not be able to do: trap, amplify, grow memory.
@Suite struct HostileTests {
    private func value(_ words: [UInt32]) -> [UInt8] {
        var bytes: [UInt8] = []
        for word in words { bytes.append(bigEndian: word) }
        return bytes
    }

    // MARK: - Packets

    @Test func `a packet that is not for the association is dropped with a reason`() {
        let scene = Scene()
        let good = packet([.chunk(.heartbeat, [0, 1, 0, 4])], tag: scene.tag)
        var wrongChecksum = good
        wrongChecksum[9] ^= 1
        let rows: [([UInt8], SCTPDropReason)] = [
            ([], .length), (Array(good.prefix(15)), .length), ([UInt8](repeating: 0, count: 1_501), .length),
            (packet([.chunk(.cookieAck)], tag: scene.tag, port: 5_001), .port), (wrongChecksum, .checksum),
            (packet([.chunk(.cookieAck)], tag: scene.tag ^ 1), .tag), (packet([.chunk(.cookieAck)], tag: 0), .tag),
            (packet([.chunk(.abort)], tag: scene.tag ^ 1), .tag),
            (packet([.chunk(.abort, flags: 1)], tag: scene.tag), .tag),
            (packet([.chunk(.initiation, value([1, 9_999, 0x1_0001, 0]))], tag: scene.tag), .tag),
            (packet([.chunk(.initiation, value([0, 9_999, 0x1_0001, 0]))], tag: 0), .handshake),
            (packet([.chunk(.initiation, value([1, 9_999, 0x1_0001, 0])), .chunk(.cookieAck)], tag: 0), .handshake),
            (packet([.chunk(.cookieEcho, [1, 2, 3])], tag: scene.tag), .cookie),
            (packet([.chunk(.cookieEcho, [UInt8](repeating: 0, count: 66))], tag: scene.tag), .cookie),
        ]
        for (bytes, reason) in rows {
            scene.victim.drops = []
            scene.victim.receive(bytes, at: scene.pair.now)
            #expect(scene.victim.drops == [reason])
            #expect(scene.victim.nextPacket(at: scene.pair.now) == nil, "no answer")
        }
        scene.victim.drops = []
        scene.victim.receive(good, at: scene.pair.now)
        #expect(scene.victim.drops.isEmpty)
        #expect(scene.victim.events == [.established])
    }

    @Test func `a packet without checksum is dropped unless we allowed it`() {
        var settings = AssociationSettings()
        settings.offersZeroChecksum = false
        for (victim, isAllowed) in [(AssociationSettings(), true), (settings, false)] {
            let pair = Pair.connected(right: victim)
            var bytes = packet([.chunk(.heartbeat, [0, 1, 0, 4])], tag: pair.left.association.peer?.tag ?? 0)
            for index in 8..<12 { bytes[index] = 0 }
            pair.right.receive(bytes, at: pair.now)
            #expect(pair.right.drops == (isAllowed ? [] : [.checksum]))
        }
    }

    // MARK: - Chunks

    enum Effect {
        case nothing, glitch
        case violation(ProtocolViolation)
    }

    @Test func `a chunk that cannot be has no effect or ends the association`() {
        let far = UInt32(5_000)
        let rows: [(String, (Scene) -> [[UInt8]], Effect)] = [
            ("a length of 0", { _ in [.chunk(.cookieAck), [99, 0, 0, 0]] }, .glitch),
            ("a length beyond the packet", { _ in [.chunk(.cookieAck), [0, 3, 0, 200, 0, 0, 0, 0]] }, .glitch),
            ("an unknown chunk that stops", { _ in [.chunk(ChunkType(rawValue: 60), [1]), .chunk(.abort)] }, .glitch),
            ("an unknown chunk that is skipped", { _ in [.chunk(ChunkType(rawValue: 0xFE), [1])] }, .glitch),
            ("a header without data", { _ in [.chunk(.interleavedData, [1, 2, 3])] }, .glitch),
            ("no payload", { [data($0.tsn, count: 0)] }, .violation(.emptyData)),
            ("DATA where I-DATA is agreed", { _ in [.chunk(.data, value([1, 2, 3, 4]))] }, .violation(.wrongDataKind)),
            ("FORWARD-TSN likewise", { _ in [.chunk(.forwardTSN, value([1]))] }, .violation(.wrongDataKind)),
            (
                "FORWARD-TSN far ahead",
                { [.chunk(.interleavedForwardTSN, value([SerialNumber.raw($0.tsn) &+ far]))] },
                .violation(.forwardTooFar)
            ),
            ("a short FORWARD-TSN", { _ in [.chunk(.interleavedForwardTSN, [1])] }, .glitch),
            ("a number far ahead", { [data($0.tsn + 5_000)] }, .nothing),
            ("an old number", { [data($0.tsn - 100)] }, .nothing),
            (
                "a message identifier far ahead", { [data($0.tsn, message: 1 << 17)] },
                .violation(.messageNumberTooFar)
            ),
            (
                "a fragment twice",
                { [data($0.tsn, fragment: 3, []), data($0.tsn + 1, fragment: 3, [])] }, .violation(.brokenFragments)
            ),
            (
                "a fragment after the end",
                { [data($0.tsn, fragment: 3, .end), data($0.tsn + 1, fragment: 4, [])] }, .violation(.brokenFragments)
            ),
            (
                "two beginnings",
                { [data($0.tsn, .beginning), data($0.tsn + 1, .beginning)] }, .violation(.brokenFragments)
            ),
            ("a short SACK", { _ in [.chunk(.sack, [0])] }, .glitch),
            ("a SACK longer than it is", { _ in [.chunk(.sack, value([0, 0, 0xFFFF_FFFF]))] }, .glitch),
            (
                "a SACK of what was not sent",
                { [.chunk(.sack, value([SerialNumber.raw($0.victim.association.sender.chunks.nextTSN), 0, 0]))] },
                .violation(.acknowledgedUnsent)
            ),
            (
                "a gap block of nothing",
                {
                    let last = SerialNumber.raw($0.victim.association.sender.chunks.nextTSN - 1)
                    return [.chunk(.sack, value([last, 9_999, 0x1_0000, 0xFFFF_FFFF]))]
                }, .nothing
            ),
            ("a broken RE-CONFIG", { _ in [.chunk(.reconfiguration, [0, 13, 0, 0])] }, .glitch),
            ("an INIT in a packet", { _ in [.chunk(.cookieAck), .chunk(.initiation, value([1]))] }, .glitch),
            ("a short SHUTDOWN", { _ in [.chunk(.shutdown)] }, .glitch),
        ]
        for (name, make, effect) in rows {
            let scene = Scene()
            scene.victim.receive(packet(make(scene), tag: scene.tag), at: scene.pair.now)
            let glitches = scene.victim.association.counters.glitches
            switch effect {
            case .nothing:
                #expect(scene.victim.events == [.established], "\(name)")
                #expect(glitches == 0, "\(name)")
            case .glitch:
                #expect(scene.victim.events == [.established], "\(name)")
                #expect(glitches == 1, "\(name)")
            case .violation(let violation):
                #expect(scene.victim.events.last == .ended(.violation(violation)), "\(name)")
                let answer = scene.victim.nextPacket(at: scene.pair.now)
                #expect(answer.map { ChunkType(rawValue: $0[12]) } == .abort, "\(name)")
            }
            var answers = 0
            while scene.victim.nextPacket(at: scene.pair.now) != nil { answers += 1 }
            #expect(answers <= 1, "\(name)")
        }
    }

    @Test func `a message that is too long ends the association`() {
        let scene = Scene()
        var tsn = scene.tsn
        var fragment: UInt32 = 0
        while !scene.victim.association.hasEnded, fragment < 400 {
            let flags: DataFlags = fragment == 0 ? .beginning : []
            let bytes = packet([data(tsn, fragment: fragment, flags, count: 1_100)], tag: scene.tag)
            scene.victim.receive(bytes, at: scene.pair.now)
            tsn += 1
            fragment += 1
        }
        #expect(scene.victim.events.last == .ended(.violation(.messageTooLong)))
        #expect(fragment == 262_144 / 1_100 + 1)
    }

    /// One of the longest length is delivered.
    @Test(arguments: [true, false], [true, false])
    func `the last fragment does not make a message too long`(isInterleaved: Bool, isUnordered: Bool) {
        let order: DataFlags = isUnordered ? .unordered : []
        for excess in 0...1 {
            let scene = Scene(isInterleaved: isInterleaved)
            for index in 0..<238 as Range<UInt32> {
                let flags = index == 0 ? order.union(.beginning) : order
                scene.attack([data(scene.tsn, fragment: index, flags, count: 1_100, isInterleaved: isInterleaved)])
            }
            let rest = 262_144 - 238 * 1_100 + excess
            let end = order.union(.end)
            scene.attack([data(scene.tsn, fragment: 238, end, count: rest, isInterleaved: isInterleaved)])
            #expect(scene.victim.messages.map(\.bytes.count) == (excess == 0 ? [262_144] : []))
            let last: AssociationEvent = excess == 0 ? .established : .ended(.violation(.messageTooLong))
            #expect(scene.victim.events.last == last)
        }
    }

    @Test(arguments: [true, false])
    func `a message that was delivered is not delivered again in other chunks`(isInterleaved: Bool) {
        let scene = Scene(isInterleaved: isInterleaved)
        for message in [0, 0, 1, 0, 1, 2] as [UInt32] {
            let count = 10 + Int(message)
            scene.attack([data(scene.tsn, message: message, count: count, isInterleaved: isInterleaved)])
        }
        #expect(scene.victim.messages.map(\.bytes.count) == [10, 11, 12])
        // A part of one is not held, either: nothing would ever complete it.
        scene.attack([data(scene.tsn, message: 0, .beginning, isInterleaved: isInterleaved)])
        #expect(scene.victim.association.heldBytes == 0)
    }

    // MARK: - Bounds

    /// What a peer sends for ever; the victim's memory stays bounded.
    @Test(arguments: ["holes", "halves", "unordered halves", "far messages", "streams"])
    func `what a peer sends does not grow memory`(kind: String) {
        let scene = Scene()
        let start = scene.tsn
        var now = scene.pair.now
        for index in 0..<3_000 as Range<Int> where !scene.victim.association.hasEnded {
            let offset = Int64(index)
            let chunk: [UInt8] =
                switch kind {
                case "holes": data(start + 1 + 2 * offset, message: UInt32(1 + index), count: 1_000)
                case "halves": data(start + offset, message: UInt32(index), .beginning, count: 1_000)
                case "unordered halves":
                    data(start + offset, message: UInt32(index), [.beginning, .unordered], count: 1)
                case "far messages": data(start + offset, message: UInt32(1 + index), count: 1_000)
                default: data(start + offset, on: UInt16(index), .beginning, count: 1)
                }
            scene.victim.receive(packet([chunk], tag: scene.tag), at: now)
            var answers = 0
            while scene.victim.nextPacket(at: now) != nil { answers += 1 }
            #expect(answers <= 1)
            #expect(scene.victim.association.heldBytes <= (1 << 20) + 262_144 + 2_000)
            #expect(scene.victim.association.receiver.reassembly.heldChunks <= 4_096)
            now += .milliseconds(5)
        }
        #expect(scene.victim.messages.isEmpty)
    }

    @Test(
        arguments: [
            .chunk(.heartbeat, [0, 1, 0, 8, 1, 2, 3, 4]), .chunk(.error, [0, 1, 0, 4]),
            .chunk(ChunkType(rawValue: 0xFE)),
            ReconfigurationParameter.associationReset(request: 9).encoded(),
            .chunk(.interleavedForwardTSN, [0, 0, 0, 0]), .chunk(.sack, [1]),
        ] as [[UInt8]]
    )
    func `a flood of control ends the association, and is not amplified`(chunk: [UInt8]) {
        let scene = Scene()
        var bytesIn = 0
        var bytesOut = 0
        for _ in 0..<50 where !scene.victim.association.hasEnded {
            let bytes = packet([[UInt8]](repeating: chunk, count: 50), tag: scene.tag)
            bytesIn += bytes.count
            scene.victim.receive(bytes, at: scene.pair.now)
            while let answer = scene.victim.nextPacket(at: scene.pair.now) { bytesOut += answer.count }
        }
        #expect(scene.victim.events.last == .ended(.violation(.flood)))
        #expect(bytesOut <= 2 * bytesIn + 1_188)
    }

    @Test func `answers that were not sent yet take no more than one packet`() throws {
        let scene = Scene()
        let heartbeat: [UInt8] = .chunk(.heartbeat, [UInt8](repeating: 1, count: 300))
        for _ in 0..<10 { scene.attack([heartbeat]) }
        // More would not fit into the buffer of a packet.
        let answers = scene.victim.association.control.count
        try #require(answers == 3 * heartbeat.count)
        let answer = scene.victim.nextPacket(at: scene.pair.now)
        #expect(answer?.count == PacketLayout.headerBytes + answers)
        #expect(scene.victim.nextPacket(at: scene.pair.now) == nil)
    }

    @Test func `a pause allows no more glitches than a burst`() {
        let scene = Scene()
        let glitch: [UInt8] = .chunk(.sack, [1])
        scene.attack([glitch])
        scene.pair.now += .seconds(3_600)
        scene.attack([[UInt8]](repeating: glitch, count: 100))
        #expect(scene.victim.association.counters.glitches == 101)
        #expect(!scene.hasEnded)
        scene.attack([glitch])
        #expect(scene.victim.events.last == .ended(.violation(.flood)))
    }

    @Test func `data on one stream too many is refused, and the others go on`() {
        let scene = Scene()
        let count = UInt16(Reassembly.streamsMax)
        for id in 0..<count { scene.attack([data(scene.tsn, on: id)]) }
        #expect(scene.victim.messages.count == Int(count))
        scene.drain()
        scene.attack([data(scene.tsn, on: count)])
        #expect(scene.victim.messages.count == Int(count))
        #expect(scene.victim.association.counters.glitches == 1)
        let answer = scene.victim.nextPacket(at: scene.pair.now)
        #expect(answer.map { ChunkType(rawValue: $0[12]) } == .error)
        scene.attack([data(scene.tsn, on: 3, message: 1)])
        #expect(scene.victim.messages.last?.stream == stream(3))
        #expect(scene.victim.messages.count == Int(count) + 1)
    }

    @Test func `a number that is farther ahead than can be remembered is refused`() {
        let scene = Scene()
        let last = scene.tsn - 1 + ReceivedNumbers.aheadMax
        scene.attack([data(last + 1, on: 1)])
        #expect(scene.victim.messages.isEmpty)
        #expect(scene.victim.association.counters.refusedChunks == 1)
        scene.attack([data(last, on: 1)])
        #expect(scene.victim.messages.count == 1)
        #expect(scene.victim.association.counters.refusedChunks == 1)
    }

    /// A victim that holds as many chunks as it may: whole messages, which wait for the first one.
    private func waiting() -> Scene {
        let scene = Scene()
        for index in 1...2_048 as ClosedRange<Int64> {
            scene.attack([data(scene.tsn + index, message: UInt32(index), count: 1)])
        }
        #expect(scene.victim.association.receiver.reassembly.heldChunks == 2_048)
        return scene
    }

    @Test func `so many chunks are held, however small, and the one that they wait for is taken`() {
        let scene = waiting()
        scene.attack([data(scene.tsn + 2_049, message: 2_049, count: 1)])
        #expect(scene.victim.association.counters.refusedChunks == 1)
        #expect(scene.victim.association.receiver.reassembly.heldChunks == 2_048)
        scene.attack([data(scene.tsn, count: 1)])
        #expect(scene.victim.messages.count == 2_049)
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `a window that is full of what does not get on ends the association after ten seconds`() {
        let scene = waiting()
        let chunk = data(scene.tsn + 2_049, message: 2_049, count: 1)
        scene.attack([chunk])
        scene.pair.now += .seconds(10)
        scene.attack([chunk])
        #expect(!scene.hasEnded)
        scene.pair.now += .milliseconds(1)
        scene.attack([chunk])
        #expect(scene.victim.events.last == .ended(.violation(.windowStuck)))
        #expect(scene.victim.association.heldBytes == 0)
    }

    @Test func `an INIT costs no memory and one answer`() {
        let scene = Scene()
        let initiation = packet([.chunk(.initiation, value([7, 9_999, 0x1_0001, 0]))], tag: 0)
        for _ in 0..<100 {
            scene.victim.receive(initiation, at: scene.pair.now)
            #expect(scene.victim.nextPacket(at: scene.pair.now) != nil)
            #expect(scene.victim.nextPacket(at: scene.pair.now) == nil)
        }
        scene.pair.left.send([5], at: scene.pair.now)
        scene.pair.run(for: .seconds(1))
        #expect(scene.victim.messages.map(\.bytes) == [[5]])
    }

    @Test func `a deferred reset holds no data`() {
        let scene = Scene()
        let first = scene.pair.left.association.local.firstTSN
        let reset = ReconfigurationParameter.outgoingReset(
            request: first,
            response: 0,
            lastTSN: SerialNumber.raw(scene.tsn + 1),
            streams: [stream(3)]
        )
        let start = scene.tsn
        scene.victim.receive(packet([reset.encoded()], tag: scene.tag), at: scene.pair.now)
        for index in 2..<1_000 as Range<Int64> {
            let bytes = packet([data(start + index, on: 3, message: 0, .beginning)], tag: scene.tag)
            scene.victim.receive(bytes, at: scene.pair.now)
        }
        #expect(scene.victim.association.heldBytes == 0)
        // The numbers before arrive: the reset is done, and data after it is accepted.
        for index in 0..<2 as Range<Int64> {
            let bytes = packet([data(start + index, on: 4, message: UInt32(index))], tag: scene.tag)
            scene.victim.receive(bytes, at: scene.pair.now)
        }
        #expect(scene.victim.events.last == .incomingReset([stream(3)]))
        scene.victim.receive(packet([data(start + 2, on: 3)], tag: scene.tag), at: scene.pair.now)
        #expect(scene.victim.messages.count == 3)
    }

    @Test func `an idle association is small`() {
        #expect(MemoryLayout<DataChannels>.size < 2_048)
        let pair = Pair.connected()
        for _ in 0..<3 {
            for index in 0..<500 { pair.left.send(payload(index, count: 900), at: pair.now) }
            pair.run(for: .seconds(10))
        }
        #expect(pair.right.messages.count == 1_500)
        #expect(pair.right.association.heldBytes == 0)
        #expect(Bool(pair.left.association.sender.isDrained))
        #expect(pair.left.association.nextDeadline == nil)
        #expect(pair.right.association.nextDeadline == nil)
    }

    @Test(arguments: 1...40)
    func `changed packets never trap`(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let pair = Pair.connected(seed: UInt64(seed), LinkConditions(lossPercent: 2, reorderPercent: 10))
        var last: [[UInt8]] = []
        pair.loses = { source, bytes in
            last.append(bytes)
            return false
        }
        for round in 0..<10 {
            for id in 0..<3 as Range<UInt16> {
                let limit: SendPolicy.Limit = id == 1 ? .retransmissions(0) : .reliable
                let policy = SendPolicy(isOrdered: id != 2, limit: limit)
                for node in pair.nodes { node.send(payload(round, count: 2_500), on: id, policy, at: pair.now) }
            }
            if round % 3 == 2 {
                for node in pair.nodes { node.association.reset(stream(UInt16(round % 3)), at: pair.now) }
            }
            pair.run(for: .milliseconds(50))
            for var bytes in last.suffix(20) {
                for _ in 0..<Int.random(in: 1...6, using: &generator) {
                    let index = Int.random(in: 12..<bytes.count, using: &generator)
                    bytes[index] = UInt8.random(in: 0...255, using: &generator)
                }
                if Bool.random(using: &generator) {
                    bytes = Array(bytes.prefix(Int.random(in: 16...bytes.count, using: &generator)))
                }
                for index in 8..<12 { bytes[index] = 0 }
                let checksum = withSpan(bytes) { PacketLayout.checksum($0) }
                for index in 0..<4 { bytes[8 + index] = UInt8(truncatingIfNeeded: checksum >> (24 - 8 * index)) }
                for node in pair.nodes { node.receive(bytes, at: pair.now) }
            }
            last = []
        }
        pair.loses = nil
        pair.run(for: .seconds(2))
        for node in pair.nodes { #expect(node.association.heldBytes <= 2 << 20) }
    }
}
