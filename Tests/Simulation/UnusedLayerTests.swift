import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Layers that nobody wants are paused, and come back for whoever wants them.
@Suite struct UnusedLayerTests {
    private struct Call {
        let world: World
        let publisher: World.Host
        let rids: [RID]
        /// When the publisher was asked to pause or resume, and what.
        var requests: [(at: Instant, paused: [String])] = []
        private var handled = 0

        init(world: World, publisher: World.Host, rids: [RID]) {
            self.world = world
            self.publisher = publisher
            self.rids = rids
        }

        /// Lets time pass, while the publisher does what it is asked to, as a client does after a re-offer.
        mutating func run(for time: Interval) {
            let end = world.now + time
            while world.now < end {
                obey()
                world.run(for: min(.milliseconds(50), end - world.now))
            }
            obey()
        }

        private mutating func obey() {
            for (peer, event) in world.nodeEvents.dropFirst(handled) {
                guard peer == publisher.client?.id, case .unusedLayers(_, let paused) = event else { continue }
                requests.append((world.now, paused.map(\.value).sorted()))
                for rid in rids { publisher.client?.setSending(!paused.contains(rid), layer: rid) }
            }
            handled = world.nodeEvents.count
        }

        var flowing: [String] {
            guard let id = publisher.client?.id,
                let track = world.loops[0].core.peer(id)?.tracks.first(where: { $0.parameters.kind == .video })
            else { return [] }
            return track.streams.filter { $0.isFlowing(at: world.now) }.compactMap(\.rid?.value).sorted()
        }
    }

    private func start(seed: UInt64, loops: Int, canPauseLayers: Bool = true) throws -> Call {
        let world = try World(seed: seed, loops: loops)
        let rids = try ["r0", "r1", "r2"].map { try #require(RID($0)) }
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 1_200_000
        let publisher = try world.publish(settings, rids: rids, layersAscend: true, canPauseLayers: canPauseLayers)
        return Call(world: world, publisher: publisher, rids: rids)
    }

    /// The viewer is on the publisher's loop, or on another one.
    @Test(arguments: [0, 1])
    func `layers that nobody wants rest, and are back when they are wanted`(loop: Int) throws {
        var call = try start(seed: 1_601, loops: 2)
        call.run(for: .seconds(9))
        #expect(call.requests.map(\.paused) == [["r1", "r2"]])
        #expect(call.flowing == ["r0"])

        let viewer = try call.world.watch(loop: loop)
        let recording = Recording(viewer, .video)
        try call.world.connect(viewer, to: call.publisher, layer: .level(0))
        call.run(for: .seconds(8))
        #expect(call.requests.count == 1, "the lowest layer is enough")
        #expect(viewer.client?.video?.framesDecoded ?? 0 > 150)

        let wanted = call.world.now
        try call.world.connect(viewer, to: call.publisher, .video, layer: .level(2))
        call.run(for: .seconds(6))
        #expect(call.requests.last?.paused == [])
        let resumed = try #require(call.requests.last?.at)
        #expect(resumed - wanted < .milliseconds(200))
        #expect(call.flowing == ["r0", "r1", "r2"])
        #expect(recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 } == 2)
        #expect(recording.longestGap(from: wanted) < .milliseconds(100), "the lower layer plays meanwhile")

        try call.world.connect(viewer, to: call.publisher, .video, layer: .level(1))
        call.run(for: .seconds(9))
        #expect(call.requests.last?.paused == ["r2"])
        #expect(call.flowing == ["r0", "r1"])
        #expect(recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 } == 1)

        call.world.remove(viewer)
        call.run(for: .seconds(9))
        #expect(call.requests.last?.paused == ["r1", "r2"])
        #expect(recording.flaws == [])
    }

    @Test func `a layer that one of two viewers wants is not paused`() throws {
        var call = try start(seed: 1_611, loops: 2)
        for (loop, layer) in [(0, 2), (0, 0), (1, 0)] {
            try call.world.connect(try call.world.watch(loop: loop), to: call.publisher, layer: .level(layer))
        }
        call.run(for: .seconds(12))
        #expect(call.requests.isEmpty)
        #expect(call.flowing == ["r0", "r1", "r2"])
    }

    @Test func `a publisher whose signaling cannot ask it keeps all layers`() throws {
        var call = try start(seed: 1_621, loops: 1, canPauseLayers: false)
        call.run(for: .seconds(12))
        #expect(call.requests.isEmpty)
        #expect(call.flowing == ["r0", "r1", "r2"])
    }
}
