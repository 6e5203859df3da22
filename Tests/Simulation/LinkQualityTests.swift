import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// The quality of clients' networks as the node tells it, and who counts as there.
@Suite struct LinkQualityTests {
    private func quality(of host: World.Host, in world: World) -> LinkQuality {
        world.nodeEvents.reduce(.unknown) { quality, entry in
            guard entry.0 == host.client?.id, case .qualityChanged(let changed) = entry.1 else { return quality }
            return changed
        }
    }

    @Test func `the direction that loses packets is told`() throws {
        let world = try World(seed: 91)
        let publisher = try world.publish()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(5))
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
        #expect(quality(of: viewer, in: world) == LinkQuality(downlink: .excellent))
        world.network.conditions[publisher.address] = LinkConditions(loss: 0.2)
        world.run(for: .seconds(10))
        #expect(quality(of: publisher, in: world).uplink.rawValue >= LinkQuality.Level.bad.rawValue)
        world.network.conditions[publisher.address] = nil
        world.run(for: .seconds(10))
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
        world.network.conditions[viewer.address] = LinkConditions(loss: 0.2)
        world.run(for: .seconds(10))
        #expect(quality(of: viewer, in: world).downlink.rawValue >= LinkQuality.Level.bad.rawValue)
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
    }

    @Test func `set-ups are timed by phase, and what viewers report is counted by kind`() throws {
        let world = try World(seed: 94)
        let publisher = try world.publish()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        let setup = world.node.core.counters.setup
        let connected: [SetupCounters.Phase] = [.ice, .dtls]
        for phase in connected { #expect(setup.counts(of: phase).reduce(0, +) == 2 && setup.sum(of: phase) > 0) }
        #expect(setup.counts(of: .firstFrame).allSatisfy { $0 == 0 }, "nothing plays")
        try world.connect(viewer, to: publisher)
        world.network.conditions[viewer.address] = LinkConditions(loss: 0.1)
        world.run(for: .seconds(10))
        let counters = world.node.core.counters
        #expect(counters.setup.counts(of: .firstFrame).reduce(0, +) == 1)
        #expect(counters.setup.sum(of: .firstFrame) < 1, "it counts from the connection of the slot")
        for kind in MediaKind.allCases {
            let seconds = counters.downlink.counts(of: .lossRatio, kind).reduce(0, +)
            #expect((1...10).contains(seconds), "once a second at most")
            let loss = counters.downlink.sum(of: .lossRatio, kind) / Double(seconds)
            #expect((0.02...0.25).contains(loss))
            #expect(counters.downlink.counts(of: .jitter, kind).reduce(0, +) == seconds)
            #expect(counters.downlink.counts(of: .roundTrip, kind).reduce(0, +) <= seconds)
        }
    }

    private func setup(of host: World.Host, in world: World) -> PeerSetup? {
        world.nodeEvents.reduce(nil) { setup, entry in
            guard entry.0 == host.client?.id, case .setupAdvanced(let advanced) = entry.1 else { return setup }
            return advanced
        }
    }

    @Test func `the owner is told of each phase of a peer's set-up, a few times`() throws {
        let world = try World(seed: 95)
        let publisher = try world.publish()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(5))
        let published = try #require(setup(of: publisher, in: world))
        let watched = try #require(setup(of: viewer, in: world))
        for times in [published, watched] {
            let order = [times.firstCheck, times.iceConnected, times.dtlsConnected].compactMap(\.self)
            #expect(order.count == 3 && order == order.sorted())
        }
        #expect(published.firstPacketReceived != nil && published.firstFrameReceived != nil)
        #expect(published.firstPacketSent == nil && watched.firstPacketReceived == nil)
        let frame = try #require(watched.firstFrameSent)
        #expect(frame.waited < .seconds(1) && frame.at >= .milliseconds(900) && watched.firstPacketSent != nil)
        let told = world.nodeEvents.count { if case .setupAdvanced = $0.1 { true } else { false } }
        #expect((4...10).contains(told))
    }

    @Test func `a peer that ICE never connected tells how far it came before it closes`() throws {
        let world = try World(seed: 96)
        let viewer = try world.watch()
        world.network.conditions[viewer.address] = LinkConditions(loss: 1)
        world.run(for: .seconds(40))
        let reached = try #require(setup(of: viewer, in: world))
        #expect(reached.firstCheck != nil && reached.iceConnected == nil, "the answer to the first check was lost")
    }

    @Test func `a peer's set-up is kept for a reader that is late`() {
        var waiting: [PeerEvent] = []
        let (early, late) = (PeerSetup(firstCheck: .zero), PeerSetup(firstCheck: .zero, iceConnected: .zero))
        for event in [PeerEvent.setupAdvanced(early), .connected(over: .udp), .setupAdvanced(late)] {
            event.merge(into: &waiting)
        }
        #expect(waiting == [.setupAdvanced(late), .connected(over: .udp)])
        PeerEvent.closed(.requested).merge(into: &waiting)
        #expect(waiting == [.setupAdvanced(late), .closed(.requested)])
    }

    @Test func `a client that nothing arrives from is disconnected before its consent expires`() throws {
        let world = try World(seed: 92)
        let publisher = try world.publish()
        world.run(for: .seconds(5))
        world.network.conditions[publisher.address] = LinkConditions(loss: 1)
        world.run(for: .seconds(9))
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
        world.run(for: .seconds(5))
        #expect(quality(of: publisher, in: world) == .disconnected)
        world.network.conditions[publisher.address] = nil
        world.run(for: .seconds(10))
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
    }

    private func silences(of host: World.Host, in world: World) -> [Bool] {
        world.nodeEvents.compactMap { entry in
            guard entry.0 == host.client?.id, case .silenceChanged(let isSilent) = entry.1 else { return nil }
            return isSilent
        }
    }

    @Test func `a publisher of which nothing comes is told within three seconds, and so is its return`() throws {
        let world = try World(seed: 97)
        let publisher = try world.publish()
        world.run(for: .seconds(5))
        for round in 1...3 {
            world.network.conditions[publisher.address] = LinkConditions(loss: 1)
            world.run(for: .milliseconds(2_200))
            #expect(silences(of: publisher, in: world).count == 2 * round - 2, "a short loss is none")
            world.run(for: .milliseconds(800))
            #expect(silences(of: publisher, in: world).count == 2 * round - 1)
            world.run(for: .seconds(5))
            world.network.conditions[publisher.address] = nil
            world.run(for: .seconds(1))
            #expect(silences(of: publisher, in: world).count == 2 * round)
            world.run(for: .seconds(10))
        }
        #expect(silences(of: publisher, in: world) == [true, false, true, false, true, false])
    }

    @Test(arguments: [0, 0.2])
    func `a publisher that sends nothing for minutes answers, and is not silent`(loss: Double) throws {
        let world = try World(seed: 98)
        let publisher = try world.publish()
        world.run(for: .seconds(3))
        publisher.client?.setSending(false)
        world.network.conditions[publisher.address] = LinkConditions(loss: loss)
        let before = world.node.core.counters.consentChecksSent
        world.run(for: .seconds(180))
        #expect(loss > 0 || silences(of: publisher, in: world).isEmpty)
        #expect(silences(of: publisher, in: world).count <= 6, "five questions in vain are rare")
        let asked = world.node.core.counters.consentChecksSent - before
        #expect((60...700).contains(asked), "about one a second, and more where they are lost")
        // A client that only receives is not asked.
        let viewer = try world.watch()
        world.run(for: .seconds(5))
        world.network.conditions[viewer.address] = LinkConditions(loss: 1)
        world.run(for: .seconds(10))
        #expect(silences(of: viewer, in: world).isEmpty)
    }

    @Test func `a client whose video stands still for minutes is there, and its video comes back`() throws {
        let world = try World(seed: 93)
        let rid = try #require(RID("r0"))
        let publisher = try world.publish(rids: [rid])
        let viewer = try world.watch()
        let recording = Recording(viewer, .video)
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(3))
        publisher.client?.setSending(false, layer: rid)
        world.run(for: .seconds(180))
        let before = recording.packets.count
        for host in [publisher, viewer] {
            #expect(host.client?.closeReason == nil)
            #expect(!world.nodeEvents.contains { $0.0 == host.client?.id && $0.1.isClosed })
        }
        #expect(quality(of: publisher, in: world) == LinkQuality(uplink: .excellent))
        #expect(quality(of: viewer, in: world) == LinkQuality(downlink: .excellent))
        publisher.client?.setSending(true, layer: rid)
        world.run(for: .seconds(3))
        #expect(recording.packets.count > before)
    }
}

extension PeerEvent {
    fileprivate var isClosed: Bool { if case .closed = self { true } else { false } }
}
