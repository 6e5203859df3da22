import Base
import Client
import MediaTypes
import Testing

@testable import Forwarding

/// What the node tells of the stability of its clients' networks.
@Suite struct NetworkTests {
    private func levels(_ host: World.Host, in world: World) -> [Int] {
        world.nodeEvents.compactMap { peer, event in
            guard peer == host.client?.id, case .networkChanged(let level) = event else { return nil }
            return level
        }
    }

    @Test(arguments: [false, true])
    func `a lossy link is told to the one whose it is, and that it became good again`(isPublisher: Bool) throws {
        let world = try World(seed: 77)
        let publisher = try world.publish()
        let viewer = try world.watch()
        let (affected, other) = isPublisher ? (publisher, viewer) : (viewer, publisher)
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(5))
        #expect(levels(affected, in: world).isEmpty, "seed \(world.seed)")
        world.network.conditions[affected.address] = LinkConditions(loss: 0.3)
        world.run(for: .seconds(6))
        #expect(levels(affected, in: world).last ?? 0 > 0)
        world.network.conditions[affected.address] = nil
        world.run(for: .seconds(15))
        let told = levels(affected, in: world)
        #expect(told.last == 0 && told.count <= 8, "\(told)")
        #expect(levels(other, in: world).isEmpty, "the other one's network is good")
    }

    @Test func `a long way is told, and a good network never is`() throws {
        let world = try World(seed: 78)
        let publisher = try world.publish()
        let viewer = try world.watch()
        let far = try world.watch()
        world.network.conditions[far.address] = LinkConditions(delay: .milliseconds(300))
        world.run(for: .seconds(5))
        for viewer in [viewer, far] { try world.connect(viewer, to: publisher) }
        world.run(for: .seconds(30))
        #expect(levels(far, in: world) == [1])
        #expect(levels(publisher, in: world).isEmpty && levels(viewer, in: world).isEmpty)
    }
}
