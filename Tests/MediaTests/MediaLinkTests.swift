import DTLS
import EventLoop
import Forwarding
import Foundation
import MediaTypes
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Media

/// The loops of all nodes, in the place of the cluster: requests and answers cross as JSON.
private final class Origins: RemoteOrigins {
    private struct State {
        var nodes: [NodeIncarnation: MediaLoops] = [:]
        var requests: [RemoteExport] = []
        var isHolding = false
        var held: [CheckedContinuation<Void, Never>] = []
        var sequence: UInt16 = 0
        var rounds = 0
    }
    private let state = Mutex(State())

    var requests: [RemoteExport] { state.withLock { $0.requests } }

    func add(_ loops: MediaLoops) async {
        guard let node = loops.loops.first?.location.node else { return }
        state.withLock { $0.nodes[node] = loops }
        await loops.setRemoteOrigins(self)
    }

    /// The number of the next packet.
    func nextSequence() -> UInt16 {
        state.withLock {
            $0.sequence &+= 1
            return $0.sequence
        }
    }

    /// A number for the payloads that are sent next.
    func nextRound() -> Int {
        state.withLock {
            $0.rounds += 1
            return $0.rounds
        }
    }

    /// Lets requests wait until the release.
    func hold() { state.withLock { $0.isHolding = true } }
    func release() {
        let held = state.withLock { state in
            state.isHolding = false
            return state.held
        }
        for continuation in held { continuation.resume() }
    }

    func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        let loops = state.withLock {
            $0.requests.append(request)
            return $0.nodes[request.origin.node]
        }
        await withCheckedContinuation { continuation in
            state.withLock { state in
                if state.isHolding { state.held.append(continuation) } else { continuation.resume() }
            }
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
                        listeningOn: ["127.0.0.1:0", "[::1]:0"].compactMap { TransportAddress($0) }
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

    func stop(_ viewer: TestClient, on loop: MediaLoop) async throws {
        try await loop.connect(slot: TrackID(peer: viewer.id, mid: Self.mid), to: nil as PlacedTrack?)
    }

    /// Sends until every viewer has got a packet of these; the first ones may go by before a mirror is there.
    func expectArrival(at viewers: [TestClient]) async throws {
        let round = UInt8(truncatingIfNeeded: origins.nextRound())
        var arrivals: [Task<Void, Never>] = []
        for viewer in viewers {
            let stream = await viewer.payloads(on: Self.mid)
            arrivals.append(Task { for await payload in stream where payload == [round] { return } })
        }
        let sending = Task {
            while !Task.isCancelled {
                try await send([[round]], first: origins.nextSequence())
                // Each loop takes a turn.
                for node in nodes { for loop in node.loops { _ = await loop.metrics() } }
            }
        }
        for arrival in arrivals { await arrival.value }
        sending.cancel()
        _ = await sending.result
    }

    func send(_ payloads: [[UInt8]], first: UInt16) async throws {
        try await publisher.send(payloads, on: Self.mid, parameters: published, first: first)
    }

    func end(_ clients: [TestClient]) async {
        for node in nodes { await node.shutdown() }
        for client in clients + [publisher] { await client.stop() }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct MediaLinkTests {
    @Test func `what is published on one node arrives on another once, whichever loops play it`() async throws {
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
            for stream in streams { #expect(try await stream.collect(20) == payloads) }
        }
        #expect(bench.origins.requests.count == 1, "one for both loops")
        let sent = await bench.loop(0).metrics()
        #expect(sent.forwarder.packetsTransferred == 200)
        #expect(sent.mediaLinks.links.count == 1)
        #expect(sent.mediaLinks.counters.sent.packets == 200)
        #expect(sent.mediaLinks.counters.sent.datagrams < 200, "small packets share datagrams")
        let receiver = await bench.loop(1, 0).metrics()
        #expect(receiver.gauges.mirroredTracks == 1 && receiver.forwarder.packetsTransferred == 200)
        #expect(receiver.mediaLinks.links.map(\.location) == [bench.loop(0).location])
        let other = await bench.loop(1, 1).metrics()
        #expect(other.gauges.mirroredTracks == 1 && other.mediaLinks.links.isEmpty)
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

    @Test func `viewers that come to all loops at the same time share one request`() async throws {
        let bench = try await NodesBench(loopsPerNode: 3)
        var viewers: [(client: TestClient, loop: MediaLoop)] = []
        for number in 0..<9 {
            let loop = bench.loop(1, number % 3)
            viewers.append((try await bench.viewer(UInt64(number + 2), on: loop), loop))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for viewer in viewers { group.addTask { try await bench.play(viewer.client, on: viewer.loop) } }
            try await group.waitForAll()
        }
        #expect(bench.origins.requests.count == 1)
        try await bench.expectArrival(at: viewers.map(\.client))
        await bench.end(viewers.map(\.client))
    }

    @Test func `another loop takes over when the receiving loop's mirror has ended`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        let first = try await bench.viewer(2, on: bench.loop(1, 0))
        let second = try await bench.viewer(3, on: bench.loop(1, 1))
        try await bench.play(first, on: bench.loop(1, 0))
        try await bench.stop(first, on: bench.loop(1, 0))
        // Nobody has noticed yet that the first loop receives it no more.
        try await bench.play(second, on: bench.loop(1, 1))
        #expect(bench.origins.requests.map(\.receiver.location) == [0, 1].map { bench.loop(1, $0).location })
        try await bench.play(first, on: bench.loop(1, 0))
        #expect(bench.origins.requests.count == 2, "the second loop is asked")
        try await bench.expectArrival(at: [first, second])
        #expect(await bench.loop(1, 1).metrics().forwarder.packetsTransferred > 0)
        // The second loop goes on to receive it without viewers of its own.
        try await bench.stop(second, on: bench.loop(1, 1))
        try await bench.expectArrival(at: [first])
        await bench.end([first, second])
    }

    @Test func `a receiving loop whose mirror has ended is forgotten`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        let viewer = try await bench.viewer(2, on: bench.loop(1, 0))
        try await bench.play(viewer, on: bench.loop(1, 0))
        await bench.nodes[1].renewRemoteTracks()
        #expect(await bench.loop(1, 0).mirrors.receivedTracks == [bench.track.track])
        try await bench.stop(viewer, on: bench.loop(1, 0))
        await bench.nodes[1].renewRemoteTracks()
        #expect(await bench.loop(1, 0).mirrors.receivedTracks.isEmpty)
        let other = bench.loop(1, 1)
        let location = other.location
        let loops = await other.mirrors.receivingLoops
        let receiver = loops.loop(of: bench.track.track, orElse: location, insteadOf: nil)
        #expect(receiver == location, "no loop is left over")
        await bench.end([viewer])
    }

    @Test func `loops whose viewers come and go at the same time always get the track again`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        let viewers = [
            try await bench.viewer(2, on: bench.loop(1, 0)), try await bench.viewer(3, on: bench.loop(1, 1)),
        ]
        for round in 0..<30 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, viewer) in viewers.enumerated() {
                    group.addTask {
                        for _ in 0..<(index + round) % 3 {
                            try await bench.play(viewer, on: bench.loop(1, index))
                            try await bench.stop(viewer, on: bench.loop(1, index))
                        }
                        try await bench.play(viewer, on: bench.loop(1, index))
                    }
                }
                try await group.waitForAll()
            }
            try await bench.expectArrival(at: viewers)
        }
        await bench.end(viewers)
    }

    @Test func `loops that wait for a track which does not come are told why, after one request`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        let gone = TrackID(peer: PeerID(rawValue: 99), mid: NodesBench.mid)
        let source = PlacedTrack(track: gone, location: bench.loop(0).location)
        var viewers: [TestClient] = []
        for number in 0..<4 {
            viewers.append(try await bench.viewer(UInt64(number + 2), on: bench.loop(1, number % 2)))
        }
        bench.origins.hold()
        await withTaskGroup(of: Void.self) { group in
            for (index, viewer) in viewers.enumerated() {
                let loop = bench.loop(1, index % 2)
                let slot = TrackID(peer: viewer.id, mid: NodesBench.mid)
                group.addTask {
                    await #expect(throws: ForwarderError.unknownTrack(gone)) {
                        try await loop.connect(slot: slot, to: source)
                    }
                }
            }
            // One call asks; a viewer of each loop and the other loop wait.
            var waiting = 0
            while waiting < 3 {
                waiting = 0
                for index in 0..<2 { waiting += await bench.loop(1, index).mirrors.arriving[gone]?.count ?? 0 }
            }
            bench.origins.release()
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
        #expect(left.gauges.mirroredTracks == 0 && left.gauges.connectedSlots == 0 && left.mediaLinks.links.isEmpty)
        // It is asked again, and answers the new link.
        let stream = await viewer.payloads(on: NodesBench.mid)
        try await bench.play(viewer, on: bench.loop(1))
        try await bench.send([[7]], first: 1)
        #expect(try await stream.collect(1) == [[7]])
        await bench.end([viewer])
    }

    @Test func `a loop that got a track from another one just before its end asks for it itself`() async throws {
        let bench = try await NodesBench(loopsPerNode: 2)
        let first = try await bench.viewer(2, on: bench.loop(1, 0))
        let second = try await bench.viewer(3, on: bench.loop(1, 1))
        try await bench.play(first, on: bench.loop(1, 0))
        // The second loop is told that the node left, then asks the first one, and only then that is told.
        let node = bench.loop(0).location.node
        await bench.loop(1, 1).remoteNodeLeft(node)
        try await bench.play(second, on: bench.loop(1, 1))
        await bench.loop(1, 0).remoteNodeLeft(node)
        #expect(bench.origins.requests.count == 1)
        #expect(await bench.loop(1, 1).metrics().gauges.mirroredTracks == 1, "nothing has told it")
        // It learns of that with its next subscription: at once with another one, or else within a second.
        let slot = TrackID(peer: second.id, mid: NodesBench.mid)
        let preference = LayerPreference(cap: .level(0))
        try await bench.loop(1, 1).connect(slot: slot, to: bench.track, preference: preference)
        while bench.origins.requests.count < 2 { await bench.nodes[1].renewRemoteTracks() }
        #expect(bench.origins.requests.last?.receiver.location == bench.loop(1, 1).location)
        try await bench.expectArrival(at: [second])
        #expect(await bench.loop(1, 1).metrics().mediaLinks.links.count == 1)
        await bench.end([first, second])
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
                RemoteExport(track: gone, relay: MirrorID(rawValue: 1), receiver: Sample.end, origin: other)
            )
        }
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        await bench.end([viewer])
    }
}

/// What the nodes' control link carries.
struct MediaLinkEndTests {
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
        #expect(try decode(MediaLinkEnd.self, json) == Sample.end)
        #expect(Sample.end.addresses.count == 2)
        let addresses = try #require(json.firstMatch(of: /"addresses":\[([^\]]*)\]/)).1
        for list in ["", Array(repeating: "\"1.2.3.4:5\"", count: 17).joined(separator: ","), "\"name:1\"", "1"] {
            let changed = json.replacing(addresses, with: list)
            #expect(throws: DecodingError.self) { try decode(MediaLinkEnd.self, changed) }
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
    static let end = MediaLinkEnd(
        location: MediaLocation(loop: LoopIndex(rawValue: 3)),
        addresses: ["1.2.3.4:5", "[2001:db8::1]:7"].compactMap { TransportAddress($0) },
        link: 9,
        secret: LinkSecret { 0x0123_4567_89AB_CDEF }
    )
}
