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
