import Base
import Client
import Media
import MediaTypes
import TURN
import Testing
import Wire

@testable import Forwarding

/// Whole calls of clients that reach the node over TCP only.
@Suite struct StreamCallTests {
    enum Kind: CaseIterable {
        case iceTCP, turnTCP
    }

    /// A world whose hosts are on connections, unless they are told to be on UDP.
    private struct Scene {
        let world: World
        let streams: StreamNetwork

        init(seed: UInt64) throws {
            world = try World(seed: seed)
            streams = StreamNetwork(world)
            world.streams = streams
            world.node.core.startTURN(
                TURNConfiguration(addresses: [World.nodeAddress.ip], reservedPorts: [World.nodeAddress.port]),
                mediaAddresses: [World.nodeAddress]
            )
        }

        /// Opens a connection for a host, and with TURN makes an allocation and binds a channel.
        func open(_ kind: Kind, for host: World.Host) throws -> StreamNetwork.Stream {
            guard kind == .turnTCP else { return streams.open(host) }
            let id = try #require(host.client?.id)
            let credentials = try #require(world.node.core.openTURN(for: id, at: world.now))
            let shim = TURNShim(credentials, peer: World.nodeAddress)
            let stream = streams.open(host, shim)
            for (request, code) in [(shim.allocate, 401), (shim.allocate, 0), ({ shim.bind() }, 0)] {
                streams.send(request(), on: stream)
                world.run(for: .milliseconds(100))
                #expect(shim.code == code)
            }
            shim.isBound = true
            return stream
        }

        /// A publisher on UDP, and a viewer with a connection.
        /// - Parameter startsOnUDP: the viewer does not use its connection yet.
        func start(
            _ kind: Kind,
            startsOnUDP: Bool = false
        ) throws -> (publisher: World.Host, viewer: World.Host, StreamNetwork.Stream) {
            let publisher = try world.publish()
            streams.direct.insert(publisher.address)
            let viewer = try world.watch()
            if startsOnUDP { streams.direct.insert(viewer.address) }
            let stream = try open(kind, for: viewer)
            #expect(world.run(for: .seconds(10)) { viewer.client?.isConnected == true })
            try world.connect(viewer, to: publisher)
            world.run(for: .seconds(3))
            return (publisher, viewer, stream)
        }
    }

    /// Frames of which some packets arrived and others did not, the last frame left out.
    private func partialFrames(_ recording: Recording) -> Int {
        let frames = Dictionary(grouping: recording.packets.compactMap(\.stamp), by: \.frame)
        let last = frames.keys.max()
        return frames.count { $0.key != last && $0.value.count < Int($0.value[0].packetsInFrame) }
    }

    /// The longest delay of the packets that were sent in some time.
    private func longestDelay(_ recording: Recording, sent times: Range<Instant>) -> Interval? {
        recording.packets.compactMap { packet in
            packet.stamp.flatMap { times.contains($0.sentAt) ? packet.arrivedAt - $0.sentAt : nil }
        }.max()
    }

    @Test(arguments: Kind.allCases)
    func `a viewer on a connection connects and gets everything`(kind: Kind) throws {
        let scene = try Scene(seed: 971)
        let (_, viewer, stream) = try scene.start(kind)
        let recording = Recording(viewer, .video)
        scene.world.run(for: .seconds(5))
        let video = try #require(viewer.client?.video)
        #expect(video.framesDecoded > 200 && video.lost == 0 && video.longestGap < .milliseconds(200))
        #expect(viewer.client?.audioReceived?.packets ?? 0 > 350 && viewer.client?.audioReceived?.lost == 0)
        #expect(recording.flaws == [])
        let id = try #require(viewer.client?.id)
        let path = try #require(scene.world.node.core.statistics(of: id, at: scene.world.now)?.path)
        #expect(kind == .iceTCP ? path == stream.path : path.remote == stream.shim?.relayed)
        #expect(scene.streams.metrics.dropped.isEmpty && scene.streams.metrics.ended.isEmpty)
    }

    @Test(arguments: Kind.allCases)
    func `a publisher on a connection is seen by a viewer on UDP`(kind: Kind) throws {
        let scene = try Scene(seed: 972)
        let publisher = try scene.world.publish()
        _ = try scene.open(kind, for: publisher)
        let viewer = try scene.world.watch()
        scene.streams.direct.insert(viewer.address)
        #expect(scene.world.run(for: .seconds(10)) { publisher.client?.isConnected == true })
        try scene.world.connect(viewer, to: publisher)
        scene.world.run(for: .seconds(5))
        let video = try #require(viewer.client?.video)
        #expect(video.framesDecoded > 120 && video.lost == 0)
    }

    @Test(arguments: Kind.allCases, [false, true])
    func `each change between UDP and a connection is told once`(kind: Kind, startsOnUDP: Bool) throws {
        let scene = try Scene(seed: 975)
        let world = scene.world
        let (_, viewer, _) = try scene.start(kind, startsOnUDP: startsOnUDP)
        let id = try #require(viewer.client?.id)
        var told: [PeerEvent] {
            world.nodeEvents.filter { $0.0 == id }.map(\.1).filter {
                switch $0 {
                case .connected, .transportChanged: true
                default: false
                }
            }
        }
        var expected = [PeerEvent.connected(over: startsOnUDP ? .udp : .tcp)]
        #expect(told == expected)
        // To the other one, a restart that changes nothing, and back.
        for (isOnUDP, isChange) in [(!startsOnUDP, true), (!startsOnUDP, false), (startsOnUDP, true)] {
            if isOnUDP {
                scene.streams.direct.insert(viewer.address)
            } else {
                scene.streams.direct.remove(viewer.address)
            }
            try world.restartICE(viewer)
            world.run(for: .seconds(3))
            if isChange { expected.append(.transportChanged(isOnUDP ? .udp : .tcp)) }
            #expect(told == expected)
            let decoded = viewer.client?.video?.framesDecoded ?? 0
            world.run(for: .seconds(1))
            #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 20)
        }
    }

    /// No pair is proven then, so none is selected.
    @Test func `a handshake that moves to another connection ends over TCP`() throws {
        let scene = try Scene(seed: 976)
        let world = scene.world
        let viewer = try world.watch()
        let first = scene.streams.open(viewer)
        #expect(world.run(for: .seconds(5)) { first.carriedHandshake })
        let second = scene.streams.open(viewer)
        try world.restartICE(viewer)
        #expect(world.run(for: .seconds(10)) { viewer.client?.isConnected == true })
        #expect(second.carriedHandshake)
        let id = try #require(viewer.client?.id)
        let connected = world.nodeEvents.filter { $0.0 == id }.map(\.1).filter {
            if case .connected = $0 { true } else { false }
        }
        #expect(connected == [.connected(over: .tcp)])
    }

    @Test(arguments: Kind.allCases)
    func `a client that stops reading costs a bounded memory, and gets a key frame when it goes on`(kind: Kind) throws {
        let scene = try Scene(seed: 973)
        let world = scene.world
        let (publisher, viewer, stream) = try scene.start(kind)
        let (video, audio) = (Recording(viewer, .video), Recording(viewer, .audio))
        stream.toClient.isStalled = true
        world.run(for: .seconds(2))
        let waiting = scene.streams.waiting
        world.run(for: .seconds(4))
        // RTCP and checks of the client's consent are all that is added.
        #expect(scene.streams.waiting < waiting + 60 && waiting < 200, "\(waiting), \(scene.streams.waiting)")
        #expect(stream.toClient.byteCount <= VirtualPipe.capacity)
        #expect(scene.streams.metrics.dropped[.blocked] ?? 0 > 100)
        let made = UInt32(publisher.client?.videoFramesMade ?? 0)
        let resumedAt = world.now
        stream.toClient.isStalled = false
        #expect(world.run(for: .milliseconds(500)) { viewer.client?.video?.newestFrameDecoded ?? 0 >= made })
        world.run(for: .seconds(3))
        #expect(partialFrames(video) <= 1)
        #expect(viewer.client?.isConnected == true && scene.streams.metrics.ended.isEmpty)
        let delay = try #require(longestDelay(audio, sent: resumedAt..<world.now))
        #expect(delay < .milliseconds(150), "\(delay)")
        #expect(video.longestGap(from: resumedAt + .seconds(1)) < .milliseconds(200))
    }

    @Test(arguments: Kind.allCases)
    func `a client on too thin a link gets whole frames only, and live audio`(kind: Kind) throws {
        let scene = try Scene(seed: 974)
        let world = scene.world
        let (_, viewer, stream) = try scene.start(kind)
        let (video, audio) = (Recording(viewer, .video), Recording(viewer, .audio))
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        // Losses from before the connection was used would be repaired for a second.
        world.run(for: .seconds(1))
        let thinAt = world.now
        let repaired = world.node.core.counters.retransmissionsSent
        stream.toClient.rate = 1_000_000
        world.run(for: .seconds(20))
        #expect(scene.streams.metrics.dropped.values.reduce(0, +) > 500)
        #expect(world.node.core.counters.nacksReceived > 0)
        #expect(world.node.core.counters.retransmissionsSent == repaired, "nothing dropped on purpose is sent again")
        // Up to 16 KiB may be in the socket before a packet: 131 ms.
        let delay = try #require(longestDelay(audio, sent: thinAt..<world.now - .seconds(1)))
        #expect(delay < .milliseconds(400), "\(delay)")
        #expect(audio.longestGap(from: thinAt) < .milliseconds(400))
        // A key frame of 31 kB blocks the connection for a quarter of a second, so what follows it is late, and another
        // key frame is required. A viewer may request 5 and one each 3 s: 11 in this time. 15 frames are decoded.
        let after = viewer.client?.video?.framesDecoded ?? 0
        #expect(after >= decoded + 11, "\(after - decoded) frames")
        #expect(partialFrames(video) <= 1, "\(partialFrames(video)) of \(video.packets.count) packets")
    }
}
