import DTLS
import EventLoop
import Forwarding
import Foundation
import Media
import MediaTypes
import Synchronization
import Testing
import Wire

/// The loops of all nodes, in the place of the cluster: requests and answers cross as JSON.
private final class Origins: RemoteOrigins {
    private struct State {
        var nodes: [NodeIncarnation: MediaLoops] = [:]
        var requests: [RemoteExport] = []
    }
    private let state = Mutex(State())

    var requests: [RemoteExport] { state.withLock { $0.requests } }

    func add(_ loops: MediaLoops) async {
        guard let node = loops.loops.first?.location.node else { return }
        state.withLock { $0.nodes[node] = loops }
        await loops.setRemoteOrigins(self)
    }

    func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        let loops = state.withLock {
            $0.requests.append(request)
            return $0.nodes[request.origin.node]
        }
        guard let loops else { throw ForwarderError.unknownLocation(request.origin) }
        return try Self.copy(try await loops.export(try Self.copy(request)))
    }

    private static func copy<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    }
}

/// Two nodes, one publisher on the first, and viewers anywhere.
private struct NodesBench {
    let origins = Origins()
    let nodes: [MediaLoops]
    let publisher: TestClient
    let published: ReceiveTrackParameters
    static let mid = MID("0")!

    var track: PlacedTrack {
        PlacedTrack(track: TrackID(peer: publisher.id, mid: Self.mid), location: loop(0).location)
    }

    init(loopsPerNode: Int = 1) async throws {
        var nodes: [MediaLoops] = []
        for number in 1...2 {
            guard let node = NodeIncarnation(rawValue: UInt32(number)) else { continue }
            var loops: [MediaLoop] = []
            for index in 0..<loopsPerNode {
                loops.append(
                    try await MediaLoop.start(
                        MediaLoopConfiguration(
                            name: "media",
                            certificate: DTLSCertificate.generate(),
                            location: MediaLocation(node: node, loop: LoopIndex(rawValue: UInt16(index)))
                        ),
                        listeningOn: ["127.0.0.1:0", "[::1]:0"].compactMap { TransportAddress($0) },
                        onEvents: { _ in }
                    )
                )
            }
            nodes.append(await MediaLoops(linking: loops))
        }
        self.nodes = nodes
        published = MediaBench.track(mid: Self.mid, ssrc: SSRC(rawValue: 100))
        publisher = try await MediaBench.connect(1, to: nodes[0].loops[0], publishing: [published])
        for node in nodes { await origins.add(node) }
    }

    func loop(_ node: Int, _ index: Int = 0) -> MediaLoop { nodes[node].loops[index] }

    func viewer(_ number: UInt64, on loop: MediaLoop) async throws -> TestClient {
        let slot = MediaBench.slot(mid: Self.mid, ssrc: SSRC(rawValue: UInt32(number) * 1_000))
        return try await MediaBench.connect(number, to: loop, playing: [slot])
    }

    func play(_ viewer: TestClient, on loop: MediaLoop) async throws {
        try await loop.connect(slot: TrackID(peer: viewer.id, mid: Self.mid), to: track)
    }

    func send(_ payloads: [[UInt8]], first: UInt16) async throws {
        try await publisher.send(payloads, on: Self.mid, parameters: published, first: first)
    }

    func end(_ clients: [TestClient]) async {
        for node in nodes { await node.shutdown() }
        for client in clients + [publisher] { await client.stop() }
    }
}

@Suite(.timeLimit(.minutes(30)))
struct NodeLinkTests {
    @Test func `what is published on one node arrives on another, once a loop`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        var viewers: [TestClient] = []
        var streams: [AsyncStream<[UInt8]>] = []
        for (number, index) in [(2, 0), (3, 0), (4, 1)] {
            let viewer = try await bench.viewer(UInt64(number), on: bench.loop(1, index))
            streams.append(await viewer.payloads(on: NodesBench.mid))
            try await bench.play(viewer, on: bench.loop(1, index))
            viewers.append(viewer)
        }
        for burst in 0..<10 {
            let payloads = (0..<20).map { [UInt8](repeating: UInt8(burst), count: $0 * 40 + 1) }
            try await bench.send(payloads, first: UInt16(1_000 + burst * 20))
            for stream in streams { #expect(await stream.collect(20) == payloads) }
        }
        #expect(bench.origins.requests.count == 2, "one for each loop")
        let sent = await bench.loop(0).metrics()
        #expect(sent.forwarder.packetsRelayed == 400)
        #expect(sent.nodeLinks.links.count == 2)
        #expect(sent.nodeLinks.counters.sent.packets == 400)
        #expect(sent.nodeLinks.counters.sent.datagrams < 400, "small packets share datagrams")
        let received = await bench.loop(1).metrics()
        #expect(received.gauges.mirroredTracks == 1)
        #expect(received.nodeLinks.links.map(\.location) == [bench.loop(0).location])
        await bench.end(viewers)
    }

    @Test func `viewers that come at the same time share one request`() async throws {
        let bench = try await NodesBench()
        var viewers: [TestClient] = []
        for number in 2...5 { viewers.append(try await bench.viewer(UInt64(number), on: bench.loop(1))) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for viewer in viewers { group.addTask { try await bench.play(viewer, on: bench.loop(1)) } }
            try await group.waitForAll()
        }
        #expect(bench.origins.requests.count == 1)
        await bench.end(viewers)
    }

    @Test func `a node that left takes its tracks along`() async throws {
        let bench = try await NodesBench()
        let viewer = try await bench.viewer(2, on: bench.loop(1))
        try await bench.play(viewer, on: bench.loop(1))
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 1)
        await bench.nodes[1].remoteNodeLeft(bench.loop(0).location.node)
        let left = await bench.loop(1).metrics()
        #expect(left.gauges.mirroredTracks == 0 && left.gauges.connectedSlots == 0 && left.nodeLinks.links.isEmpty)
        // It is asked again, and answers the new link.
        let stream = await viewer.payloads(on: NodesBench.mid)
        try await bench.play(viewer, on: bench.loop(1))
        try await bench.send([[7]], first: 1)
        #expect(await stream.collect(1) == [[7]])
        await bench.end([viewer])
    }

    @Test func `tracks and nodes that are gone are errors, and leave nothing`() async throws {
        let bench = try await NodesBench()
        let viewer = try await bench.viewer(2, on: bench.loop(1))
        let slot = TrackID(peer: viewer.id, mid: NodesBench.mid)
        let gone = TrackID(peer: PeerID(rawValue: 99), mid: NodesBench.mid)
        await #expect(throws: ForwarderError.unknownTrack(gone)) {
            try await bench.loop(1).connect(
                slot: slot,
                to: PlacedTrack(track: gone, location: bench.loop(0).location)
            )
        }
        let node = try #require(NodeIncarnation(rawValue: 9))
        let elsewhere = MediaLocation(node: node, loop: LoopIndex(rawValue: 0))
        await #expect(throws: ForwarderError.unknownLocation(elsewhere)) {
            try await bench.loop(1).connect(slot: slot, to: PlacedTrack(track: gone, location: elsewhere))
        }
        let other = bench.loop(1).location
        await #expect(throws: ForwarderError.unknownLocation(other)) {
            try await bench.loop(0).export(
                RemoteExport(track: gone, relay: RelayID(rawValue: 1), receiver: Sample.end, origin: other)
            )
        }
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        await bench.end([viewer])
    }
}

/// What the nodes' control link carries.
struct NodeLinkEndTests {
    private func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    @Test func `a secret is never printed`() throws {
        let secret = LinkSecret { 0x0123_4567_89AB_CDEF }
        var text = "\(secret) \(String(reflecting: secret)) \(Sample.end)"
        dump(Sample.end, to: &text)
        #expect(!text.contains("123456789") && !text.contains("81985529216486895"))
        let json = String(decoding: try JSONEncoder().encode([secret]), as: UTF8.self)
        #expect(json == "[\"" + String(repeating: "0123456789abcdef", count: 4) + "\"]")
        #expect(try decode([LinkSecret].self, json) == [secret])
    }

    @Test(arguments: ["", "0", String(repeating: "0", count: 63), String(repeating: "0", count: 65)])
    func `a secret of another length is refused`(digits: String) {
        #expect(throws: DecodingError.self) { try decode([LinkSecret].self, "[\"\(digits)\"]") }
    }

    @Test func `a secret with another character is refused`() {
        let digits = "g" + String(repeating: "0", count: 63)
        #expect(throws: DecodingError.self) { try decode([LinkSecret].self, "[\"\(digits)\"]") }
    }

    @Test func `an end is read as it was written, and has addresses`() throws {
        let json = String(decoding: try JSONEncoder().encode(Sample.end), as: UTF8.self)
        #expect(try decode(NodeLinkEnd.self, json) == Sample.end)
        #expect(Sample.end.addresses.count == 2)
        let addresses = try #require(json.firstMatch(of: /"addresses":\[([^\]]*)\]/)).1
        for list in ["", Array(repeating: "\"1.2.3.4:5\"", count: 17).joined(separator: ","), "\"name:1\"", "1"] {
            let changed = json.replacing(addresses, with: list)
            #expect(throws: DecodingError.self) { try decode(NodeLinkEnd.self, changed) }
        }
    }

    @Test func `the parameters of a track are read as they were written`() throws {
        var video = MediaBench.track(mid: NodesBench.mid, ssrc: SSRC(rawValue: 5), kind: .video)
        video.extensions[.dependencyDescriptor] = HeaderExtensionID(rawValue: 7)
        video.rids = ["q", "h"].compactMap { RID($0) }
        video.layersAscend = true
        video.canPauseLayers = true
        video.rtxSSRCs = [SSRC(rawValue: 5): SSRC(rawValue: 6)]
        for parameters in [video, MediaBench.track(mid: NodesBench.mid, ssrc: SSRC(rawValue: 1))] {
            let json = try JSONEncoder().encode(parameters)
            #expect(try JSONDecoder().decode(ReceiveTrackParameters.self, from: json) == parameters)
        }
    }

    @Test(arguments: [
        (#""codecs":\[.*?\],"#, #""codecs":[],"#), (#""kind":"video""#, #""kind":"audio""#),
        (#""mid":"0""#, #""mid":"""#), (#""rids":\[\]"#, #""rids":["a b"]"#),
        (#""clockRate":90000"#, #""clockRate":0"#),
        (#""ssrcs":\[5\]"#, #""ssrcs":[-1]"#),
        (#""ssrcs":\[5\]"#, #""ssrcs":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"#),
    ])
    func `parameters that cannot be are refused`(pattern: String, replacement: String) throws {
        let video = MediaBench.track(mid: NodesBench.mid, ssrc: SSRC(rawValue: 5), kind: .video)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let json = String(decoding: try encoder.encode(video), as: UTF8.self)
        let changed = json.replacing(try Regex(pattern), with: replacement)
        #expect(changed != json)
        #expect(throws: DecodingError.self) { try decode(ReceiveTrackParameters.self, changed) }
    }
}

private enum Sample {
    static let end = NodeLinkEnd(
        location: MediaLocation(loop: LoopIndex(rawValue: 3)),
        addresses: ["1.2.3.4:5", "[2001:db8::1]:7"].compactMap { TransportAddress($0) },
        link: 9,
        secret: LinkSecret { 0x0123_4567_89AB_CDEF }
    )
}
