import Base
import Client
import Testing
import Wire

@testable import Forwarding

@Suite struct SimulcastTests {
    private static let names = ["q", "h", "f"]

    private func start(
        seed: UInt64,
        conditions: LinkConditions = .perfect
    ) throws -> (world: World, publisher: World.Host, viewer: World.Host, recording: Recording, rids: [RID]) {
        let world = try World(seed: seed)
        world.network.standard = conditions
        let rids = try Self.names.map { try #require(RID($0)) }
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 1_200_000
        let publisher = try world.publish(settings, rids: rids)
        let viewer = try world.watch()
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(5))
        return (world, publisher, viewer, recording, rids)
    }

    private func layer(_ recording: Recording) -> UInt32? {
        recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 }
    }

    @Test func `the richest layer that flows plays, and every change is seamless`() throws {
        let (world, publisher, viewer, recording, rids) = try start(seed: 101)
        #expect(layer(recording) == 2)
        publisher.client?.setSending(false, layer: rids[2])
        world.run(for: .seconds(5))
        #expect(layer(recording) == 1)
        publisher.client?.setSending(false, layer: rids[1])
        world.run(for: .seconds(5))
        #expect(layer(recording) == 0)
        publisher.client?.setSending(true, layer: rids[2])
        world.run(for: .seconds(5))
        #expect(layer(recording) == 2)
        #expect(recording.flaws == [])
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
        #expect(viewer.client?.video?.duplicates == 0)
        let last = try #require(recording.packets.last)
        #expect(world.now - last.arrivedAt < .milliseconds(50))
    }

    @Test func `the layers' own timing is kept across a change`() throws {
        let (world, publisher, _, recording, rids) = try start(seed: 102)
        publisher.client?.setSending(false, layer: rids[2])
        world.run(for: .seconds(6))
        // Timestamps and the times of making differ by the same amount before and after, within a few milliseconds.
        let packets = recording.bySequence.filter { $0.arrivedAt > Instant(nanoseconds: 4_000_000_000) }
        let first = try #require(packets.first)
        let firstMade = try #require(first.stamp?.sentAt)
        for packet in packets {
            guard let made = packet.stamp?.sentAt else { continue }
            let ticks = first.timestamp.distance(to: packet.timestamp)
            let error = Double(ticks) / 90 - (made - firstMade).seconds * 1_000
            #expect(abs(error) < 10, "layer \(String(describing: packet.stamp?.source)) is \(error) ms off")
            if abs(error) >= 10 { break }
        }
    }

    @Test(arguments: [103, 104] as [UInt64])
    func `on a lossy link changes lose and repeat nothing`(seed: UInt64) throws {
        let (world, publisher, viewer, recording, rids) = try start(
            seed: seed,
            conditions: LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(6), loss: 0.02)
        )
        for (sending, index) in [(false, 2), (true, 2), (false, 2), (false, 1)] {
            publisher.client?.setSending(sending, layer: rids[index])
            world.run(for: .seconds(4))
        }
        publisher.client?.setSending(false)
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.duplicates == 0, "seed \(seed)")
        let numbers = recording.bySequence.map(\.sequence)
        #expect(Set(numbers).count == numbers.count)
        let holes = zip(numbers, numbers.dropFirst()).reduce(0) { $0 + Int($1.1 - $1.0 - 1) }
        #expect(holes == 0, "seed \(seed): \(holes) packets never came")
    }

    @Test func `a packet without a layer's name, or with a strange one, starts no stream`() throws {
        let (world, publisher, _, _, _) = try start(seed: 105)
        var nameless = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 77))
        for _ in 0..<5 { world.sendSecured(nameless.next([0x10, 0, 0, 0]), from: publisher) }
        world.run(for: .milliseconds(100))
        #expect(world.node.core.counters[DropReason.unknownStream] == 5)
        #expect(world.nodePeer(publisher)?.track(nameless.mid)?.streams.count == 3)
    }
}
