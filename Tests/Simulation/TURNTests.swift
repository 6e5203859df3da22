import Base
import Client
import MediaTypes
import TURN
import Testing
import Wire

@testable import Forwarding

/// Clients behind the node's own TURN server, on the media port.
@Suite struct TURNTests {
    /// A world whose node is a TURN server. Hosts with a shim reach the node through it only.
    private final class Scene {
        let world: World
        var shims: [TransportAddress: TURNShim] = [:]
        /// Hosts that are not through TURN.
        var direct: Set<TransportAddress> = [World.nodeAddress]
        /// Where the node sent anything.
        var destinations: Set<TransportAddress> = []
        var toClients: [[UInt8]] = []

        init(seed: UInt64) throws {
            world = try World(seed: seed)
            world.node.core.startTURN(
                TURNConfiguration(addresses: [World.nodeAddress.ip], reservedPorts: [World.nodeAddress.port]),
                mediaAddresses: [World.nodeAddress]
            )
            world.alters = { [unowned self] from, bytes in
                direct.contains(from)
                    ? bytes : shims[from]?.relayed == nil ? [0xFF] : shims[from]?.wrap(bytes) ?? [0xFF]
            }
            world.unwraps = { [unowned self] to, bytes in shims[to].map { $0.unwrap(bytes) } ?? bytes }
            world.onTransmit = { [unowned self] from, to, bytes in
                guard from == World.nodeAddress else { return }
                destinations.insert(to)
                if shims[to] != nil { toClients.append(bytes) }
            }
        }

        func publishDirectly() throws -> World.Host {
            let publisher = try world.publish()
            direct.insert(publisher.address)
            return publisher
        }

        /// Gives a host an allocation with a permission.
        func allocate(for host: World.Host) throws -> TURNShim {
            let id = try #require(host.client?.id)
            let credentials = try #require(world.node.core.openTURN(for: id, at: world.now))
            let shim = TURNShim(credentials, peer: World.nodeAddress)
            shims[host.address] = shim
            #expect(exchange(shim.allocate(), shim, host) == 401)
            #expect(exchange(shim.allocate(), shim, host) == 0)
            #expect(exchange(shim.permit(), shim, host) == 0)
            return shim
        }

        /// The code of the response to a request.
        func exchange(_ bytes: [UInt8], _ shim: TURNShim, _ host: World.Host) -> Int? {
            world.send(bytes, from: host)
            world.run(for: .milliseconds(100))
            return shim.code
        }

        func start(seed: UInt64) throws -> (publisher: World.Host, viewer: World.Host, shim: TURNShim) {
            let publisher = try publishDirectly()
            let viewer = try world.watch()
            let shim = try allocate(for: viewer)
            #expect(world.run(for: .seconds(10)) { viewer.client?.isConnected == true })
            try world.connect(viewer, to: publisher)
            return (publisher, viewer, shim)
        }
    }

    @Test func `a viewer with nothing but an allocation sees all video, over indications and over a channel`() throws {
        let scene = try Scene(seed: 901)
        let world = scene.world
        let (_, viewer, shim) = try scene.start(seed: 901)
        world.run(for: .seconds(2))
        #expect(shim.indicationsReceived > 50 && shim.channelDataReceived == 0)
        #expect(scene.exchange(shim.bind(), shim, viewer) == 0)
        shim.isBound = true
        world.run(for: .seconds(5))
        let video = try #require(viewer.client?.video)
        #expect(video.framesDecoded > 150 && video.lost == 0 && video.longestGap < .milliseconds(200))
        #expect(shim.channelDataReceived > 200)
        let id = try #require(viewer.client?.id)
        let path = try #require(world.node.core.statistics(of: id, at: world.now)?.path)
        #expect(path.local.kind == .relayed && path.remote == shim.relayed)
        let counters = try #require(world.node.core.turnCounters)
        let underWay = counters.packetsOut - shim.indicationsReceived - shim.channelDataReceived
        #expect((0..<50).contains(underWay))
        #expect(counters.packetsIn > 10)
        // Nothing but STUN responses, indications and ChannelData leaves to the viewer.
        #expect(scene.toClients.allSatisfy { $0[0] < 4 || $0[0] & 0xF0 == 0x40 })
    }

    @Test func `what a client gets through an allocation has the priority of what is in it`() throws {
        let scene = try Scene(seed: 909)
        let world = scene.world
        let (_, viewer, shim) = try scene.start(seed: 909)
        let core = world.node.core
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: viewer.address)
        for isBound in [false, true] {
            if isBound { #expect(scene.exchange(shim.bind(), shim, viewer) == 0) }
            shim.isBound = isBound
            world.run(for: .milliseconds(200))
            scene.toClients = []
            world.run(for: .seconds(2))
            var video: [SSRC: Int] = [:]
            var control = 0
            for frame in scene.toClients {
                switch core.streamKind(of: unsafe frame.span.bytes, to: path) {
                case .video(let ssrc, _, _): video[ssrc, default: 0] += 1
                case .control: control += 1
                case .audio, .repair: break
                }
            }
            let (ssrc, count) = try #require(video.first)
            #expect(video.count == 1 && count > 50 && control > 0)
            #expect(core.hasAllocation(path))
            let before = try #require(viewer.client?.video?.keyFramesDecoded)
            core.requestKeyFrame(of: ssrc, over: path, at: world.now)
            world.run(for: .seconds(1))
            #expect(viewer.client?.video.map { $0.keyFramesDecoded > before } == true)
        }
        core.closeTURNStream(path, at: world.now)
        #expect(core.turnAllocationCount == 0 && !core.hasAllocation(path))
    }

    @Test func `a publisher behind TURN is seen by a direct viewer`() throws {
        let scene = try Scene(seed: 902)
        let world = scene.world
        let publisher = try world.publish()
        let shim = try scene.allocate(for: publisher)
        #expect(scene.exchange(shim.bind(), shim, publisher) == 0)
        shim.isBound = true
        let viewer = try world.watch()
        scene.direct.insert(viewer.address)
        #expect(world.run(for: .seconds(10)) { publisher.client?.isConnected == true })
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(4))
        let video = try #require(viewer.client?.video)
        #expect(video.framesDecoded > 60 && video.lost == 0)
    }

    /// Other hosts, the node's other ports and special addresses.
    private static let others: [TransportAddress] =
        [
            "127.0.0.1:7000", "0.0.0.0:7000", "169.254.169.254:80", "10.0.0.1:40000", "192.168.0.1:7000", "[::1]:7000",
            "[::]:7000", "[::ffff:127.0.0.1]:7000", "[64:ff9b::7f00:1]:7000", "255.255.255.255:7000", "224.0.0.1:7000",
        ].compactMap { TransportAddress($0) }

    @Test func `an allocation reaches no other address, and no packet leaves for one`() throws {
        let scene = try Scene(seed: 903)
        let (_, viewer, shim) = try scene.start(seed: 903)
        #expect(Self.others.count == 11)
        for address in Self.others {
            let codes = [
                scene.exchange(shim.permit(address), shim, viewer), scene.exchange(shim.bind(address), shim, viewer),
            ]
            #expect(codes.allSatisfy { $0 == 403 || $0 == 443 }, "\(address)")
            scene.world.send(shim.wrap(Array(repeating: 0x80, count: 100), to: address), from: viewer)
        }
        // The media address's other ports: permissions are of addresses, so only the channel is refused.
        let nextPort = TransportAddress(ip: World.nodeAddress.ip, port: World.nodeAddress.port + 1)
        #expect(scene.exchange(shim.bind(nextPort), shim, viewer) == 403)
        scene.world.send(shim.wrap(Array(repeating: 0x80, count: 100), to: nextPort), from: viewer)
        scene.world.run(for: .seconds(1))
        let clients = Set(scene.direct).union([viewer.address])
        #expect(scene.destinations.subtracting(clients).isEmpty)
        #expect(scene.world.node.core.turnCounters?.drops(.forbiddenPeer) == Self.others.count + 1)
    }

    @Test func `an allocation leads to the peer of its own session only`() throws {
        let scene = try Scene(seed: 904)
        let world = scene.world
        let (publisher, viewer, shim) = try scene.start(seed: 904)
        let other = try #require(publisher.client.flatMap { world.credentials[$0.id] })
        // An authentic check for another peer, through the viewer's allocation.
        var check = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 77))
        check.append(.username, "\(other.node.usernameFragment):\(other.client.usernameFragment)")
        check.append(.priority, 1 as UInt32)
        check.append(.iceControlling, 7 as UInt64)
        check.append(.useCandidate)
        check.appendMessageIntegrity(key: Array(other.node.password.utf8))
        check.appendFingerprint()
        let before = world.node.core.counters[DropReason.unknownUsername]
        world.send(shim.wrap(check.bytes), from: viewer)
        world.run(for: .milliseconds(200))
        #expect(world.node.core.counters[DropReason.unknownUsername] == before + 1)
        #expect(world.nodePath(publisher) == publisher.address)
        // Media from an allocation whose path no check of its own has validated.
        let newcomer = try world.watch()
        let second = try scene.allocate(for: newcomer)
        world.vanish(newcomer)
        _ = second
        #expect(world.node.core.turnAllocationCount == 2)
    }

    @Test func `credentials and allocations end with the peer, after its close_notify`() throws {
        let scene = try Scene(seed: 905)
        let world = scene.world
        let (_, viewer, shim) = try scene.start(seed: 905)
        world.run(for: .seconds(1))
        #expect(world.node.core.turnAllocationCount == 1)
        let before = shim.received.count
        world.remove(viewer)
        #expect(world.node.core.turnAllocationCount == 0)
        world.run(for: .milliseconds(100))
        #expect(shim.received.dropFirst(before).contains { (20...63).contains($0[0]) }, "the alert arrived")
        scene.toClients = []
        world.send(shim.allocate(), from: viewer)
        world.run(for: .seconds(2))
        #expect(scene.toClients.isEmpty, "without sessions the node is no TURN server")
    }

    @Test func `credentials of a peer that is never added end too`() throws {
        let scene = try Scene(seed: 906)
        let core = scene.world.node.core
        let id = PeerID(rawValue: 4_711)
        #expect(core.openTURN(for: id, at: scene.world.now) != nil)
        #expect(core.openTURN(for: id, at: scene.world.now) == nil, "once a peer")
        core.removePeer(id, at: scene.world.now, into: scene.world.node.batch)
        core.closeTURNSessions(at: scene.world.now)
        #expect(core.openTURN(for: id, at: scene.world.now) != nil)
    }

    @Test func `without sessions the node answers neither Allocate nor a bare Binding request`() throws {
        let scene = try Scene(seed: 907)
        let world = scene.world
        let address = TransportAddress(ip: IPAddress(v4: 0x0A09_0909), port: 5_000)
        let shim = TURNShim(TURNCredentials(username: "a", password: "b"), peer: World.nodeAddress)
        let requests = [shim.allocate(), shim.request(.binding)]
        for request in requests { world.inject(request, from: address) }
        world.run(for: .seconds(1))
        #expect(!scene.destinations.contains(address))
        // With one, both are answered: clients use their TURN server as a STUN server.
        _ = world.node.core.openTURN(for: PeerID(rawValue: 9), at: world.now)
        for request in requests { world.inject(request, from: address) }
        world.run(for: .seconds(1))
        #expect(scene.destinations.contains(address))
        #expect(world.node.core.turnCounters?.bindings == 1 && world.node.core.turnCounters?.challenges == 1)
    }

    @Test func `a core without a TURN server drops what is for one`() throws {
        let world = try World(seed: 908)
        let shim = TURNShim(TURNCredentials(username: "a", password: "b"), peer: World.nodeAddress)
        shim.isBound = true
        let address = TransportAddress(ip: IPAddress(v4: 0x0A09_0909), port: 5_000)
        world.inject(shim.wrap([1, 2, 3]), from: address)
        world.inject(shim.allocate(), from: address)
        world.run(for: .seconds(1))
        #expect(world.node.core.counters[DropReason.unknownProtocol] == 1)
        #expect(world.node.core.counters[DropReason.unknownUsername] == 1)
        #expect(world.node.core.openTURN(for: PeerID(rawValue: 1), at: world.now) == nil)
    }
}
