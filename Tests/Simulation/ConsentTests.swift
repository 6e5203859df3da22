import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// What is sent to a client goes on only while it answers the node's own checks (RFC 7675): its checks, reports and packets can
/// come from anywhere, with a false source.
@Suite struct ConsentTests {
    /// Watches what goes to a client, and takes its answers away.
    private final class Watch {
        let address: TransportAddress
        /// Whether the client's answers to checks arrive.
        var answers = true
        private(set) var lastMedia: Instant
        private(set) var lastCheck: Instant
        /// Checks of the node to the client.
        private(set) var asked = 0

        init(_ host: World.Host, in world: World) {
            address = host.address
            lastMedia = world.now
            lastCheck = world.now
            world.onTransmit = { [self, unowned world] from, to, bytes in
                if from == self.address, bytes.first == 0 { self.lastCheck = world.now }
                guard from == World.nodeAddress, to == self.address, let first = bytes.first else { return }
                if first > 3 { self.lastMedia = world.now }
                if first == 0 { self.asked += 1 }
            }
            world.alters = { [self] from, bytes in
                // 255 is the first byte of no protocol.
                from == self.address && !self.answers && bytes.first == 1 ? [255] : bytes
            }
        }
    }

    private func startCall(
        seed: UInt64,
        publisherHasData: Bool = false
    ) throws -> (world: World, publisher: World.Host, viewer: World.Host) {
        let world = try World(seed: seed)
        let publisher = try world.publish(hasData: publisherHasData)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        return (world, publisher, viewer)
    }

    private func isConsentExpired(_ host: World.Host, in world: World) -> Bool {
        guard let id = host.client?.id else { return false }
        return world.nodeEvents.contains { $0.0 == id && $0.1 == .closed(.consentExpired) }
    }

    /// A check as the host's ICE agent makes it.
    private func check(_ world: World, _ host: World.Host, id: UInt64) throws -> [UInt8] {
        let (client, node) = try #require(host.client.flatMap { world.credentials[$0.id] })
        var request = STUNMessageBuilder(.request, transactionID: STUNTransactionID(high: 9, low: id))
        request.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
        request.append(.priority, 1_000 as UInt32)
        request.append(.iceControlling, 77 as UInt64)
        request.appendMessageIntegrity(key: Array(node.password.utf8))
        request.appendFingerprint()
        return request.bytes
    }

    @Test func `a client that sends checks and answers none is sent nothing after thirty seconds, and ended`() throws {
        let (world, publisher, viewer) = try startCall(seed: 1_201)
        let watch = Watch(viewer, in: world)
        watch.answers = false
        #expect(world.run(for: .seconds(5)) { viewer.client?.isConnected == true })
        let connectedAt = world.now
        world.run(for: .seconds(29))
        #expect(world.now - watch.lastMedia < .milliseconds(100))
        world.run(for: .seconds(40))
        #expect(watch.lastMedia - connectedAt > .seconds(29))
        // The client is connected a moment before or after the node.
        #expect(watch.lastMedia - connectedAt <= .seconds(30) + .milliseconds(100))
        // Its own checks went on.
        #expect(watch.lastCheck - watch.lastMedia > .seconds(20))
        #expect(world.nodePeer(viewer) == nil && isConsentExpired(viewer, in: world))
        #expect(world.nodePeer(publisher) != nil)
        #expect(world.node.core.counters.consentChecksAnswered == 0)
        #expect((23...26).contains(world.node.core.counters.consentChecksSent))
    }

    @Test func `a client that left is sent nothing after thirty seconds, although its checks go on`() throws {
        let (world, publisher, viewer) = try startCall(seed: 1_202)
        let watch = Watch(viewer, in: world)
        world.run(for: .seconds(20))
        #expect(world.node.core.counters.consentChecksAnswered >= 2)
        let leftAt = world.now
        world.vanish(viewer)
        for second in 0..<65 as Range<UInt64> {
            world.inject(try check(world, viewer, id: second + 1), from: watch.address)
            world.run(for: .seconds(1))
        }
        #expect(watch.lastMedia - leftAt > .seconds(20))
        #expect(watch.lastMedia - leftAt <= .seconds(30))
        #expect(world.nodePeer(viewer) == nil && isConsentExpired(viewer, in: world))
        #expect(world.nodePeer(publisher) != nil)
    }

    @Test func `a client that answers again within the time goes on as if nothing had been`() throws {
        let (world, _, viewer) = try startCall(seed: 1_203)
        let watch = Watch(viewer, in: world)
        for _ in 0..<4 {
            world.run(for: .seconds(10))
            watch.answers = false
            world.run(for: .seconds(20))
            watch.answers = true
        }
        world.run(for: .seconds(10))
        #expect(world.now - watch.lastMedia < .milliseconds(100))
        #expect(viewer.client?.video?.lost == 0)
        #expect(viewer.client?.video?.longestGap ?? .seconds(9) < .milliseconds(60))
    }

    @Test func `media comes back to a client that answers after it stopped`() throws {
        let (world, _, viewer) = try startCall(seed: 1_204)
        let watch = Watch(viewer, in: world)
        world.run(for: .seconds(10))
        watch.answers = false
        world.run(for: .seconds(38))
        #expect(world.now - watch.lastMedia > .seconds(5))
        #expect(world.nodePeer(viewer) != nil)
        watch.answers = true
        world.run(for: .seconds(10))
        #expect(world.now - watch.lastMedia < .milliseconds(100))
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(40))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 900)
    }

    @Test func `a publisher that answers nothing, as FFmpeg, is not asked and goes on`() throws {
        let (world, publisher, viewer) = try startCall(seed: 1_205)
        let watch = Watch(publisher, in: world)
        watch.answers = false
        world.run(for: .seconds(100))
        #expect(watch.asked == 0)
        #expect(world.nodePeer(publisher) != nil)
        #expect(viewer.client?.video?.longestGap ?? .seconds(9) < .milliseconds(100))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > 2_900)
    }

    @Test func `a publisher with data channels has to answer`() throws {
        let (world, publisher, viewer) = try startCall(seed: 1_206, publisherHasData: true)
        let watch = Watch(publisher, in: world)
        watch.answers = false
        world.run(for: .seconds(70))
        #expect(watch.asked > 20)
        #expect(world.nodePeer(publisher) == nil && isConsentExpired(publisher, in: world))
        #expect(world.nodePeer(viewer) != nil)
    }

    @Test func `a client whose slots come later is asked from then on`() throws {
        let world = try World(seed: 1_207)
        let publisher = try world.publish()
        let viewer = try world.watch(hasSlots: false)
        let watch = Watch(viewer, in: world)
        world.run(for: .seconds(40))
        #expect(watch.asked == 0 && viewer.client?.isConnected == true)
        let id = try #require(viewer.client?.id)
        try world.changeSlots(of: viewer, add: world.slots[id] ?? [], remove: [])
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(1))
        #expect(watch.asked == 1)
        world.run(for: .seconds(60))
        #expect((10...20).contains(watch.asked))
        #expect(world.now - watch.lastMedia < .milliseconds(100))
        watch.answers = false
        let silentAt = world.now
        world.run(for: .seconds(40))
        #expect(watch.lastMedia - silentAt <= .seconds(30))
    }
}
