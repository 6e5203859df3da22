import Base
import Client
import MediaTypes
import TestSupport
import Testing

@testable import Forwarding

/// Receivers that are slower than the messages for them, over the whole transport.
@Suite struct DataOverflowTests {
    /// A client behind a thin link, with channels that the node opened to it.
    private final class Receiver {
        let world: World
        let host: World.Host
        let peer: PeerID
        /// The node's channels by their labels.
        private(set) var channels: [String: DataChannelID] = [:]

        /// - Parameter rate: of the link in bit/s.
        init(seed: UInt64, _ channels: [DataChannelParameters], rate: Int) throws {
            world = try World(seed: seed)
            var settings = MediaClient.Settings()
            settings.video = nil
            settings.sendsAudio = false
            var thin = LinkConditions()
            thin.rate = rate
            // What the association has in flight fits, so nothing is lost on the link.
            thin.queue = .seconds(60)
            world.network.standard = thin
            let host = try world.publish(settings, hasData: true)
            let peer = try #require(host.client?.id)
            (self.host, self.peer) = (host, peer)
            #expect(world.run(for: .seconds(10)) { host.client?.isConnected == true })
            world.node.core.perform(channels.map { .open(peer, $0) }, at: world.now, into: world.node.batch)
            world.settle(world.node)
            let world = world
            world.run(for: .seconds(20)) { Self.opened(world, peer).count == channels.count }
            self.channels = Self.opened(world, peer)
            #expect(self.channels.count == channels.count)
        }

        private static func opened(_ world: World, _ peer: PeerID) -> [String: DataChannelID] {
            var opened: [String: DataChannelID] = [:]
            for case .opened(let id, let parameters, _, _) in World.Host.dataEvents(of: peer, in: world) {
                opened[parameters.label] = id
            }
            return opened
        }

        func send(_ bytes: [UInt8], on label: String, from source: UInt64 = 0) throws {
            let address = DataAddress(peer: peer, channel: try #require(channels[label]))
            let message = DataMessage(bytes, isText: false, source: source)
            world.node.core.perform([.send(message, to: [address])], at: world.now, into: world.node.batch)
            world.settle(world.node)
        }

        /// What the client received.
        private(set) var received: [[UInt8]] = []
        /// The channels that the client saw close.
        private var closedByClient = 0
        /// The channels that either end closed.
        var closed: Int {
            let events = World.Host.dataEvents(of: peer, in: world)
            return closedByClient + events.count { if case .closed = $0 { true } else { false } }
        }

        /// Lets time pass, and takes the client's messages, so that they do not fill its window.
        func run(for time: Interval) {
            let end = world.now + time
            while world.now < end {
                world.run(for: min(end - world.now, .milliseconds(50)))
                for event in host.dataEvents {
                    switch event {
                    case .message(_, let message): received.append(message.bytes)
                    case .closed: closedByClient += 1
                    case .opened: break
                    }
                }
                host.dataEvents = []
            }
        }
        var counters: DataCounters { world.node.core.counters.data }
    }

    @Test func `a turn sends so many packets with data, and the rest follows`() throws {
        let world = try World(seed: 11)
        var settings = MediaClient.Settings()
        settings.video = nil
        settings.sendsAudio = false
        let hosts = try (0..<140).map { _ in try world.publish(settings, hasData: true) }
        #expect(world.run(for: .seconds(20)) { hosts.allSatisfy { $0.client?.isConnected == true } })
        let core = world.node.core
        let peers = hosts.compactMap { $0.client?.id }
        let parameters = DataChannelParameters(label: "#a")
        core.perform(peers.map { .open($0, parameters) }, at: world.now, into: world.node.batch)
        world.settle(world.node)
        let addresses = {
            world.nodeEvents.compactMap { peer, event -> DataAddress? in
                guard case .data(.opened(let channel, _, _, _)) = event else { return nil }
                return DataAddress(peer: peer, channel: channel)
            }
        }
        #expect(world.run(for: .seconds(20)) { addresses().count == hosts.count })
        let message = DataMessage([UInt8](repeating: 1, count: 30_000), isText: false)
        core.perform([.send(message, to: addresses())], at: world.now, into: world.node.batch)
        let before = core.counters.data.packetsSent
        world.settle(world.node)
        // Four packets to each, as many as the least window has, would be 560. Packets without data do not count.
        let sent = Int(core.counters.data.packetsSent - before)
        #expect((DataBudget.packetsPerTurnMax...DataBudget.packetsPerTurnMax + hosts.count).contains(sent))
        // Those that found none left are served in the next turn, whatever else it does.
        let waiting = core.dataBudget.takeWaiting()
        core.dataBudget.putBack(waiting[...])
        let left = waiting.count
        #expect(left > 0 && core.nextDeadline.map { $0 <= world.now + .milliseconds(1) } == true)
        world.settle(world.node)
        #expect(Int(core.counters.data.packetsSent - before) >= sent + left - 1)
        let hasMessage = { (host: World.Host) in
            host.dataEvents.contains { if case .message = $0 { true } else { false } }
        }
        #expect(world.run(for: .seconds(5)) { hosts.allSatisfy(hasMessage) })
    }

    private static let signaling = DataChannelParameters(label: "notify", priority: 1_024)

    private static func message(_ kind: UInt8, _ number: Int, count: Int) -> [UInt8] {
        [kind, UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
            + [UInt8](repeating: 0, count: count)
    }

    @Test func `messages that a slow receiver cannot take are lost, and its signaling goes on`() throws {
        let labels = ["#a", "#b", "#c", "#d"]
        let receiver = try Receiver(
            seed: 1,
            [Self.signaling] + labels.map { DataChannelParameters(label: $0) },
            rate: 8_000_000
        )
        for number in 0..<60 {
            for label in labels { try receiver.send(Self.message(1, number, count: 10_000), on: label) }
        }
        #expect(receiver.counters.messagesDropped > 100, "of 2.4 MB, 1 MiB may wait")
        for number in 0..<10 {
            try receiver.send(Self.message(2, number, count: 500), on: "notify")
            for label in labels { try receiver.send(Self.message(1, 60 + number, count: 10_000), on: label) }
            receiver.run(for: .milliseconds(50))
        }
        receiver.run(for: .seconds(3))
        let notified = receiver.received.filter { $0.first == 2 }
        #expect(notified == (0..<10).map { Self.message(2, $0, count: 500) }, "all, in their order")
        #expect(receiver.closed == 0 && receiver.counters.channelsOverflowed == 0)
        // The channels go on once there is room.
        try receiver.send([3], on: "#a")
        receiver.run(for: .seconds(1))
        #expect(receiver.received.last == [3])
        #expect(receiver.host.client?.closeReason == nil)
    }

    @Test func `small messages do not take the place of signaling either`() throws {
        let receiver = try Receiver(
            seed: 2,
            [Self.signaling, DataChannelParameters(label: "#a"), DataChannelParameters(label: "#b")],
            rate: 200_000
        )
        for number in 0..<20_000 { try receiver.send([1, UInt8(truncatingIfNeeded: number)], on: "#a") }
        #expect(receiver.counters.messagesDropped > 0)
        try receiver.send([2], on: "notify")
        receiver.run(for: .seconds(3))
        #expect(receiver.received.contains([2]) && receiver.closed == 0)
    }

    @Test(arguments: [DataChannelParameters.Reliability.reliable, .retransmissions(0)])
    func `a receiver that cannot take all loses the messages of who sends most`(
        reliability: DataChannelParameters.Reliability
    ) throws {
        let receiver = try Receiver(
            seed: 4,
            [DataChannelParameters(label: "#a", reliability: reliability)],
            rate: 8_000_000
        )
        for number in 0..<100 {
            try receiver.send(Self.message(2, number, count: 100), on: "#a", from: 2)
            for part in 0..<10 {
                try receiver.send(Self.message(1, number * 10 + part, count: 10_000), on: "#a", from: 1)
            }
            receiver.run(for: .milliseconds(20))
        }
        receiver.run(for: .seconds(3))
        let (few, many) = (receiver.received.count { $0.first == 2 }, receiver.received.count { $0.first == 1 })
        // Those whose turn it is on an unreliable channel make room for the newest, whoever sent them.
        #expect(few >= (reliability == .reliable ? 100 : 80), "of 10 kB in 2 s")
        #expect(many < 500, "10 MB do not fit through 8 Mbit/s in 2 s")
        #expect(receiver.counters.messagesDropped >= 500 && receiver.closed == 0)
    }

    @Test func `a message longer than the queue of an unreliable channel leaves, whoever sends most`() throws {
        let lossy = DataChannelParameters(label: "#a", reliability: .lifetime(milliseconds: 60_000))
        let receiver = try Receiver(seed: 5, [lossy], rate: 200_000)
        let channel = try #require(receiver.channels["#a"])
        let address = DataAddress(peer: receiver.peer, channel: channel)
        // The first one waits when the second one comes.
        let short = DataMessage([2], isText: false, source: 2)
        let long = DataMessage(Self.message(1, 0, count: 250_000), isText: false, source: 1)
        let world = receiver.world
        world.node.core.perform(
            [.send(short, to: [address]), .send(long, to: [address])],
            at: world.now,
            into: world.node.batch
        )
        world.settle(world.node)
        receiver.run(for: .seconds(20))
        #expect(receiver.received.count == 2 && receiver.counters.messagesDropped == 0)
    }

    @Test func `a channel of signaling closes rather than miss a message`() throws {
        let receiver = try Receiver(seed: 3, [Self.signaling], rate: 200_000)
        for number in 0..<80 { try receiver.send(Self.message(2, number, count: 10_000), on: "notify") }
        receiver.run(for: .seconds(1))
        #expect(receiver.counters.channelsOverflowed == 1 && receiver.closed > 0)
    }
}
