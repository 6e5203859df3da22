import EventLoop
import Forwarding
import MediaTypes
import Metrics
import TestSupport
import Testing
import Wire

@testable import Media

extension MediaLoop {
    /// Holds the loop's thread up.
    fileprivate func stall(at gate: Gate) { gate.pass() }

    fileprivate var awaitsTracks: Bool { !mirrors.arriving.isEmpty }

    fileprivate var holdsNothing: Bool { forwarder.isEmpty && mirrors.arriving.isEmpty }
}

/// Linked loops, one publisher on the first of them, and viewers anywhere.
private struct TransferBench {
    let loops: MediaLoops
    let publisher: TestClient
    let published: ReceiveTrackParameters
    let kind: MediaKind
    static let mid = MID("0")!

    var track: TrackID { TrackID(peer: publisher.id, mid: Self.mid) }

    init(loopCount: Int = 2, kind: MediaKind = .audio) async throws {
        var started: [MediaLoop] = []
        for loop in 0..<loopCount { started.append(try await MediaBench.makeLoop(loop: UInt16(loop))) }
        loops = await MediaLoops(linking: started)
        self.kind = kind
        published = MediaBench.track(mid: Self.mid, ssrc: SSRC(rawValue: 100), kind: kind)
        publisher = try await MediaBench.connect(1, to: started[0], publishing: [published])
    }

    func loop(_ index: Int) -> MediaLoop { loops.loops[index] }

    func viewer(_ number: UInt64, on index: Int) async throws -> TestClient {
        let slot = MediaBench.slot(mid: Self.mid, ssrc: SSRC(rawValue: UInt32(number) * 1_000), kind: kind)
        return try await MediaBench.connect(number, to: loop(index), playing: [slot])
    }

    /// Lets a viewer play the publisher, or nothing.
    func play(_ viewer: TestClient, on index: Int, _ isPlaying: Bool = true) async throws {
        let slot = TrackID(peer: viewer.id, mid: Self.mid)
        let source = isPlaying ? PlacedTrack(track: track, location: loop(0).location) : nil
        try await loop(index).connect(slot: slot, to: source)
    }

    func send(_ payloads: [[UInt8]], first: UInt16) async throws {
        try await publisher.send(payloads, on: Self.mid, parameters: published, first: first)
    }

    func relay(_ index: Int) async -> TransferCounters { await loop(index).metrics().relay }

    /// Ends all of it, and sees that nothing is left on any loop.
    func end(_ clients: [TestClient], _ location: SourceLocation = #_sourceLocation) async {
        for index in loops.loops.indices {
            for client in clients + [publisher] { await loop(index).removePeer(client.id) }
        }
        for loop in loops.loops { #expect(await loop.holdsNothing, sourceLocation: location) }
        await loops.shutdown()
        for client in clients + [publisher] { await client.stop() }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct TransferTests {
    @Test func `what is published on one loop arrives on every loop, in order and once each`() async throws {
        let bench = try await TransferBench(loopCount: 3)
        var viewers: [TestClient] = []
        var streams: [AsyncStream<[UInt8]>] = []
        for (number, index) in [(2, 0), (3, 1), (4, 1), (5, 2), (6, 2)] {
            let viewer = try await bench.viewer(UInt64(number), on: index)
            try await bench.play(viewer, on: index)
            streams.append(await viewer.payloads(on: TransferBench.mid))
            viewers.append(viewer)
        }
        for burst in 0..<10 {
            let payloads = (0..<30).map { [UInt8(burst), UInt8($0), 0xAA] }
            try await bench.send(payloads, first: UInt16(1_000 + burst * 30))
            for stream in streams { #expect(try await stream.collect(30) == payloads) }
        }
        let origin = await bench.loop(0).metrics()
        #expect(origin.forwarder.packetsTransferred == 600, "once a loop, not once a viewer")
        #expect(origin.relay.packetDrops == 0 && origin.relay.controlDrops == 0)
        #expect(origin.relay.recordsSent >= 600)
        #expect(origin.relay.allocatedBytes == 2 << 20)
        #expect(origin.relay.waitingBytesMax > 0)
        #expect(origin.forwarder.rtpSent == 300)
        for index in 1...2 {
            let metrics = await bench.loop(index).metrics()
            #expect(metrics.forwarder.rtpSent == 600)
            #expect(metrics.relay.recordsReceived >= 300)
            #expect(metrics.gauges.mirroredTracks == 1)
            #expect(metrics.forwardingLatency.count >= 600, "the way over the ring is timed too")
        }
        await bench.end(viewers)
    }

    @Test func `a key frame request of a far viewer reaches the publisher, and the key frame the viewer`() async throws
    {
        let bench = try await TransferBench(kind: .video)
        // VP8: a descriptor of one byte, then a frame whose first bit tells whether it is a key frame (RFC 7741 §4.3).
        let keyFrame: [UInt8] = [0x10, 0x00, 7, 7, 0x9D, 0x01, 0x2A, 0, 1, 0, 1]
        let otherFrame: [UInt8] = [0x10, 0x01, 8, 8]
        try await bench.send([keyFrame, otherFrame], first: 1)
        try await eventually("the first loop has two packets") {
            await bench.loop(0).metrics().forwarder.rtpReceived == 2
        }
        _ = await bench.publisher.takeKeyFrameRequest()
        let viewer = try await bench.viewer(2, on: 1)
        let stream = await viewer.payloads(on: TransferBench.mid)
        try await bench.play(viewer, on: 1)
        try await eventually("the publisher is asked for a key frame") { await bench.publisher.takeKeyFrameRequest() }
        try await bench.send([otherFrame, keyFrame, otherFrame], first: 3)
        #expect(try await stream.collect(2) == [keyFrame, otherFrame], "from the key frame on")
        await bench.end([viewer])
    }

    @Test func `the last viewer of a loop takes the mirror along, and packets stop crossing`() async throws {
        let bench = try await TransferBench()
        let viewers = [try await bench.viewer(2, on: 1), try await bench.viewer(3, on: 1)]
        for viewer in viewers { try await bench.play(viewer, on: 1) }
        let last = await viewers[1].payloads(on: TransferBench.mid)
        await bench.loop(1).removePeer(viewers[0].id)
        try await bench.send([[1]], first: 1)
        #expect(try await last.collect(1) == [[1]], "one viewer is left")
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 1)
        await bench.loop(1).removePeer(viewers[1].id)
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        // The unsubscription is the last record that comes back.
        let back = await bench.relay(1).recordsSent
        try await eventually("the unsubscription has come back") { await bench.relay(0).recordsReceived == back }
        let crossed = await bench.relay(0).recordsSent
        try await bench.send([[2], [3]], first: 2)
        try await eventually("the first loop has three packets") {
            await bench.loop(0).metrics().forwarder.rtpReceived == 3
        }
        #expect(await bench.relay(0).recordsSent == crossed)
        await bench.end(viewers)
    }

    @Test func `a publisher that leaves leaves nothing, and its successor is played`() async throws {
        let bench = try await TransferBench()
        let viewer = try await bench.viewer(2, on: 1)
        try await bench.play(viewer, on: 1)
        let stream = await viewer.payloads(on: TransferBench.mid)
        try await bench.send([[1]], first: 1)
        #expect(try await stream.collect(1) == [[1]])
        await bench.loop(0).removePeer(bench.publisher.id)
        #expect(await bench.loop(0).holdsNothing)
        try await bench.play(viewer, on: 1, false)
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        let next = try await MediaBench.connect(9, to: bench.loop(0), publishing: [bench.published])
        try await bench.loop(1).connect(
            slot: TrackID(peer: viewer.id, mid: TransferBench.mid),
            to: PlacedTrack(track: TrackID(peer: next.id, mid: TransferBench.mid), location: bench.loop(0).location)
        )
        try await next.send([[2]], on: TransferBench.mid, parameters: bench.published, first: 500)
        #expect(try await stream.collect(1) == [[2]])
        await bench.end([viewer, next])
    }

    @Test func `a location that is no loop of the node is an error`() async throws {
        let bench = try await TransferBench()
        let viewer = try await bench.viewer(2, on: 1)
        let slot = TrackID(peer: viewer.id, mid: TransferBench.mid)
        let node = try #require(NodeIncarnation(rawValue: 9))
        let elsewhere = MediaLocation(node: node, loop: bench.loop(1).location.loop)
        await #expect(throws: ForwarderError.unknownLocation(elsewhere)) {
            try await bench.loop(1).connect(slot: slot, to: PlacedTrack(track: bench.track, location: elsewhere))
        }
        await bench.end([viewer])
    }

    @Test func `a source that left before it was connected is an error, and leaves nothing`() async throws {
        let bench = try await TransferBench()
        let viewer = try await bench.viewer(2, on: 1)
        await bench.loop(0).removePeer(bench.publisher.id)
        for _ in 0..<3 {
            await #expect(throws: ForwarderError.unknownTrack(bench.track)) { try await bench.play(viewer, on: 1) }
        }
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        await bench.end([viewer])
    }

    @Test func `a viewer that leaves while its source is on the way leaves no mirror`() async throws {
        let bench = try await TransferBench()
        let viewer = try await bench.viewer(2, on: 1)
        let gate = Gate()
        async let stalled: Void = bench.loop(0).stall(at: gate)
        await gate.waitForArrival()
        let playing = Task { try await bench.play(viewer, on: 1) }
        try await eventually("the second loop awaits the track") { await bench.loop(1).awaitsTracks }
        await bench.loop(1).removePeer(viewer.id)
        gate.open()
        await stalled
        await #expect(throws: ForwarderError.unknownPeer(viewer.id)) { try await playing.value }
        #expect(await bench.loop(1).metrics().gauges.mirroredTracks == 0)
        await bench.end([viewer])
    }

    @Test func `viewers that come at the same time share one mirror`() async throws {
        let bench = try await TransferBench()
        var viewers: [TestClient] = []
        for number in 2...6 { viewers.append(try await bench.viewer(UInt64(number), on: 1)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for viewer in viewers { group.addTask { try await bench.play(viewer, on: 1) } }
            try await group.waitForAll()
        }
        var streams: [AsyncStream<[UInt8]>] = []
        for viewer in viewers { streams.append(await viewer.payloads(on: TransferBench.mid)) }
        try await bench.send([[1], [2]], first: 1)
        for stream in streams { #expect(try await stream.collect(2) == [[1], [2]]) }
        #expect(await bench.loop(0).metrics().forwarder.packetsTransferred == 2)
        await bench.end(viewers)
    }

    @Test func `loops play each other's publishers`() async throws {
        let bench = try await TransferBench()
        let other = try await MediaBench.connect(2, to: bench.loop(1), publishing: [bench.published])
        let viewers = [try await bench.viewer(3, on: 1), try await bench.viewer(4, on: 0)]
        try await bench.play(viewers[0], on: 1)
        try await bench.loop(0).connect(
            slot: TrackID(peer: viewers[1].id, mid: TransferBench.mid),
            to: PlacedTrack(track: TrackID(peer: other.id, mid: TransferBench.mid), location: bench.loop(1).location)
        )
        let streams = [
            await viewers[0].payloads(on: TransferBench.mid), await viewers[1].payloads(on: TransferBench.mid),
        ]
        try await bench.send([[1]], first: 1)
        try await other.send([[2]], on: TransferBench.mid, parameters: bench.published, first: 1)
        #expect(try await streams[0].collect(1) == [[1]])
        #expect(try await streams[1].collect(1) == [[2]])
        await bench.end(viewers + [other])
    }

    @Test func `a loop that stalls holds nobody up, loses what it must, and comes back`() async throws {
        let bench = try await TransferBench()
        let near = try await bench.viewer(2, on: 0)
        let far = try await bench.viewer(3, on: 1)
        try await bench.play(near, on: 0)
        try await bench.play(far, on: 1)
        let nearStream = await near.payloads(on: TransferBench.mid)
        let farStream = await far.payloads(on: TransferBench.mid)
        let gate = Gate()
        async let stalled: Void = bench.loop(1).stall(at: gate)
        await gate.waitForArrival()
        // More than the ring takes, while the near viewer gets every packet.
        var sent: UInt16 = 0
        while await bench.relay(0).packetDrops < 100 {
            let payloads = (0..<30).map { [UInt8](repeating: UInt8($0), count: 1_000) }
            try await bench.send(payloads, first: sent)
            #expect(try await nearStream.collect(30) == payloads)
            sent += 30
        }
        let full = await bench.relay(0)
        #expect(full.controlDrops == 0)
        #expect(full.waitingBytes <= full.allocatedBytes / 8 * 7)
        #expect(full.waitingBytesMax > full.allocatedBytes / 2)
        #expect(full.recordsSent > UInt64(MediaLoop.transferRecordsPerTurnMax), "it takes several turns to catch up")
        gate.open()
        await stalled
        try await eventually("the second loop has all records") {
            await bench.relay(1).recordsReceived >= full.recordsSent
        }
        #expect(await bench.relay(0).waitingBytes == 0)
        // The far viewer's socket may have lost of the burst, but not of what follows.
        let marker: [UInt8] = [0xEE]
        var arrived = farStream.makeAsyncIterator()
        try await bench.send(Array(repeating: marker, count: 20), first: sent)
        while let payload = await arrived.next(), payload != marker {}
        await bench.end([near, far])
    }
}
