import Base
import Client
import Testing
import Wire

/// A publisher on the first loop of a world, and a viewer on each loop, who see it.
struct CallAcrossLoops {
    let world: World
    let publisher: World.Host
    /// By loop.
    let viewers: [World.Host]

    /// - Parameter prepare: called before the viewers are connected to the publisher.
    init(_ world: World, rids: [RID] = [], _ prepare: (Self) -> Void = { _ in }) throws {
        self.world = world
        let publisher = try world.publish(rids: rids)
        let viewers = try world.loops.indices.map { try world.watch(loop: $0) }
        (self.publisher, self.viewers) = (publisher, viewers)
        prepare(self)
        for viewer in viewers { try world.connect(viewer, to: publisher) }
        let started = world.run(for: .seconds(10)) {
            viewers.allSatisfy { $0.client?.video?.framesDecoded ?? 0 > 0 }
        }
        #expect(started, "seed \(world.seed): every viewer sees a frame")
    }
}
