import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Random lives of a node: whatever happens, nobody gets a packet twice, tables stay bounded and nothing remains.
@Suite struct ScenarioTests {
    @Test(arguments: Array(1...8) as [UInt64])
    func `random joins, leaves, connections, outages and restarts keep every rule`(seed: UInt64) throws {
        let world = try World(seed: seed &* 1_000)
        var generator = SeededGenerator(seed: seed)
        world.network.standard = LinkConditions(
            delay: .milliseconds(Int.random(in: 1...60, using: &generator)),
            jitter: .milliseconds(Int.random(in: 0...10, using: &generator)),
            loss: .random(in: 0...0.05, using: &generator),
            duplication: 0.01,
            reordering: 0.01
        )
        var publishers: [World.Host] = []
        var viewers: [World.Host] = []
        var gone: [World.Host] = []
        var sources: UInt32 = 0
        for _ in 0..<60 {
            switch Int.random(in: 0..<12, using: &generator) {
            case 0...1 where publishers.count < 3:
                sources += 1
                var settings = MediaClient.Settings()
                settings.sourceNumber = sources
                settings.video?.bitrate = 200_000
                settings.video?.framesPerSecond = 15
                let rids = Bool.random(using: &generator) ? ["a", "b"].compactMap { RID($0) } : []
                publishers.append(try world.publish(settings, rids: rids))
            case 2...3 where viewers.count < 5: viewers.append(try world.watch())
            case 4, 5, 6:
                guard let viewer = viewers.randomElement(using: &generator), isPresent(viewer, in: world) else {
                    continue
                }
                let publisher = publishers.filter { isPresent($0, in: world) }.randomElement(using: &generator)
                try world.connect(viewer, to: publisher)
            case 7:
                guard let host = (publishers + viewers).randomElement(using: &generator), isPresent(host, in: world)
                else { continue }
                try world.restartICE(host)
            case 8:
                guard let host = (publishers + viewers).randomElement(using: &generator) else { continue }
                var link = world.network.standard
                let start = world.now + .milliseconds(Int.random(in: 0...200, using: &generator))
                link.outages = [start..<start + .milliseconds(Int.random(in: 10...2_500, using: &generator))]
                world.network.conditions[host.address] = link
            case 9 where publishers.count > 1:
                let host = publishers.remove(at: Int.random(in: 0..<publishers.count, using: &generator))
                if Bool.random(using: &generator) { world.remove(host) } else { world.vanish(host) }
                gone.append(host)
            case 10 where viewers.count > 1:
                let host = viewers.remove(at: Int.random(in: 0..<viewers.count, using: &generator))
                if Bool.random(using: &generator) { world.remove(host) } else { world.vanish(host) }
                gone.append(host)
            case 11:
                publishers.randomElement(using: &generator)?.client?.setSending(.random(using: &generator))
            default: break
            }
            world.run(for: .milliseconds(Int.random(in: 20...400, using: &generator)))
            check(world, viewers, seed: seed)
        }
        check(world, viewers + gone, seed: seed)
        for host in publishers + viewers { world.remove(host) }
        // Those that vanished are found out when their consent expires.
        world.run(for: .seconds(36))
        #expect(world.node.core.peerCount == 0, "seed \(seed)")
        #expect(world.node.core.isEmpty, "seed \(seed)")
        #expect(world.node.core.gauges.historyBytes == 0, "seed \(seed)")
        let closed = world.nodeEvents.filter { if case .closed = $0.1 { true } else { false } }.map(\.0)
        #expect(Set(closed).count == closed.count, "seed \(seed): a peer is closed once")
    }

    private func isPresent(_ host: World.Host, in world: World) -> Bool {
        host.client.map { world.node.core.peer($0.id) != nil && host.core.peer($0.id) != nil } ?? false
    }

    private func check(_ world: World, _ viewers: [World.Host], seed: UInt64) {
        for viewer in viewers {
            #expect(viewer.client?.video?.duplicates ?? 0 == 0, "seed \(seed)")
            #expect(viewer.client?.audioReceived?.duplicates ?? 0 == 0, "seed \(seed)")
            #expect(viewer.client?.video?.unreadable ?? 0 == 0, "seed \(seed)")
        }
        let gauges = world.node.core.gauges
        #expect(gauges.historyBytes < (gauges.receivedTracks + 16) * 1024 * 1024, "seed \(seed)")
        #expect(gauges.peers == world.node.core.peerCount)
    }
}
