import Client
import MediaTypes
import TestSupport
import Testing
import Wire

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

        func send(_ bytes: [UInt8], on label: String) throws {
            let address = DataAddress(peer: peer, channel: try #require(channels[label]))
            let message = DataMessage(bytes, isText: false)
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

    @Test func `a channel of signaling closes rather than miss a message`() throws {
        let receiver = try Receiver(seed: 3, [Self.signaling], rate: 200_000)
        for number in 0..<80 { try receiver.send(Self.message(2, number, count: 10_000), on: "notify") }
        receiver.run(for: .seconds(1))
        #expect(receiver.counters.channelsOverflowed == 1 && receiver.closed > 0)
    }
}
