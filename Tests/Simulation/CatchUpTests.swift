import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Slots that are to play a stream soon after a key frame of it begin with that one.
@Suite struct CatchUpTests {
    /// A call of which the richest of three layers plays, and the slot.
    private func start(seed: UInt64) throws -> (world: World, publisher: World.Host, viewer: World.Host, slot: SendSlot)
    {
        let world = try World(seed: seed)
        let rids = try ["q", "h", "f"].map { try #require(RID($0)) }
        let publisher = try world.publish(rids: rids, layersAscend: true)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(4))
        let slot = try #require(world.nodeSlot(viewer, .video))
        #expect(slot.playingStream == (try stream("f", of: publisher, world)).id)
        return (world, publisher, viewer, slot)
    }

    private func stream(_ rid: String, of publisher: World.Host, _ world: World) throws -> ReceivedStream {
        try #require(world.nodePeer(publisher)?.streams.first { $0.rid?.value == rid })
    }

    /// Has the publisher send a key frame of a layer, which has come 100 ms before this returns.
    private func sendKeyFrame(of stream: ReceivedStream, _ world: World) {
        let count = stream.keyFrameTimestamp
        stream.wantKeyFrame(at: world.now)
        world.node.core.markDirty(stream.track.id.peer)
        world.settle(world.node)
        #expect(world.run(for: .seconds(1)) { stream.keyFrameTimestamp != count })
        world.run(for: .milliseconds(100))
    }

    @Test func `a layer plays at once from a key frame that has just come, and with its own timing again`() throws {
        let (world, publisher, viewer, slot) = try start(seed: 171)
        let recording = Recording(viewer, .video)
        let lowest = try stream("q", of: publisher, world)
        sendKeyFrame(of: lowest, world)
        let (requests, switchedAt) = (lowest.keyFrameRequests, world.now)
        slot.choose(LayerPreference(cap: .level(0)), at: world.now)
        world.run(for: .milliseconds(50))
        #expect(slot.playingStream == lowest.id)
        world.run(for: .seconds(2))
        #expect(lowest.keyFrameRequests == requests)
        #expect(recording.flaws == [] && viewer.client?.video?.duplicates == 0)
        let packets = recording.bySequence
        let begin = try #require(packets.firstIndex { $0.arrivedAt >= switchedAt && $0.startsKeyFrame })
        let made = packets[begin...].compactMap { $0.stamp?.sentAt }
        #expect(made.first.map { switchedAt - $0 > .milliseconds(90) } == true)
        // The frames between follow at once, and after them each keeps the time at which it was made.
        let first = try #require(packets.first)
        let last = try #require(packets.last)
        for packet in packets[..<begin] + packets.filter({ $0.arrivedAt > switchedAt + .milliseconds(300) }) {
            let ticks = first.timestamp.distance(to: packet.timestamp)
            let since = try #require(packet.stamp).sentAt - (try #require(first.stamp)).sentAt
            #expect(abs(Double(ticks) / 90 - since.seconds * 1_000) < 10)
        }
        #expect(world.now - last.arrivedAt < .milliseconds(50))
    }

    @Test func `a viewer that comes soon after a key frame costs the publisher none`() throws {
        let world = try World(seed: 172)
        let publisher = try world.publish()
        let (early, late) = (try world.watch(), try world.watch())
        world.run(for: .seconds(1))
        try world.connect(early, to: publisher)
        #expect(world.run(for: .seconds(1)) { early.client?.video?.framesDecoded ?? 0 > 3 })
        let made = publisher.client?.keyFramesMade
        try world.connect(late, to: publisher)
        world.run(for: .milliseconds(50))
        #expect(late.client?.video?.framesDecoded ?? 0 > 3)
        world.run(for: .seconds(2))
        #expect(publisher.client?.keyFramesMade == made)
    }

    @Test func `a source that has paused since its key frame is asked for another`() throws {
        let world = try World(seed: 176)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 7_001))
        world.sendSecured(stream.next([0x10, 0, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0xE0, 0x01]), from: publisher)
        world.run(for: .milliseconds(200))
        let received = try #require(world.nodePeer(publisher)?.streams.first { $0.ssrc == stream.ssrc })
        #expect(received.keyFrameTimestamp != nil)
        let requests = received.keyFrameRequests
        try world.connect(viewer, to: publisher)
        world.run(for: .milliseconds(100))
        #expect(received.keyFrameRequests == requests + 1, "no packet comes with which the slot could catch up")
    }

    @Test func `a key frame that came too long ago is not begun with`() throws {
        let (world, publisher, _, slot) = try start(seed: 173)
        let lowest = try stream("q", of: publisher, world)
        sendKeyFrame(of: lowest, world)
        world.run(for: KeyFrameRequester.spacing)
        let requests = lowest.keyFrameRequests
        slot.choose(LayerPreference(cap: .level(0)), at: world.now)
        world.run(for: .milliseconds(200))
        #expect(slot.playingStream == lowest.id && lowest.keyFrameRequests == requests + 1)
    }

    @Test func `nothing that was sent on is sent again`() throws {
        let (world, publisher, _, slot) = try start(seed: 175)
        let lowest = try stream("q", of: publisher, world)
        let highest = try stream("f", of: publisher, world)
        sendKeyFrame(of: lowest, world)
        let requests = lowest.keyFrameRequests
        slot.choose(LayerPreference(cap: .level(0)), at: world.now)
        world.run(for: .milliseconds(40))
        #expect(slot.playingStream == lowest.id)
        sendKeyFrame(of: highest, world)
        slot.choose(LayerPreference(), at: world.now)
        world.run(for: .milliseconds(40))
        #expect(slot.playingStream == highest.id)
        // The key frame of the lowest layer is young enough, but the slot had it.
        slot.choose(LayerPreference(cap: .level(0)), at: world.now)
        world.run(for: .seconds(1))
        #expect(slot.playingStream == lowest.id)
        #expect(lowest.keyFrameRequests > requests)
    }

    @Test func `a pace that carries little of what came since a key frame waits for another`() throws {
        let (world, publisher, _, slot) = try start(seed: 174)
        let highest = try stream("f", of: publisher, world)
        slot.choose(LayerPreference(cap: .level(0)), at: world.now)
        world.run(for: .seconds(1))
        sendKeyFrame(of: highest, world)
        #expect(slot.beginning(of: highest, at: world.now) != nil)
        slot.peer.transport.egress.pace(100_000, burst: .milliseconds(5), at: world.now)
        #expect(slot.beginning(of: highest, at: world.now) == nil)
    }
}
