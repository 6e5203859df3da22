import Base
import DTLS
import EventLoop
import Forwarding
import Media
import MediaTypes
import Metrics
import TestSupport
import Testing
import Wire

@Suite(.timeLimit(.minutes(10)))
struct MediaLoopTests {
    @Test(arguments: ["127.0.0.1:0", "[::1]:0"])
    func `a peer connects, and leaves when it is asked to`(text: String) async throws {
        let log = EventLog()
        let media: MediaLoop
        do {
            media = try await MediaBench.makeLoop(listeningOn: [text])
        } catch EventLoopError.addressNotAvailable, EventLoopError.ipv6NotAvailable {
            throw MissingIPv6()
        }
        let client = try await MediaBench.connect(1, to: media, log: log)
        let statistics = try #require(await media.statistics(of: client.id))
        #expect(statistics.isConnected)
        #expect(statistics.path?.remote.ip == TransportAddress(text)?.ip)
        await media.removePeer(client.id)
        #expect(try await client.events.collect(1) == [.closed(.closedByPeer)])
        #expect(await media.statistics(of: client.id) == nil)
        await media.shutdown()
        #expect(log.all.map(\.0) == [client.id, client.id])
        #expect(log.all.map(\.1) == [.connected(over: .udp), .closed(.requested)])
        await client.stop()
    }

    @Test func `what one peer publishes another one hears, in order, and its way is timed`() async throws {
        let media = try await MediaBench.makeLoop()
        let mid = try #require(MID("0"))
        let published = MediaBench.track(mid: mid, ssrc: SSRC(rawValue: 100))
        let publisher = try await MediaBench.connect(1, to: media, publishing: [published])
        let viewers = [
            try await MediaBench.connect(2, to: media, playing: [MediaBench.slot(mid: mid, ssrc: SSRC(rawValue: 200))]),
            try await MediaBench.connect(3, to: media, playing: [MediaBench.slot(mid: mid, ssrc: SSRC(rawValue: 300))]),
        ]
        var streams: [AsyncStream<[UInt8]>] = []
        for viewer in viewers {
            try await media.connect(
                slot: TrackID(peer: viewer.id, mid: mid),
                to: TrackID(peer: publisher.id, mid: mid)
            )
            streams.append(await viewer.payloads(on: mid))
        }
        let before = await media.metrics().forwardingLatency.count
        for burst in 0..<10 {
            let payloads = (0..<30).map { [UInt8(burst), UInt8($0), 0xAA] }
            try await publisher.send(payloads, on: mid, parameters: published, first: UInt16(1000 + burst * 30))
            for stream in streams { #expect(try await stream.collect(30) == payloads) }
        }
        let metrics = await media.metrics()
        #expect(metrics.forwarder.rtpReceived == 300)
        #expect(metrics.forwarder.rtpSent == 600)
        #expect(metrics.forwardingLatency.count >= before + 600)
        #expect(metrics.forwardingLatency.count <= metrics.loop.datagramsSent)
        #expect(metrics.iterationTime.count > 0)
        #expect(metrics.loop.receiveCalls < metrics.loop.datagramsReceived)
        #expect(metrics.gauges.peers == 3)
        #expect(metrics.batchOverflows == 0)
        let load = await media.load()
        #expect(load.peers == 3)
        #expect(load.packetsPerSecond > 0)
        #expect(load.busyShare > 0 && load.busyShare <= 1)
        await media.shutdown()
        for client in viewers + [publisher] {
            var last: PeerEvent?
            for await event in client.events {
                last = event
                if case .closed = event { break }
            }
            #expect(last == .closed(.closedByPeer), "close_notify was sent")
            await client.stop()
        }
    }

    @Test func `hostile datagrams are counted and disturb nobody`() async throws {
        let media = try await MediaBench.makeLoop()
        let client = try await MediaBench.connect(1, to: media)
        let stranger = try TestClient(2)
        let node = NodePeer(of: stranger)
        let address = await media.sockets[0].local
        // Its peer is unknown to the node, so nothing that it sends is answered.
        try await stranger.connect(to: address, node: node.remote(of: media))
        var generator = SystemRandomNumberGenerator()
        let garbage = (0..<200).map { number -> [UInt8] in
            var bytes = (0..<(number % 100 + 1)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            bytes[0] = [0x00, 0x01, 0x16, 0x14, 0x40, 0x80, 0x90, 0xBF, 0xFF][number % 9]
            return bytes
        }
        for start in stride(from: 0, to: 200, by: 50) {
            await stranger.sendRaw(Array(garbage[start..<start + 50]), to: address)
        }
        try await eventually("the node has taken all datagrams") { await media.metrics().loop.datagramsReceived >= 200 }
        let metrics = await media.metrics()
        #expect(DropReason.allCases.reduce(0) { $0 + metrics.forwarder[$1] } >= 150)
        #expect(await media.statistics(of: client.id)?.isConnected == true)
        #expect(metrics.gauges.peers == 1)
        await media.shutdown()
        await client.stop()
        await stranger.stop()
    }

    @Test func `a shutdown closes every peer, and can be called again`() async throws {
        let log = EventLog()
        let media = try await MediaBench.makeLoop()
        var clients: [TestClient] = []
        for number in 1...3 { clients.append(try await MediaBench.connect(UInt64(number), to: media, log: log)) }
        async let first: Void = media.shutdown()
        async let second: Void = media.shutdown()
        _ = await (first, second)
        await media.shutdown()
        #expect(log.all.count == 6)
        #expect(log.all.suffix(3).allSatisfy { $0.1 == .closed(.requested) })
        for client in clients {
            #expect(try await client.events.collect(1) == [.closed(.closedByPeer)])
            await client.stop()
        }
    }

    @Test func `a loop that was shut down refuses peers and still answers`() async throws {
        let media = try await MediaBench.makeLoop()
        let client = try TestClient(1)
        await media.shutdown()
        await #expect(throws: EventLoopError.stopped) { try await media.addPeer(NodePeer(of: client).parameters) }
        await media.removePeer(client.id)
        #expect(await media.metrics().gauges.peers == 0)
        #expect(await media.statistics(of: client.id) == nil)
        await client.stop()
    }

    @Test func `a wrong call is an error of the forwarder`() async throws {
        let media = try await MediaBench.makeLoop()
        let client = try TestClient(1)
        let parameters = NodePeer(of: client).parameters
        try await media.addPeer(parameters)
        await #expect(throws: ForwarderError.duplicatePeer(client.id)) { try await media.addPeer(parameters) }
        let track = TrackID(peer: PeerID(rawValue: 9), mid: try #require(MID("0")))
        await #expect(throws: ForwarderError.self) { try await media.connect(slot: track, to: track) }
        await media.shutdown()
        await client.stop()
    }

    @Test func `a taken port is refused and leaves nothing behind`() async throws {
        let first = try await MediaBench.makeLoop()
        let taken = await first.sockets[0].local
        let probe = try await MediaBench.makeLoop()
        let free = await probe.sockets[0].local
        await probe.shutdown()
        await #expect(throws: EventLoopError.addressInUse(taken)) {
            try await MediaBench.makeLoop(listeningOn: ["\(free)", "\(taken)"])
        }
        // The address that was to be had is free again.
        let second = try await MediaBench.makeLoop(listeningOn: ["\(free)"])
        #expect(await second.sockets[0].local == free)
        await first.shutdown()
        await second.shutdown()
    }

    @Test func `a shutdown gives the memory back`() async throws {
        weak var media: MediaLoop?
        weak var loop: EventLoop?
        do {
            let made = try await MediaBench.makeLoop()
            let client = try await MediaBench.connect(1, to: made)
            media = made
            loop = made.eventLoop
            await made.shutdown()
            await client.stop()
        }
        #expect(media == nil)
        #expect(loop == nil)
    }
}
