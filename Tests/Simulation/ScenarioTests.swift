import Base
import Client
import MediaTypes
import SeedSupport
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Random lives of a node: whatever happens, nobody gets a packet twice, tables stay bounded and nothing remains.
@Suite struct ScenarioTests {
    @Test(arguments: Seeds.cases(1...8))
    func `random joins, leaves, connections, outages and restarts keep every rule`(seeds: Seeds) async {
        let failures = await seeds.failures(of: Self.self) { try NodeScenario($0).perform() }
        for failure in failures { Issue.record("\(failure)") }
    }
}

/// One life of a node, drawn from a seed.
private final class NodeScenario {
    private let run: SeededRun
    private let world: World
    private var publishers: [World.Host] = []
    private var viewers: [World.Host] = []
    private var gone: [World.Host] = []
    private var sources: UInt32 = 0

    init(_ run: SeededRun) throws {
        self.run = run
        world = try World(seed: run.seed &* 1_000)
        var generator = SeededGenerator(seed: run.seed)
        world.network.standard = LinkConditions(
            delay: .milliseconds(Int.random(in: 1...60, using: &generator)),
            jitter: .milliseconds(Int.random(in: 0...10, using: &generator)),
            loss: .random(in: 0...0.05, using: &generator),
            duplication: 0.01,
            reordering: 0.01
        )
    }

    func perform() throws {
        try run.takeSteps(60) { generator in
            try act(&generator)
            world.run(for: .milliseconds(Int.random(in: 20...400, using: &generator)))
            check(viewers)
        }
        check(viewers + gone)
        for host in publishers + viewers { world.remove(host) }
        // Those that vanished are found out when their consent expires.
        world.run(for: .seconds(36))
        run.expect(world.node.core.peerCount == 0, "no peer is left")
        run.expect(world.node.core.isEmpty, "nothing is left")
        run.expect(world.node.core.gauges.historyBytes == 0, "no packet is left")
        let closed = world.nodeEvents.filter { if case .closed = $0.1 { true } else { false } }.map(\.0)
        run.expect(Set(closed).count == closed.count, "a peer is closed once")
    }

    private func act(_ generator: inout SeededGenerator) throws {
        switch Int.random(in: 0..<12, using: &generator) {
        case 0...1 where publishers.count < 3:
            sources += 1
            var settings = MediaClient.Settings()
            settings.sourceNumber = sources
            settings.video?.bitrate = 200_000
            settings.video?.framesPerSecond = 15
            let rids = Bool.random(using: &generator) ? ["a", "b"].compactMap { RID($0) } : []
            publishers.append(try world.publish(settings, rids: rids))
            run.note("publisher \(sources) joins with \(rids.count) layers")
        case 2...3 where viewers.count < 5:
            let viewer = try world.watch()
            run.note("viewer \(viewer.address) joins")
            viewers.append(viewer)
        case 4, 5, 6:
            guard let viewer = viewers.randomElement(using: &generator), isPresent(viewer) else { return }
            let publisher = publishers.filter(isPresent).randomElement(using: &generator)
            run.note("\(viewer.address) watches \(publisher.map { "\($0.address)" } ?? "nobody")")
            try world.connect(viewer, to: publisher)
        case 7:
            guard let host = (publishers + viewers).randomElement(using: &generator), isPresent(host) else { return }
            run.note("\(host.address) restarts ICE")
            try world.restartICE(host)
        case 8:
            guard let host = (publishers + viewers).randomElement(using: &generator) else { return }
            var link = world.network.standard
            let start = world.now + .milliseconds(Int.random(in: 0...200, using: &generator))
            let outage = start..<start + .milliseconds(Int.random(in: 10...2_500, using: &generator))
            link.outages = [outage]
            run.note("\(host.address) is cut off for \(outage.upperBound - start)")
            world.network.conditions[host.address] = link
        case 9 where publishers.count > 1:
            leave(publishers.remove(at: Int.random(in: 0..<publishers.count, using: &generator)), &generator)
        case 10 where viewers.count > 1:
            leave(viewers.remove(at: Int.random(in: 0..<viewers.count, using: &generator)), &generator)
        case 11:
            guard let host = publishers.randomElement(using: &generator) else { return }
            let isSending = Bool.random(using: &generator)
            run.note("\(host.address) \(isSending ? "sends" : "stops sending")")
            host.client?.setSending(isSending)
        default: break
        }
    }

    private func leave(_ host: World.Host, _ generator: inout SeededGenerator) {
        let isAnnounced = Bool.random(using: &generator)
        run.note("\(host.address) \(isAnnounced ? "leaves" : "vanishes")")
        if isAnnounced { world.remove(host) } else { world.vanish(host) }
        gone.append(host)
    }

    private func isPresent(_ host: World.Host) -> Bool {
        host.client.map { world.node.core.peer($0.id) != nil && host.core.peer($0.id) != nil } ?? false
    }

    private func check(_ viewers: [World.Host]) {
        for viewer in viewers {
            run.expect(viewer.client?.video?.duplicates ?? 0 == 0, "\(viewer.address) gets video once")
            run.expect(viewer.client?.audioReceived?.duplicates ?? 0 == 0, "\(viewer.address) gets audio once")
            run.expect(viewer.client?.video?.unreadable ?? 0 == 0, "\(viewer.address) reads all video")
        }
        let gauges = world.node.core.gauges
        run.expect(gauges.historyBytes < (gauges.receivedTracks + 16) * 1024 * 1024, "the history is bounded")
        run.expect(gauges.peers == world.node.core.peerCount, "the gauge counts the peers")
    }
}
