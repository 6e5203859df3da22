import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// A subscriber gets what its network carries.
@Suite struct SendRateTests {
    private static let rids = ["h", "m", "l"].compactMap { RID($0) }

    /// A simulcast publisher of about 0.5, 0.9 and 1.7 Mbit/s, and a viewer behind a bottleneck.
    private func call(_ seed: UInt64, rate: Int) throws -> (World, viewer: World.Host, Peer) {
        let world = try World(seed: seed, estimates: true)
        let publisher = try world.publish(rids: Self.rids)
        world.run(for: .seconds(3))
        let viewer = try world.watch()
        world.network.conditions[viewer.address] = LinkConditions(delay: .milliseconds(50), rate: rate)
        try world.connect(viewer, to: publisher)
        return (world, viewer, try #require(world.nodePeer(viewer)))
    }

    private func playing(_ peer: Peer) -> String? {
        peer.slots.first { $0.parameters.kind == .video }?.playingRID?.value
    }

    @Test(arguments: [(3_000_000, "l"), (1_500_000, "m"), (800_000, "h")], [31, 32] as [UInt64])
    func `the best layer that fits plays within a second`(_ link: (rate: Int, rid: String), seed: UInt64) throws {
        let (world, viewer, peer) = try call(seed, rate: link.rate)
        // The transport connects within five round trips.
        world.run(for: .milliseconds(500 + 1_000))
        #expect(playing(peer) == link.rid)
        world.run(for: .seconds(20))
        #expect(playing(peer) == link.rid)
        #expect(viewer.client?.video?.lost == 0)
        #expect(viewer.client?.video?.longestGap ?? .seconds(9) < .milliseconds(500))
        let sending = peer.sendingStatistics(at: world.now)
        #expect(sending.feedback == .transportCC)
        #expect(sending.queueDelay < .milliseconds(30))
    }

    @Test func `a link that halves loses no packet, and the picture returns with the link`() throws {
        let (world, viewer, peer) = try call(41, rate: 3_000_000)
        world.run(for: .seconds(5))
        #expect(playing(peer) == "l")
        world.network.conditions[viewer.address]?.rate = 1_400_000
        world.run(for: .milliseconds(1_500))
        #expect(playing(peer) == "m")
        #expect(peer.sendingStatistics(at: world.now).queueDelay < .milliseconds(50))
        #expect(viewer.client?.video?.lost == 0)
        world.run(for: .milliseconds(500))
        world.network.conditions[viewer.address]?.rate = 3_000_000
        world.run(for: .seconds(5))
        #expect(playing(peer) == "l")
        #expect(viewer.client?.video?.longestGap ?? .seconds(9) < .milliseconds(500))
    }

    @Test func `layers that the link does not carry any more make no long queue while lower ones are awaited`() throws {
        let (world, viewer, peer) = try call(45, rate: 3_000_000)
        world.run(for: .seconds(5))
        #expect(playing(peer) == "l")
        // Key frame requests reach the publisher late.
        let publisher = try #require(world.hosts.values.first { $0 !== viewer && $0.client != nil })
        world.network.conditions[publisher.address] = LinkConditions(delay: .milliseconds(400))
        world.run(for: .seconds(2))
        world.network.conditions[viewer.address]?.rate = 600_000
        var longest = Interval.zero
        for _ in 0..<100 {
            world.run(for: .milliseconds(50))
            longest = max(longest, peer.transport.egress.queueDelay)
        }
        // The key frame of the lower layer waits until the path's queue is drained.
        #expect(longest < .milliseconds(1_100))
        #expect(playing(peer) == "h")
        let slot = try #require(peer.slots.first { $0.parameters.kind == .video })
        #expect(slot.temporalIDBeforeLimit == nil)
    }

    @Test func `an operator's limit takes effect at once and ends with it`() throws {
        let (world, _, peer) = try call(42, rate: 5_000_000)
        world.run(for: .seconds(5))
        #expect(playing(peer) == "l")
        peer.setSendRateMax(800_000, at: world.now)
        world.run(for: .seconds(1))
        #expect(playing(peer) == "h")
        #expect(peer.sendingStatistics(at: world.now).limit == .maximum)
        peer.setSendRateMax(nil, at: world.now)
        world.run(for: .seconds(5))
        #expect(playing(peer) == "l")
    }

    @Test func `a picture that begins and stands still is not called limited by the network`() throws {
        let world = try World(seed: 44, estimates: true)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 20_000
        settings.sendsAudio = false
        let publisher = try world.publish(settings)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        let peer = try #require(world.nodePeer(viewer))
        world.run(for: .milliseconds(700))
        publisher.client?.setSending(false)
        var limits: Set<SendingStatistics.Limit> = []
        var isTargetBelowDemand = false
        for _ in 0..<50 {
            world.run(for: .milliseconds(100))
            let sending = peer.sendingStatistics(at: world.now)
            limits.insert(sending.limit)
            if sending.target < sending.demand { isTargetBelowDemand = true }
        }
        // What the picture takes is a guess at first, and nothing was sent that shows that the path carries as much.
        #expect(isTargetBelowDemand)
        #expect(limits == [.demand])
    }

    @Test func `a viewer that gets all it wants needs no timer while it reports, and its silence is noticed`() throws {
        let (world, viewer, peer) = try call(46, rate: 10_000_000)
        world.run(for: .seconds(10))
        let sendRate = try #require(peer.sendRate)
        for _ in 0..<40 {
            world.run(for: .milliseconds(50))
            #expect(sendRate.nextDeadline - world.now > .milliseconds(20))
            // No wake-up is left of a tick that a report has put off.
            #expect(peer.turn.wakesAt == peer.nextDeadline)
        }
        world.network.conditions[viewer.address]?.outages = [world.now..<(world.now + .seconds(20))]
        world.run(for: .seconds(1))
        #expect(peer.sendingStatistics(at: world.now).state == .stale)
    }

    @Test func `a viewer on another loop is allocated layers as a local one is`() throws {
        let world = try World(seed: 43, loops: 2, estimates: true)
        let publisher = try world.publish(rids: Self.rids)
        world.run(for: .seconds(3))
        let viewer = try world.watch(loop: 1)
        world.network.conditions[viewer.address] = LinkConditions(delay: .milliseconds(50), rate: 1_500_000)
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(3))
        let peer = try #require(world.nodePeer(viewer))
        #expect(playing(peer) == "m")
        world.network.conditions[viewer.address]?.rate = 4_000_000
        world.run(for: .seconds(6))
        #expect(playing(peer) == "l")
        #expect(viewer.client?.video?.lost == 0)
    }

    @Test(arguments: [51, 53] as [UInt64])
    func `a path that loses and reorders packets carries the only layer there is`(seed: UInt64) throws {
        let world = try World(seed: seed, estimates: true)
        world.network.standard = LinkConditions(
            delay: .milliseconds(25),
            jitter: .milliseconds(8),
            loss: 0.03,
            duplication: 0.02,
            reordering: 0.02
        )
        let publisher = try world.publish()
        let viewer = try world.watch()
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(20))
        let video = try #require(viewer.client?.video)
        #expect(video.framesDecoded > 520)
        // What waited before a key frame was left out, and has no numbers.
        let numbers = Set(recording.packets.map(\.sequence))
        let (first, last) = (try #require(numbers.min()), try #require(numbers.max()))
        #expect(Int(last - first) + 1 - numbers.count <= 6)
    }

    @Test func `what is estimated of one viewer's network does not change what another gets`() throws {
        let (world, slow, slowPeer) = try call(44, rate: 700_000)
        let publisher = try #require(world.hosts.values.first { $0 !== slow && $0.client != nil })
        let fast = try world.watch()
        try world.connect(fast, to: publisher)
        world.run(for: .seconds(10))
        #expect(playing(slowPeer) == "h")
        #expect(playing(try #require(world.nodePeer(fast))) == "l")
        #expect(fast.client?.video?.lost == 0)
    }
}
