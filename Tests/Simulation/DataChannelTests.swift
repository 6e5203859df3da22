import Base
import Client
import MediaTypes
import Negotiation
import TestSupport
import Testing

@testable import Forwarding

/// Data channels over the whole transport: ICE, DTLS, SCTP and the network between.
@Suite struct DataChannelTests {
    /// One client with a channel of its own, and what both ends know of it.
    private final class Scene {
        let world: World
        let host: World.Host
        let client: PeerID
        /// Of the client's end and of the node's.
        let ids: (client: DataChannelID, node: DataChannelID)

        init(
            seed: UInt64,
            _ parameters: DataChannelParameters = DataChannelParameters(label: "#x"),
            settings: MediaClient.Settings = MediaClient.Settings(),
            conditions: LinkConditions = .perfect,
            estimates: Bool = false
        ) throws {
            let world = try World(seed: seed, estimates: estimates)
            world.network.standard = conditions
            let host = try world.publish(settings, hasData: true)
            let id = try #require(host.client?.id)
            (self.world, self.host, client) = (world, host, id)
            #expect(world.run(for: .seconds(10)) { host.client?.isConnected == true })
            host.core.perform([.open(id, parameters)], at: world.now, into: host.batch)
            world.settle(host)
            #expect(world.run(for: .seconds(20)) { host.dataEvents.opened != nil })
            let opened = try #require(host.dataEvents.opened)
            let incoming = try #require(Self.events(world, of: id).opened)
            #expect(!opened.isIncoming && incoming.isIncoming)
            #expect(opened.parameters == parameters && incoming.parameters == parameters)
            ids = (opened.id, incoming.id)
        }

        static func events(_ world: World, of id: PeerID) -> [DataEvent] {
            world.nodeEvents.compactMap { peer, event in
                if case .data(let event) = event, peer == id { event } else { nil }
            }
        }
        var nodeEvents: [DataEvent] { Self.events(world, of: client) }

        func sendFromClient(_ bytes: [UInt8], isText: Bool = false) {
            let address = DataAddress(peer: client, channel: ids.client)
            host.core.perform(
                [.send(DataMessage(bytes, isText: isText), to: [address])],
                at: world.now,
                into: host.batch
            )
            world.settle(host)
        }

        func sendFromNode(_ bytes: [UInt8], isText: Bool = false) {
            let address = DataAddress(peer: client, channel: ids.node)
            world.node.core.perform(
                [.send(DataMessage(bytes, isText: isText), to: [address])],
                at: world.now,
                into: world.node.batch
            )
            world.settle(world.node)
        }
    }

    private static func message(_ number: Int, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func `all reliable messages arrive once and in order over a lossy path`(seed: UInt64) throws {
        var conditions = LinkConditions()
        conditions.loss = 0.05
        conditions.duplication = 0.02
        conditions.reordering = 0.05
        conditions.jitter = .milliseconds(5)
        let scene = try Scene(seed: seed, conditions: conditions)
        let counts = [1, 0, 100, 1_160, 1_161, 5_000, 60_000, 262_144, 3]
        for (number, count) in counts.enumerated() {
            let bytes = Self.message(number, count: count)
            scene.sendFromClient(bytes, isText: number % 2 == 0)
            scene.sendFromNode(bytes, isText: number % 2 == 1)
            scene.world.run(for: .milliseconds(700))
        }
        let sent = counts.enumerated().map { Self.message($0.offset, count: $0.element) }
        scene.world.run(for: .seconds(30)) { scene.nodeEvents.messages.count == sent.count }
        scene.world.run(for: .seconds(30)) { scene.host.dataEvents.messages.count == sent.count }
        #expect(scene.nodeEvents.messages.map(\.bytes) == sent, "seed \(seed)")
        #expect(scene.host.dataEvents.messages.map(\.bytes) == sent, "seed \(seed)")
        #expect(scene.nodeEvents.messages.map(\.isText) == sent.indices.map { $0 % 2 == 0 })
        let counters = scene.world.node.core.counters
        #expect(counters.data.associations == 1 && counters.data.messagesReceived == UInt64(sent.count))
        #expect(counters.data.retransmissions > 0 && counters[.malformedSCTP] == 0)
    }

    @Test func `a peer without data channels has no association and no packets of it`() throws {
        let world = try World(seed: 5)
        let host = try world.publish()
        #expect(world.run(for: .seconds(5)) { host.client?.isConnected == true })
        let id = try #require(host.client?.id)
        world.node.core.perform([.open(id, DataChannelParameters(label: "#x"))], at: world.now, into: world.node.batch)
        world.run(for: .seconds(2))
        #expect(world.node.core.peer(id)?.transport.data == nil)
        #expect(world.node.core.counters.data.packetsSent == 0)
        #expect(!world.nodeEvents.contains { if case .data = $0.1 { true } else { false } })
    }

    @Test func `channels close from both ends, and their names may be used again`() throws {
        let scene = try Scene(seed: 6)
        scene.sendFromNode([1])
        let address = DataAddress(peer: scene.client, channel: scene.ids.node)
        scene.world.node.core.perform([.close(address)], at: scene.world.now, into: scene.world.node.batch)
        scene.world.settle(scene.world.node)
        #expect(scene.world.run(for: .seconds(5)) { scene.nodeEvents.closed.count == 1 })
        #expect(scene.world.run(for: .seconds(5)) { scene.host.dataEvents.closed.count == 1 })
        #expect(scene.host.dataEvents.messages.map(\.bytes) == [[1]], "what was queued is sent before")
        #expect(scene.nodeEvents.closed == [.closed(scene.ids.node, label: "#x", .closed)])
        scene.host.core.perform(
            [.open(scene.client, DataChannelParameters(label: "#x"))],
            at: scene.world.now,
            into: scene.host.batch
        )
        scene.world.settle(scene.host)
        #expect(scene.world.run(for: .seconds(5)) { scene.nodeEvents.openedIDs.count == 2 })
        #expect(Set(scene.nodeEvents.openedIDs).count == 2, "with another identifier")
    }

    /// A link of 200 kbit/s without media.
    private static func thinScene(seed: UInt64, _ parameters: DataChannelParameters) throws -> Scene {
        var settings = MediaClient.Settings()
        settings.video = nil
        settings.sendsAudio = false
        var thin = LinkConditions()
        thin.rate = 200_000
        return try Scene(seed: seed, parameters, settings: settings, conditions: thin)
    }

    @Test func `a client's own channel stays when it takes less than others send, and misses the newest messages`()
        throws
    {
        let scene = try Self.thinScene(seed: 7, DataChannelParameters(label: "#x"))
        for number in 0..<80 { scene.sendFromNode(Self.message(number, count: 10_000)) }
        #expect(scene.world.node.core.counters.data.messagesDropped > 20)
        // 512 KiB take 21 s at 200 kbit/s. Messages that are kept would fill the client's window.
        var events: [DataEvent] = []
        for second in 0..<40 {
            if second == 35 { scene.sendFromNode([1]) }
            scene.world.run(for: .seconds(1))
            events = events.suffix(1) + scene.host.dataEvents
            scene.host.dataEvents = []
            #expect(events.closed.isEmpty)
        }
        #expect(events.messages.last?.bytes == [1])
        #expect(scene.nodeEvents.closed.isEmpty)
        #expect(scene.world.node.core.counters.data.channelsOverflowed == 0)
    }

    @Test func `a channel that may lose messages drops the oldest`() throws {
        let parameters = DataChannelParameters(label: "#x", isOrdered: false, reliability: .retransmissions(0))
        let scene = try Self.thinScene(seed: 8, parameters)
        for number in 0..<80 { scene.sendFromNode(Self.message(number, count: 1_000)) }
        scene.world.run(for: .seconds(10))
        #expect(scene.nodeEvents.closed.isEmpty)
        #expect(scene.world.node.core.counters.data.messagesDropped > 40)
        #expect(scene.host.dataEvents.messages.last?.bytes == Self.message(79, count: 1_000), "the newest are kept")
    }

    @Test func `messages that nobody takes stay in the window of their sender`() throws {
        let scene = try Scene(seed: 9)
        // The events hold the credit as long as they are kept.
        for number in 0..<40 {
            scene.sendFromClient(Self.message(number, count: 50_000))
            scene.world.run(for: .milliseconds(200))
        }
        let taken = scene.nodeEvents.messages.count
        #expect((1..<20).contains(taken), "512 KiB of credit")
        #expect(scene.world.node.core.dataBudget.heldBytes > 100_000)
        #expect(scene.world.node.core.dataBudget.heldBytes < 1_500_000)
    }

    @Test func `a peer whose data the node ends is reported once with the reason, and counted`() throws {
        let scene = try Scene(seed: 12)
        let core = scene.world.node.core
        // All data takes too much, and the part of each peer is nothing.
        core.dataBudget.heldBytes += DataBudget.heldBytesMax + 1
        core.dataBudget.peerCount += DataBudget.heldBytesMax
        scene.sendFromClient(Self.message(1, count: 10_000))
        scene.world.run(for: .seconds(1))
        let ends: [DataAssociationEnd] = scene.world.nodeEvents.compactMap { peer, event in
            if case .dataEnded(let end) = event, peer == scene.client { end } else { nil }
        }
        #expect(ends == [.memory] && core.counters.data[.memory] == 1)
        #expect(scene.nodeEvents.closed == [.closed(scene.ids.node, label: "#x", .associationEnded)])
    }

    @Test func `records that are no packets of the association are counted and change nothing`() throws {
        let scene = try Scene(seed: 10)
        var generator = SeededGenerator(seed: 10)
        let transport = try #require(scene.host.core.peer(scene.client)?.transport)
        for count in [1, 11, 12, 16, 100, 1_188] {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            transport.sendRecord(bytes, at: scene.world.now, into: scene.host.batch)
        }
        scene.world.settle(scene.host)
        scene.world.run(for: .seconds(1))
        #expect(scene.world.node.core.counters[.malformedSCTP] == 6)
        scene.sendFromClient([1, 2])
        scene.world.run(for: .seconds(1))
        #expect(scene.nodeEvents.messages.map(\.bytes) == [[1, 2]])
    }

    @Test func `damaged records on the path are dropped, and messages arrive all the same`() throws {
        var generator = SeededGenerator(seed: 11)
        let scene = try Scene(seed: 11)
        scene.world.alters = { _, bytes in
            guard bytes.first == 23, Int.random(in: 0..<5, using: &generator) == 0 else { return bytes }
            var damaged = bytes
            damaged[Int.random(in: 13..<bytes.count, using: &generator)] ^= 1
            return damaged
        }
        for number in 0..<30 {
            scene.sendFromClient(Self.message(number, count: 3_000))
            scene.world.run(for: .milliseconds(100))
        }
        scene.world.run(for: .seconds(30)) { scene.nodeEvents.messages.count == 30 }
        #expect(scene.nodeEvents.messages.map(\.bytes) == (0..<30).map { Self.message($0, count: 3_000) })
        #expect(scene.world.node.core.counters[.malformedDTLS] > 0)
    }

    @Test func `all channels close before the connection when the node ends it`() throws {
        let scene = try Scene(seed: 12)
        scene.sendFromNode([1])
        scene.world.node.core.perform([.closeAll(scene.client)], at: scene.world.now, into: scene.world.node.batch)
        scene.world.settle(scene.world.node)
        let before = scene.world.now
        #expect(scene.world.run(for: .seconds(5)) { scene.host.client?.closeReason != nil })
        #expect(scene.host.dataEvents.messages.map(\.bytes) == [[1]])
        #expect(scene.host.dataEvents.closed == [.closed(scene.ids.client, label: "#x", .closed)])
        #expect(scene.world.now - before < .milliseconds(700))
        #expect(scene.world.node.core.peerCount == 0)
    }

    @Test func `all channels close within half a second when the client does not answer`() throws {
        let scene = try Scene(seed: 13)
        scene.world.vanish(scene.host)
        scene.world.node.core.perform([.closeAll(scene.client)], at: scene.world.now, into: scene.world.node.batch)
        scene.world.settle(scene.world.node)
        scene.world.run(for: .milliseconds(450))
        #expect(scene.world.node.core.peerCount == 1)
        scene.world.run(for: .milliseconds(100))
        #expect(scene.world.node.core.peerCount == 0)
        #expect(scene.world.node.core.dataBudget.queuedBytes == 0 && scene.world.node.core.dataBudget.peerCount == 0)
    }

    @Test func `a client has 128 channels at most`() throws {
        let scene = try Scene(seed: 14)
        let more = (0..<140).map { DataCommand.open(scene.client, DataChannelParameters(label: "#\($0)")) }
        scene.host.core.perform(more, at: scene.world.now, into: scene.host.batch)
        scene.world.settle(scene.host)
        scene.world.run(for: .seconds(5))
        #expect(scene.nodeEvents.openedIDs.count == 128)
        #expect(scene.host.dataEvents.closed.count == 13, "those beyond are refused at once")
    }

    @Test func `bulk data leaves video of the same viewer its part of a thin path`() throws {
        let world = try World(seed: 15, estimates: true)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 600_000
        let publisher = try world.publish(settings)
        let viewer = try world.watch(hasData: true)
        try world.connect(viewer, to: publisher)
        var thin = LinkConditions()
        thin.rate = 1_500_000
        world.network.conditions[viewer.address] = thin
        let id = try #require(viewer.client?.id)
        #expect(world.run(for: .seconds(10)) { viewer.client?.video?.framesDecoded ?? 0 > 30 })
        let parameters = DataChannelParameters(label: "#x")
        world.node.core.perform([.open(id, parameters)], at: world.now, into: world.node.batch)
        world.settle(world.node)
        let opened = { World.Host.dataEvents(of: id, in: world).opened }
        #expect(world.run(for: .seconds(10)) { opened() != nil })
        let address = DataAddress(peer: id, channel: try #require(opened()).id)
        let framesBefore = viewer.client?.video?.framesDecoded ?? 0
        for number in 0..<100 {
            let message = DataMessage(Self.message(number, count: 20_000), isText: false)
            world.node.core.perform([.send(message, to: [address])], at: world.now, into: world.node.batch)
            world.settle(world.node)
            world.run(for: .milliseconds(200))
            if !World.Host.dataEvents(of: id, in: world).closed.isEmpty { break }
        }
        let frames = (viewer.client?.video?.framesDecoded ?? 0) - framesBefore
        #expect(viewer.dataEvents.messages.count > 5, "data goes on")
        #expect(frames > 150, "\(frames) frames")
        #expect(viewer.client?.audioReceived?.lost ?? 1_000 < 20)
    }
}

extension World.Host {
    /// What the node reported of a peer's data channels.
    static func dataEvents(of id: PeerID, in world: World) -> [DataEvent] {
        world.nodeEvents.compactMap { peer, event in
            if case .data(let event) = event, peer == id { event } else { nil }
        }
    }
}

extension [DataEvent] {
    fileprivate var opened: (id: DataChannelID, parameters: DataChannelParameters, isIncoming: Bool)? {
        for case .opened(let id, let parameters, let isIncoming, _) in self { return (id, parameters, isIncoming) }
        return nil
    }
    fileprivate var openedIDs: [DataChannelID] {
        compactMap { if case .opened(let id, _, _, _) = $0 { id } else { nil } }
    }
    fileprivate var messages: [DataMessage] {
        compactMap { if case .message(_, let message) = $0 { message } else { nil } }
    }
    fileprivate var closed: [DataEvent] { filter { if case .closed = $0 { true } else { false } } }
}
