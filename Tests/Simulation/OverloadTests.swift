import Base
import Client
import Testing
import Wire

@testable import Forwarding

/// A loop that cannot do all its work, as on a machine that other work starves.
@Suite struct OverloadTests {
    private static let neighbourShare: UInt64 = 1
    private static let bigShare: UInt64 = 2

    /// A small call beside a channel of a high rate and several viewers.
    private struct Calls {
        let world: World
        let neighbour: World.Host
        let neighbourViewers: [World.Host]
        let big: World.Host
        let bigViewers: [World.Host]
        /// The loop of the viewers.
        let loop: Int

        init(seed: UInt64, loops: Int = 1) throws {
            world = try World(seed: seed, loops: loops)
            loop = loops - 1
            var settings = MediaClient.Settings()
            settings.video?.bitrate = 300_000
            neighbour = try world.publish(settings, share: neighbourShare, loop: loops - 1)
            settings.video?.bitrate = 3_000_000
            big = try world.publish(settings, share: bigShare)
            var (small, large): ([World.Host], [World.Host]) = ([], [])
            for _ in 0..<2 { small.append(try world.watch(share: neighbourShare, loop: loops - 1)) }
            for _ in 0..<6 { large.append(try world.watch(share: bigShare, loop: loops - 1)) }
            (neighbourViewers, bigViewers) = (small, large)
            world.run(for: .seconds(1))
            for viewer in small { try world.connect(viewer, to: neighbour) }
            for viewer in large { try world.connect(viewer, to: big) }
            world.run(for: .seconds(3))
        }

        var counters: ForwarderCounters { world.loops[loop].core.counters }
        var gauges: ForwarderGauges { world.loops[loop].core.gauges }
        var drops: UInt64 { world.capacities[loop]?.drops ?? 0 }

        func limit(_ datagramsPerSecond: Double) {
            world.capacities[loop] = LoopCapacity(datagramsPerSecond: datagramsPerSecond, at: world.now)
        }

        func lost(_ viewers: [World.Host], _ kind: MediaKind) -> Int {
            viewers.reduce(0) {
                $0 + ((kind == .audio ? $1.client?.audioReceived : $1.client?.video)?.lost ?? 1_000)
            }
        }
    }

    /// Datagrams a second that both calls without the large one's video take, and more than half as many again; with it
    /// they would take over twice as many.
    private let starved = 1_500.0

    @Test func `on a starved loop the channel that causes it loses its video, and nobody else anything`() throws {
        let calls = try Calls(seed: 401)
        let world = calls.world
        calls.limit(starved)
        world.run(for: .milliseconds(1_200))
        #expect(calls.drops > 50, "the loop is overloaded")
        #expect(calls.gauges.isOverloaded)
        #expect(calls.gauges.heldLayers == 1)
        // What was lost before may come again.
        world.run(for: .milliseconds(500))
        let (drops, video, audio) = (
            calls.drops, calls.lost(calls.neighbourViewers, .video), calls.lost(calls.neighbourViewers, .audio)
        )
        let bigAudio = calls.lost(calls.bigViewers, .audio)
        let recordings = calls.bigViewers.map { Recording($0, .audio) }
        let start = world.now
        world.run(for: .seconds(15))
        #expect(calls.drops == drops)
        #expect(calls.lost(calls.neighbourViewers, .video) == video)
        #expect(calls.lost(calls.neighbourViewers, .audio) == audio)
        #expect(calls.lost(calls.bigViewers, .audio) == bigAudio)
        for recording in recordings { #expect(recording.longestGap(from: start) < .milliseconds(100)) }
        let peer = try #require(world.nodePeer(calls.neighbour))
        #expect(peer.streams.allSatisfy { !$0.shedding.isActive })
        #expect(calls.counters.overloads == 1)
        #expect(calls.counters.overloadLayersShed == 1)
        #expect(calls.counters[DropReason.loopOverload] > 1_000)
        #expect(calls.counters[DropReason.publishRateVideo] == 0)
    }

    @Test func `without samples every call on a starved loop loses packets`() throws {
        let calls = try Calls(seed: 405)
        calls.limit(starved)
        calls.world.capacities[calls.loop]?.isSampled = false
        calls.world.run(for: .seconds(6))
        #expect(calls.lost(calls.neighbourViewers, .audio) > 20)
    }

    @Test func `the video comes back with a key frame once the loop has room again`() throws {
        let calls = try Calls(seed: 402)
        let world = calls.world
        calls.limit(starved)
        world.run(for: .seconds(4))
        #expect(calls.gauges.heldLayers == 1)
        let viewer = try #require(calls.bigViewers.first)
        let recording = Recording(viewer, .video)
        world.run(for: .seconds(1))
        #expect(recording.packets.isEmpty)
        world.capacities[calls.loop]?.datagramsPerSecond = 10_000
        world.run(for: .seconds(10))
        #expect(recording.bySequence.first?.startsKeyFrame == true)
        #expect(recording.flaws == [])
        #expect(recording.packets.count > 500)
        world.run(for: .seconds(7))
        #expect(!calls.gauges.isOverloaded)
        #expect(calls.counters.overloadLayersShed == 1)
    }

    @Test func `a loop that keeps up, or stands still for a moment, leaves nothing out`() throws {
        let calls = try Calls(seed: 403)
        let world = calls.world
        calls.limit(10_000)
        world.run(for: .seconds(5))
        #expect(calls.drops == 0)
        world.capacities[calls.loop]?.datagramsPerSecond = 100
        world.run(for: .milliseconds(100))
        world.capacities[calls.loop]?.datagramsPerSecond = 10_000
        world.run(for: .seconds(5))
        #expect(calls.drops > 0)
        #expect(calls.counters.overloads == 0)
        #expect(calls.counters.overloadLayersShed == 0)
        let streams = [calls.neighbour, calls.big].compactMap { world.nodePeer($0) }.flatMap(\.streams)
        #expect(streams.count == 4)
        #expect(streams.allSatisfy { !$0.shedding.isActive })
    }

    @Test func `of simulcast layers the heaviest goes, and viewers go on with the next`() throws {
        let world = try World(seed: 406)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 3_000_000
        let publisher = try world.publish(settings, rids: try ["q", "h", "f"].map { try #require(RID($0)) })
        let viewers = try (0..<8).map { _ in try world.watch() }
        for viewer in viewers { try world.connect(viewer, to: publisher) }
        world.run(for: .seconds(6))
        // The highest layer makes 4,000 a second of it, the next one 2,600 and requests for what is lost.
        world.capacities[0] = LoopCapacity(datagramsPerSecond: 3_700, at: world.now)
        let peer = try #require(world.nodePeer(publisher))
        let recording = Recording(try #require(viewers.first), .video)
        #expect(world.run(for: .seconds(4)) { world.node.core.gauges.heldLayers > 0 })
        #expect(peer.streams.filter { $0.shedding.isActive }.map(\.rid) == [RID("f")])
        let start = world.now
        world.run(for: .milliseconds(1_500))
        #expect(recording.longestGap(from: start) < .seconds(1))
        let drops = world.capacities[0]?.drops
        world.run(for: .seconds(5))
        #expect(world.capacities[0]?.drops == drops)
        #expect(recording.longestGap(from: start + .milliseconds(1_500)) < .milliseconds(200))
        #expect(!peer.streams.contains { $0.rid == RID("q") && $0.shedding.isActive })
    }

    @Test func `a starved loop has what it plays of another loop left out there`() throws {
        let calls = try Calls(seed: 404, loops: 2)
        let world = calls.world
        calls.limit(starved)
        world.run(for: .milliseconds(1_700))
        #expect(calls.counters.overloadLayersShed == 1)
        let (drops, audio) = (calls.drops, calls.lost(calls.bigViewers, .audio))
        let (packets, carried) = (calls.counters.rtpSent, world.links[0][1]?.packetsCarried ?? 0)
        world.run(for: .seconds(8))
        #expect(drops > 0)
        #expect(calls.drops == drops)
        #expect(calls.lost(calls.bigViewers, .audio) == audio)
        // Two calls' audio, and the small one's video.
        #expect(calls.counters.rtpSent - packets > 8 * (50 * 8 + 30 * 2))
        #expect(world.links[0][1].map { $0.packetsCarried - carried } ?? 0 < 8 * 60)
        #expect(world.loops[0].core.counters[DropReason.loopOverload] > 500)
        let id = try #require(calls.big.client?.id)
        let held = try #require(world.loops[0].core.peer(id))
        #expect(held.streams.contains { $0.shedding.isActive })
        // The loop that plays it goes silent: what it asked for ends by itself.
        for viewer in calls.bigViewers { world.remove(viewer) }
        world.run(for: .seconds(4))
        #expect(held.streams.allSatisfy { !$0.shedding.isActive })
    }
}
