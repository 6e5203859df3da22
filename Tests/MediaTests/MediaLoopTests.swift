import DTLS
import EventLoop
import Forwarding
import Media
import Metrics
import Synchronization
import Testing
import Wire

/// What a media loop reported, call by call.
final class EventLog: Sendable {
    private let calls = Mutex<[[(PeerID, PeerEvent)]]>([])
    let stream: AsyncStream<(PeerID, PeerEvent)>
    private let continuation: AsyncStream<(PeerID, PeerEvent)>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func append(_ events: [(PeerID, PeerEvent)]) {
        calls.withLock { $0.append(events) }
        for event in events { continuation.yield(event) }
    }

    var sizes: [Int] { calls.withLock { $0.map(\.count) } }
    var all: [(PeerID, PeerEvent)] { calls.withLock { $0.flatMap { $0 } } }
}

@Suite(.timeLimit(.minutes(1)))
struct MediaLoopTests {
    private func makeLoop(
        _ log: EventLog = EventLog(),
        listeningOn texts: [String] = ["127.0.0.1:0"]
    ) async throws -> MediaLoop {
        try await MediaLoop.start(
            MediaLoopConfiguration(name: "media", certificate: DTLSCertificate.generate()),
            listeningOn: texts.compactMap { TransportAddress($0) },
            onEvents: log.append
        )
    }

    /// A client that is connected to `media`.
    private func connect(
        _ number: UInt64,
        to media: MediaLoop,
        socket: Int = 0,
        publishing: [ReceiveTrackParameters] = [],
        playing: [SendTrackParameters] = []
    ) async throws -> TestClient {
        let client = try TestClient(number)
        let node = NodePeer(of: client, receive: publishing, send: playing)
        try await media.addPeer(node.parameters)
        try await client.connect(
            to: media.sockets[socket].local,
            node: node.remote(of: media),
            receive: playing.map { audio(mid: $0.mid, ssrc: $0.ssrc) },
            send: publishing.map { slot(mid: $0.mid, ssrc: $0.ssrcs[0]) }
        )
        #expect(await client.events.collect(1) == [.connected])
        return client
    }

    private static let codec = CodecParameters(name: .opus, payloadType: PayloadType(rawValue: 111)!)

    private func audio(mid: MID, ssrc: SSRC) -> ReceiveTrackParameters {
        ReceiveTrackParameters(mid: mid, kind: .audio, codecs: [Self.codec], ssrcs: [ssrc])
    }

    private func slot(mid: MID, ssrc: SSRC) -> SendTrackParameters {
        SendTrackParameters(mid: mid, kind: .audio, codecs: [Self.codec], ssrc: ssrc, cname: "test")
    }

    @Test(arguments: ["127.0.0.1:0", "[::1]:0"])
    func `a peer connects, and leaves when it is asked to`(text: String) async throws {
        let log = EventLog()
        let media: MediaLoop
        do {
            media = try await makeLoop(log, listeningOn: [text])
        } catch EventLoopError.addressNotAvailable, EventLoopError.ipv6NotAvailable {
            return
        }
        let client = try await connect(1, to: media)
        let statistics = try #require(await media.statistics(of: client.id))
        #expect(statistics.isConnected)
        #expect(statistics.path?.remote.ip == TransportAddress(text)?.ip)
        await media.removePeer(client.id)
        #expect(await client.events.collect(1) == [.closed(.closedByPeer)])
        #expect(await media.statistics(of: client.id) == nil)
        await media.shutdown()
        #expect(log.all.map(\.0) == [client.id, client.id])
        #expect(log.all.map(\.1) == [.connected, .closed(.requested)])
        await client.stop()
    }

    @Test func `what one peer publishes another one hears, in order, and its way is timed`() async throws {
        let media = try await makeLoop()
        let mid = try #require(MID("0"))
        let published = audio(mid: mid, ssrc: SSRC(rawValue: 100))
        let publisher = try await connect(1, to: media, publishing: [published])
        let viewers = [
            try await connect(2, to: media, playing: [slot(mid: mid, ssrc: SSRC(rawValue: 200))]),
            try await connect(3, to: media, playing: [slot(mid: mid, ssrc: SSRC(rawValue: 300))]),
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
            for stream in streams { #expect(await stream.collect(30) == payloads) }
        }
        let metrics = await media.metrics()
        #expect(metrics.forwarder.rtpReceived == 300)
        #expect(metrics.forwarder.rtpSent == 600)
        #expect(metrics.forwardingLatency.count >= before + 600)
        #expect(metrics.forwardingLatency.count <= metrics.loop.datagramsSent)
        #expect(metrics.turnTime.count > 0)
        #expect(metrics.loop.receiveCalls < metrics.loop.datagramsReceived)
        #expect(metrics.gauges.peers == 3)
        #expect(metrics.batchOverflows == 0)
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
        let media = try await makeLoop()
        let client = try await connect(1, to: media)
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
        // The node has taken them all once it has counted as many.
        while await media.metrics().loop.datagramsReceived < 200 { await Task.yield() }
        let metrics = await media.metrics()
        #expect(DropReason.allCases.reduce(0) { $0 + metrics.forwarder[$1] } >= 150)
        #expect(await media.statistics(of: client.id)?.isConnected == true)
        #expect(metrics.gauges.peers == 1)
        await media.shutdown()
        await client.stop()
        await stranger.stop()
    }

    @Test func `a shutdown closes every peer in one turn, and can be called again`() async throws {
        let log = EventLog()
        let media = try await makeLoop(log)
        var clients: [TestClient] = []
        for number in 1...3 { clients.append(try await connect(UInt64(number), to: media)) }
        async let first: Void = media.shutdown()
        async let second: Void = media.shutdown()
        _ = await (first, second)
        await media.shutdown()
        #expect(log.sizes.last == 3)
        #expect(log.all.suffix(3).allSatisfy { $0.1 == .closed(.requested) })
        for client in clients {
            #expect(await client.events.collect(1) == [.closed(.closedByPeer)])
            await client.stop()
        }
    }

    @Test func `a loop that was shut down refuses peers and still answers`() async throws {
        let media = try await makeLoop()
        let client = try TestClient(1)
        await media.shutdown()
        await #expect(throws: EventLoopError.stopped) { try await media.addPeer(NodePeer(of: client).parameters) }
        await media.removePeer(client.id)
        #expect(await media.metrics().gauges.peers == 0)
        #expect(await media.statistics(of: client.id) == nil)
        await client.stop()
    }

    @Test func `a wrong call is an error of the forwarder`() async throws {
        let media = try await makeLoop()
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
        let first = try await makeLoop()
        let taken = await first.sockets[0].local
        let probe = try await makeLoop()
        let free = await probe.sockets[0].local
        await probe.shutdown()
        await #expect(throws: EventLoopError.addressInUse(taken)) {
            try await makeLoop(listeningOn: ["\(free)", "\(taken)"])
        }
        // The address that was to be had is free again.
        let second = try await makeLoop(listeningOn: ["\(free)"])
        #expect(await second.sockets[0].local == free)
        await first.shutdown()
        await second.shutdown()
    }

    @Test func `a shutdown gives the memory back`() async throws {
        weak var media: MediaLoop?
        weak var loop: EventLoop?
        do {
            let made = try await makeLoop()
            let client = try await connect(1, to: made)
            media = made
            loop = made.eventLoop
            await made.shutdown()
            await client.stop()
        }
        #expect(media == nil)
        #expect(loop == nil)
    }
}
