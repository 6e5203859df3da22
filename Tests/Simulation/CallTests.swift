import Client
import Testing
import Wire

@testable import Forwarding

@Suite struct CallTests {
    @Test func `a viewer on a perfect network gets every packet and frame`() throws {
        let world = try World(seed: 1)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        #expect(world.run(for: .seconds(3)) { viewer.client?.video?.framesDecoded ?? 0 > 0 })
        world.run(for: .seconds(10))
        let video = try #require(viewer.client?.video)
        #expect(video.lost == 0)
        #expect(video.duplicates == 0)
        #expect(video.framesDecoded > 290)
        #expect(video.longestGap < .milliseconds(60))
        let audio = try #require(viewer.client?.audioReceived)
        #expect(audio.lost == 0)
        #expect(audio.packets > 490)
    }
}
