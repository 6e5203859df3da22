import Base
import Client
import MediaTypes
import Testing

@testable import Forwarding

@Suite struct CallTests {
    /// A call of one publisher and some viewers whose media flows.
    private func startCall(seed: UInt64, viewers count: Int, _ prepare: (World) -> Void = { _ in }) throws -> (
        world: World, publisher: World.Host, viewers: [World.Host]
    ) {
        let world = try World(seed: seed)
        prepare(world)
        let publisher = try world.publish()
        let viewers = try (0..<count).map { _ in try world.watch() }
        for viewer in viewers { try world.connect(viewer, to: publisher) }
        let started = world.run(for: .seconds(10)) {
            viewers.allSatisfy { $0.client?.video?.framesDecoded ?? 0 > 0 }
        }
        #expect(started, "seed \(seed): every viewer sees a frame")
        return (world, publisher, viewers)
    }

    @Test func `a viewer on a perfect network gets every packet and frame`() throws {
        let (world, _, viewers) = try startCall(seed: 1, viewers: 1)
        world.run(for: .seconds(10))
        let video = try #require(viewers[0].client?.video)
        #expect(video.lost == 0)
        #expect(video.duplicates == 0)
        #expect(video.framesDecoded > 290)
        #expect(video.longestGap < .milliseconds(60))
        let audio = try #require(viewers[0].client?.audioReceived)
        #expect(audio.lost == 0)
        #expect(audio.packets > 490)
    }

    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func `through loss, jitter, reordering and duplication every packet arrives once`(seed: UInt64) throws {
        let (world, publisher, viewers) = try startCall(seed: seed, viewers: 5) { world in
            world.network.standard = LinkConditions(
                delay: .milliseconds(25),
                jitter: .milliseconds(8),
                loss: 0.03,
                duplication: 0.02,
                reordering: 0.02
            )
        }
        world.run(for: .seconds(20))
        publisher.client?.setSending(false)
        world.run(for: .seconds(2))
        for viewer in viewers {
            let video = try #require(viewer.client?.video)
            #expect(video.duplicates == 0, "seed \(seed)")
            #expect(video.lost <= 2, "seed \(seed): missing \(video.missing) of \(video.packets)")
            #expect(video.framesDecoded > 590, "seed \(seed): \(video.framesDecoded) frames")
        }
        #expect(world.node.core.counters.retransmissionsSent > 0)
        #expect(world.node.core.counters.retransmissionsReceived > 0)
    }

    @Test func `a viewer that joins late starts with a key frame made for it`() throws {
        let (world, publisher, _) = try startCall(seed: 21, viewers: 1)
        world.run(for: .seconds(5))
        let keyFramesBefore = publisher.client?.keyFramesMade ?? 0
        let late = try world.watch()
        try world.connect(late, to: publisher)
        let joined = world.now
        #expect(world.run(for: .seconds(2)) { late.client?.video?.framesDecoded ?? 0 > 0 })
        #expect(world.now - joined < .milliseconds(700))
        #expect(publisher.client?.keyFramesMade == keyFramesBefore + 1)
    }

    @Test func `a hundred viewers that join together cost the publisher few key frames`() throws {
        let (world, publisher, viewers) = try startCall(seed: 22, viewers: 100)
        world.run(for: .seconds(2))
        #expect(publisher.client?.keyFramesMade ?? 0 <= 4)
        for viewer in viewers { #expect(viewer.client?.video?.lost == 0) }
    }

    @Test func `a viewer stays through its publisher's replacement without a new negotiation`() throws {
        let (world, first, viewers) = try startCall(seed: 31, viewers: 1)
        let viewer = viewers[0]
        world.run(for: .seconds(3))
        world.remove(first)
        world.run(for: .seconds(1))
        var settings = MediaClient.Settings()
        settings.sourceNumber = 2
        let second = try world.publish(settings)
        try world.connect(viewer, to: second)
        let decodedBefore = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(5))
        let video = try #require(viewer.client?.video)
        #expect(video.switches == 1)
        #expect(video.framesDecoded > decodedBefore + 130)
        #expect(video.lost == 0)
        #expect(viewer.client?.isConnected == true)
        // One unbroken stream: nothing was taken for lost across the switch.
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
    }

    @Test func `media goes on after an outage of two seconds`() throws {
        let (world, publisher, viewers) = try startCall(seed: 41, viewers: 1)
        world.network.conditions[publisher.address] = LinkConditions(
            outages: [world.now + .seconds(2)..<world.now + .seconds(4)])
        world.run(for: .seconds(10))
        let video = try #require(viewers[0].client?.video)
        let last = try #require(video.lastDecodedAt)
        #expect(world.now - last < .milliseconds(100))
        #expect(video.longestGap < .milliseconds(2_700))
    }

    @Test func `a peer that vanishes is closed after its consent expires and leaves nothing`() throws {
        let (world, _, viewers) = try startCall(seed: 51, viewers: 2)
        world.vanish(viewers[0])
        world.run(for: .seconds(29))
        #expect(world.node.core.peerCount == 3)
        world.run(for: .seconds(6))
        #expect(world.node.core.peerCount == 2)
        #expect(world.nodeEvents.contains { $0.1 == .closed(.consentExpired) })
    }

    @Test func `a client that never connects is closed when its time is up`() throws {
        let world = try World(seed: 52)
        world.network.standard.loss = 1
        _ = try world.watch()
        world.run(for: .seconds(40))
        #expect(world.node.core.peerCount == 0)
        #expect(world.nodeEvents.map(\.1) == [.setupAdvanced(PeerSetup()), .closed(.setupTimedOut)])
    }

    @Test func `a close_notify ends the peer at once`() throws {
        let (world, publisher, viewers) = try startCall(seed: 53, viewers: 1)
        let viewer = viewers[0]
        viewer.core.removePeer(try #require(viewer.client?.id), at: world.now, into: viewer.batch)
        world.run(for: .seconds(1))
        #expect(world.nodeEvents.contains { $0.1 == .closed(.closedByPeer) })
        #expect(world.node.core.peerCount == 1)
        _ = publisher
    }

    @Test func `after two hundred joins and leaves the core holds nothing`() throws {
        let world = try World(seed: 61)
        for _ in 0..<100 {
            let publisher = try world.publish()
            let viewer = try world.watch()
            try world.connect(viewer, to: publisher)
            world.run(for: .milliseconds(300))
            world.remove(publisher)
            world.remove(viewer)
        }
        world.run(for: .seconds(1))
        #expect(world.node.core.peerCount == 0)
        #expect(world.node.core.isEmpty)
    }
}
