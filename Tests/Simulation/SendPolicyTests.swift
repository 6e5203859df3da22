import Base
import Client
import CongestionControl
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// Packets that may not leave at once: the order, the numbers and the bounds of those that wait.
@Suite struct SendPolicyTests {
    /// A viewer that plays a publisher's audio and video, after two seconds.
    private func call(_ seed: UInt64) throws -> (World, viewer: World.Host, publisher: World.Host, Peer) {
        let world = try World(seed: seed)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(2))
        return (world, viewer, publisher, try #require(world.nodePeer(viewer)))
    }

    @Test func `packets wait in order and are numbered when they leave`() throws {
        let (world, viewer, _, peer) = try call(951)
        let egress = peer.transport.egress
        let recording = Recording(viewer, .video)
        world.run(for: .milliseconds(100))
        let before = recording.packets.count
        let release = world.now + .milliseconds(300)
        peer.setSendPolicy(.deciding { _, now in now < release ? .later(release) : .now }, at: world.now)
        let number = egress.nextTransportSequence
        world.run(for: .milliseconds(250))
        #expect(egress.nextTransportSequence == number)
        #expect(egress.waiting.count > 15)
        let waited = egress.waiting.count
        world.run(for: .milliseconds(60))
        #expect(egress.waiting.isEmpty)
        let left = egress.nextTransportSequence &- number
        #expect(Int(left) >= waited)
        for step in 0..<UInt16(waited) {
            let packet = egress.sentPacket(TransportSequenceNumber(rawValue: number &+ step))
            #expect(packet?.sentAt ?? 0 >= SentPacketRing.microseconds(release), "\(step)")
            #expect(packet?.kind == .media, "\(step)")
        }
        world.run(for: .seconds(1))
        let sequences = recording.packets.dropFirst(before).map(\.sequence)
        #expect(sequences.count > 20)
        #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $1 == $0 + 1 })
        #expect(viewer.client?.video?.duplicates == 0)
        #expect(world.node.core.counters[.expiredInSendQueue] == 0)
    }

    @Test func `a rate lets a few leave at a time`() throws {
        let (world, viewer, _, peer) = try call(952)
        let recording = Recording(viewer, .video)
        // One packet a millisecond.
        var next = world.now
        peer.setSendPolicy(
            .deciding { _, now in
                guard now >= next else { return .later(next) }
                next = now + .milliseconds(1)
                return .now
            },
            at: world.now
        )
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 50)
        let sequences = recording.packets.map(\.sequence)
        #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $1 == $0 + 1 })
        #expect(world.node.core.counters[.sendQueueFull] == 0)
        // Without a policy the plain path comes back when the last one has left.
        peer.setSendPolicy(.immediate, at: world.now)
        world.run(for: .milliseconds(50))
        #expect(peer.transport.egress.leavesAtOnce(at: world.now))
    }

    @Test func `a retransmission that waits answers when it leaves`() throws {
        let (world, viewer, _, peer) = try call(953)
        let release = world.now + .milliseconds(200)
        peer.setSendPolicy(
            .deciding { request, now in request.kind == .retransmission && now < release ? .later(release) : .now },
            at: world.now
        )
        world.network.standard = LinkConditions(delay: .milliseconds(10), loss: 0.3)
        world.run(for: .milliseconds(190))
        #expect(peer.transport.egress.waiting.count > 0)
        let sent = world.node.core.counters.retransmissionsSent
        world.network.standard = LinkConditions(delay: .milliseconds(10))
        world.run(for: .seconds(1))
        #expect(world.node.core.counters.retransmissionsSent > sent)
        #expect(peer.transport.egress.waiting.isEmpty)
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 50)
    }

    @Test func `packets of a slot that goes do not wait on`() throws {
        let (world, viewer, publisher, peer) = try call(954)
        let never = world.now + .seconds(3_600)
        peer.setSendPolicy(.deciding { _, _ in .later(never) }, at: world.now)
        world.run(for: .milliseconds(500))
        let egress = peer.transport.egress
        let slots = peer.slots.map(\.parameters)
        #expect(egress.waiting.count > 30)
        for slot in slots { try world.changeSlots(of: viewer, add: [], remove: [slot.mid]) }
        #expect(egress.waiting.isEmpty)
        #expect(world.node.core.schedule.firstSendDue(at: Instant(nanoseconds: .max)) == nil)
        world.remove(viewer)
        world.remove(publisher)
        world.run(for: .seconds(1))
        #expect(world.node.core.isEmpty)
    }

    @Test func `a peer that goes takes its waiting packets along`() throws {
        let (world, viewer, publisher, peer) = try call(955)
        let never = world.now + .seconds(3_600)
        peer.setSendPolicy(.deciding { _, _ in .later(never) }, at: world.now)
        world.run(for: .milliseconds(500))
        #expect(world.node.core.schedule.firstSendDue(at: Instant(nanoseconds: .max)) == peer.id)
        world.remove(viewer)
        world.remove(publisher)
        world.run(for: .seconds(1))
        #expect(peer.transport.egress.waiting.isEmpty)
        #expect(world.node.core.isEmpty)
    }

    @Test func `what is left out while it waits does not leave, and its numbers close`() throws {
        let (world, viewer, _, peer) = try call(957)
        let recording = Recording(viewer, .video)
        let slot = try #require(world.nodeSlot(viewer, .video))
        let release = world.now + .milliseconds(400)
        peer.setSendPolicy(.deciding { _, now in now < release ? .later(release) : .now }, at: world.now)
        world.run(for: .milliseconds(200))
        let newest = try #require(slot.rewriter.newestSequence).rawValue
        let waited = peer.transport.egress.waiting.count
        peer.transport.egress.dropWaitingMedia(of: slot.parameters.ssrc)
        let sent = slot.packetsSent
        world.run(for: .milliseconds(195))
        let waitedInAll = peer.transport.egress.waiting.count
        #expect(waited > 10 && waitedInAll > waited)
        world.run(for: .milliseconds(100))
        #expect(peer.transport.egress.waiting.isEmpty)
        // Sound takes 10 of the first half's packets.
        #expect(slot.packetsSent - sent <= waitedInAll - waited + 10)
        let sequences = recording.packets.map(\.sequence).filter { $0 > newest }
        #expect(sequences.first == newest + 1)
        #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $1 == $0 + 1 })
    }

    /// Several packets of H.264 start a key frame, and some of them may be late.
    @Test(arguments: [[0, 1, 2, 3], [1, 2, 3, 0], [0, 2, 1, 3], [3, 0, 1, 2]])
    func `a key frame makes what waits before it needless, and nothing of itself`(order: [Int]) throws {
        let world = try World(seed: 959)
        let viewer = try world.watch(video: [.standard(.h264)])
        let publisher = try world.publishQuietly(video: [.standard(.h264)])
        #expect(viewer.client?.isConnected == true)
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .h264, ssrc: 7_001))
        func payload(_ first: UInt8) -> [UInt8] { [first, 0x88] + Array(repeating: 0x80, count: 1_000) }
        world.sendSecured(stream.next(payload(0x65)), from: publisher)
        world.run(for: .milliseconds(100))
        #expect(recording.packets.count == 1)

        let peer = try #require(world.nodePeer(viewer))
        peer.transport.egress.pace(100_000, burst: .milliseconds(5), at: world.now)
        for _ in 0..<4 { world.sendSecured(stream.next(payload(0x61)), from: publisher) }
        world.run(for: .milliseconds(30))
        let waiting = peer.transport.egress.waiting.count
        #expect(waiting >= 2)
        let parts = [0x67, 0x65, 0x65, 0x61].enumerated().map { index, first in
            stream.next(step: index == 0 ? 3_000 : 0, marker: index == 3, payload(first))
        }
        for part in order { world.sendSecured(parts[part], from: publisher) }
        world.run(for: .seconds(2))
        let firsts = recording.packets.sorted { $0.sequence < $1.sequence }.map(\.payload[0])
        #expect(firsts.suffix(4) == [0x67, 0x65, 0x65, 0x61] && firsts.count == 1 + (4 - waiting) + 4)
    }

    @Test func `a stream does not begin at a key frame that was left out`() throws {
        let (world, viewer, _, peer) = try call(958)
        let slot = try #require(world.nodeSlot(viewer, .video))
        let release = world.now + .milliseconds(400)
        peer.setSendPolicy(.deciding { _, now in now < release ? .later(release) : .now }, at: world.now)
        slot.wantKeyFrame(at: world.now)
        world.settle(try #require(world.loops.first))
        world.run(for: .milliseconds(300))
        let (sent, decoded) = (slot.packetsSent, viewer.client?.video?.framesDecoded ?? 0)
        // The key frame that it asks for comes after the queue has left.
        slot.queueOverflowed(at: release)
        world.run(for: .milliseconds(110))
        #expect(peer.transport.egress.waiting.isEmpty)
        #expect(!slot.isPlaying && slot.packetsSent == sent)
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 30)
    }

    @Test func `the queue is bounded, and what is not kept any more is dropped and counted`() throws {
        let (world, _, _, peer) = try call(956)
        let release = world.now + .seconds(40)
        peer.setSendPolicy(.deciding { _, now in now < release ? .later(release) : .now }, at: world.now)
        world.run(for: .seconds(39))
        #expect(peer.transport.egress.waiting.count == PacketQueue.packetsMax)
        let counters = world.node.core.counters
        #expect(counters[.sendQueueFull] > 0)
        #expect(counters[.expiredInSendQueue] == 0)
        world.run(for: .seconds(2))
        #expect(peer.transport.egress.waiting.isEmpty)
        #expect(world.node.core.counters[.expiredInSendQueue] > 0)
    }
}
