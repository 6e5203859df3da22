import Base
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Receivers behind paths that lose packets and their retransmissions are told to show the video later.
@Suite struct PlayoutDelayTests {
    /// What packets of a call's video say, by when they came, over a path that loses packets from second 5 to 15.
    private func told(losses percent: Int) throws -> [(second: Double, minimum: Int?)] {
        let world = try World(seed: 178, estimates: true)
        world.network.standard = LinkConditions(delay: .milliseconds(30))
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        let began = world.now
        var told: [(second: Double, minimum: Int?)] = []
        let track = try #require(viewer.watched(.video))
        let previous = track.tap
        track.tap = { packet, description, now in
            previous?(packet, description, now)
            let delay =
                description.playoutDelay.isPresent
                ? PlayoutDelay(packet.extracting(description.playoutDelay.range)) : nil
            let minimum = delay.map { Int($0.minimumUnits) * 10 }
            told.append(((now - began).seconds, minimum))
        }
        world.run(for: .seconds(5))
        var lossy = world.network.standard
        lossy.loss = Double(percent) / 100
        lossy.lossLength = 4
        world.network.between = { [address = viewer.address] _, to in to == address ? lossy : nil }
        world.run(for: .seconds(10))
        world.network.between = nil
        world.run(for: .seconds(20))
        return told
    }

    @Test func `a path that loses runs of packets delays what is shown, until it is well again`() throws {
        let told = try told(losses: 5)
        #expect(told.filter { $0.second < 5 }.allSatisfy { $0.minimum == nil })
        let lossy = told.filter { (5..<15).contains($0.second) }.compactMap(\.minimum)
        #expect(lossy.count > 16 && lossy.allSatisfy { (170...220).contains($0) })
        #expect(lossy.count * 4 < told.count, "most packets are plain ones")
        let after = told.filter { $0.second > 17 }.compactMap(\.minimum)
        #expect(!after.isEmpty && after.allSatisfy { $0 == 0 })
        #expect(told.filter { $0.second > 32 }.allSatisfy { $0.minimum == nil })
    }

    @Test func `a path without losses delays nothing`() throws {
        #expect(try told(losses: 0).allSatisfy { $0.minimum == nil })
    }
}
