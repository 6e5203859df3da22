import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// A crowd that joins makes nobody's media wait: its handshakes go on by one step a turn.
@Suite struct CrowdTests {
    private static let crowd = 40

    /// A call with media, and a crowd whose first datagrams of the handshake have come in the same turn.
    private func startCrowd(seed: UInt64) throws -> (world: World, publisher: World.Host, stream: HandMadeStream) {
        let world = try World(seed: seed)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        let stream = try #require(HandMadeStream(world, publisher, .audio, codec: .opus, ssrc: 7_001))
        var flights: [TransportAddress: [UInt8]] = [:]
        world.alters = { from, bytes in
            guard from != World.nodeAddress, isDTLS(bytes) else { return bytes }
            flights[from] = flights[from] ?? bytes
            // 255 is the first byte of no protocol.
            return [255]
        }
        for _ in 0..<Self.crowd { try world.watch() }
        world.run(for: .milliseconds(200))
        world.alters = nil
        #expect(flights.count == Self.crowd)
        for (address, flight) in flights { world.deliver(flight, from: address, to: world.node, settles: false) }
        return (world, publisher, stream)
    }

    private func isDTLS(_ datagram: [UInt8]) -> Bool {
        datagram.first.flatMap(PacketProtocol.init(firstByte:)) == .dtls
    }

    @Test func `a turn makes one step of a handshake, after its media has left`() throws {
        var (world, publisher, stream) = try startCrowd(seed: 211)
        let node = world.node
        let waiting = node.core.handshakes.count
        #expect(waiting == Self.crowd)
        world.deliverSecured([stream.next([1, 2, 3])], from: publisher, settles: false)
        var first: [PacketProtocol?] = []
        node.core.endTurn(at: world.now, into: node.batch) {
            first = protocols(of: node.batch)
            node.batch.removeAll()
        }
        #expect(first.contains(.rtp) && !first.contains(.dtls))
        #expect(protocols(of: node.batch).allSatisfy { $0 == .dtls })
        #expect(node.core.handshakes.count == waiting - 1)
        #expect(node.core.hasWaitingHandshakes && node.core.nextDeadline.map { $0 <= world.now } == true)
    }

    @Test func `everyone of a crowd connects, with no time between the steps`() throws {
        let (world, _, _) = try startCrowd(seed: 212)
        let began = world.now
        let core = world.node.core
        #expect(world.run(for: .seconds(5)) { core.counters.dtlsConnected == Self.crowd + 2 })
        #expect(world.now - began < .milliseconds(500), "no flight was sent twice")
        #expect(core.counters[.handshakeQueueFull] == 0 && !core.hasWaitingHandshakes)
    }

    @Test func `what waits of one peer is bounded, and goes with the peer`() throws {
        let (world, _, _) = try startCrowd(seed: 213)
        let core = world.node.core
        let host = try #require(world.order.last { $0.client != nil })
        let peer = try #require(host.client.flatMap { core.peer($0.id) })
        let before = core.handshakes.count - peer.waitingHandshakeDatagrams
        let record: [UInt8] = [22, 0xFE, 0xFF] + [UInt8](repeating: 0, count: 10) + [0]
        for _ in 0..<100 { world.deliver(record, from: host.address, to: world.node, settles: false) }
        #expect(peer.waitingHandshakeDatagrams == HandshakeQueue.datagramsOfPeerMax)
        #expect(core.handshakes.count == before + HandshakeQueue.datagramsOfPeerMax)
        #expect(core.counters[.handshakeQueueFull] >= 92)
        world.remove(host)
        world.run(for: .seconds(1))
        #expect(!core.hasWaitingHandshakes)
    }

    @Test func `a queue is bounded for all, and keeps the order`() {
        let queue = HandshakeQueue()
        let path = NetworkPath(
            socket: SocketIndex(rawValue: 0),
            remote: TransportAddress(ip: IPAddress(v4: 0xC000_0201), port: 9)
        )
        func datagram(_ number: Int) -> HandshakeQueue.Datagram {
            .init(
                peer: PeerID(rawValue: UInt64(number)),
                path: path,
                bytes: [],
                receivedAt: Instant(nanoseconds: Int64(number))
            )
        }
        let appended = (0...HandshakeQueue.datagramsMax).count { queue.append(datagram($0)) }
        #expect(appended == HandshakeQueue.datagramsMax)
        let removed = (0..<200).map { _ in queue.removeFirst()?.peer.rawValue }
        #expect(removed == (0..<200).map { UInt64($0) })
        #expect(queue.firstReceivedAt == Instant(nanoseconds: 200) && queue.count == HandshakeQueue.datagramsMax - 200)
        let isAppended = queue.append(datagram(9_999))
        #expect(isAppended)
        var last: UInt64?
        while let next = queue.removeFirst() { last = next.peer.rawValue }
        #expect(last == 9_999 && queue.firstReceivedAt == nil && queue.count == 0)
    }

    private func protocols(of batch: DatagramBatch) -> [PacketProtocol?] {
        (0..<batch.count).map { index in
            batch.withDatagram(index) { bytes, _ in PacketProtocol(firstByte: bytes.byte(at: 0)) }
        }
    }
}
