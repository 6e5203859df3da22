import Base
import EventLoop
import Forwarding
import MediaTypes
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Media

/// What a sink was given.
private final class Taken: TrackSinkReceiver {
    struct Packet: Sendable, Equatable {
        let payload: [UInt8]
        let sequence: UInt16
        let isChosen: Bool
    }
    private let share: Mutex<(packets: [Packet], anchors: Int, ends: Int)>

    init() { share = Mutex(([], 0, 0)) }

    var packets: [Packet] { share.withLock { $0.packets } }
    var anchors: Int { share.withLock { $0.anchors } }
    var ends: Int { share.withLock { $0.ends } }

    func received(_ packet: SinkPacket, _ description: PacketDescription, _ bytes: RawSpan, at now: Instant) {
        let payload = description.payloadRange.map { unsafe bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
        share.withLock {
            $0.packets.append(
                Packet(payload: payload, sequence: packet.sequence.wire.rawValue, isChosen: packet.isChosen)
            )
        }
    }

    func received(_ anchor: SinkClockAnchor) { share.withLock { $0.anchors += 1 } }
    func ended() { share.withLock { $0.ends += 1 } }
}

extension Taken: @unchecked Sendable {}

/// A gateway loop with its actor.
private actor Gateway {
    nonisolated let eventLoop: EventLoop
    private let exchange: TrackExchange
    private let port: GatewayPort
    private var sinks: [TrackID: TrackSink] = [:]

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe eventLoop.executor.asUnownedSerialExecutor() }

    init(_ port: GatewayPort) {
        eventLoop = port.place.eventLoop
        self.port = port
        exchange = TrackExchange(port)
    }

    /// The actor's jobs wait for its loop.
    nonisolated func start() async throws {
        try eventLoop.start()
        await begin()
    }

    private func begin() {
        eventLoop.onSignal = { [self] now in
            if exchange.takeTransferred(at: now) { eventLoop.signal() }
        }
        eventLoop.onTimer = { [self] now in
            exchange.refresh(at: now)
            eventLoop.setTimer(at: exchange.nextDeadline)
        }
        eventLoop.onTurnEnd = { [self] _ in exchange.publish() }
    }

    func take(_ track: PlacedTrack, _ choice: LayerChoice = .richest, into receiver: Taken) async throws {
        guard let loop = port.loop(at: track.location) else { throw ForwarderError.unknownLocation(track.location) }
        let id = try exchange.makeSinkID()
        let exported: MirroredTrack
        do {
            exported = try await loop.export(track.track, as: id, to: port.place.location)
        } catch {
            exchange.discardSinkID(id)
            throw error
        }
        sinks[track.track] = try exchange.addSink(
            as: id,
            of: exported,
            at: track.location,
            choosing: choice,
            receiver: receiver,
            at: EventLoop.now()
        )
        eventLoop.setTimer(at: exchange.nextDeadline)
    }

    func stop(_ track: TrackID) { if let sink = sinks.removeValue(forKey: track) { exchange.removeSink(sink) } }
    func requestKeyFrame(of track: TrackID) { sinks[track]?.requestKeyFrame() }
    var count: Int { exchange.count }
    var counters: TransferCounters { exchange.counters }
}

private struct GatewayBench {
    static let mid = MID("0")!
    let loops: MediaLoops
    let gateway: Gateway
    let publisher: TestClient
    let published: ReceiveTrackParameters

    var track: PlacedTrack {
        PlacedTrack(track: TrackID(peer: publisher.id, mid: Self.mid), location: loops.loops[1].location)
    }

    init(kind: MediaKind = .audio) async throws {
        let started = [try await MediaBench.makeLoop(loop: 0), try await MediaBench.makeLoop(loop: 1)]
        let place = GatewayPlace(at: MediaLocation(loop: LoopIndex(rawValue: 2)), on: EventLoop(name: "gateway"))
        loops = await MediaLoops(linking: started, gateways: [place])
        gateway = Gateway(loops.gateways[0])
        try await gateway.start()
        published = MediaBench.track(mid: Self.mid, ssrc: SSRC(rawValue: 100), kind: kind)
        publisher = try await MediaBench.connect(1, to: started[1], publishing: [published])
    }

    func send(_ payloads: [[UInt8]], first: UInt16) async throws {
        try await publisher.send(payloads, on: Self.mid, parameters: published, first: first)
    }

    func metrics() async -> MediaMetrics { await loops.loops[1].metrics() }

    func end() async {
        await loops.shutdown()
        await gateway.eventLoop.stop()
        await publisher.stop()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct GatewayTests {
    @Test func `a sink gets each packet of its track once, and nothing before and after`() async throws {
        let bench = try await GatewayBench()
        let taken = Taken()
        try await bench.send([[9]], first: 9)
        try await bench.gateway.take(bench.track, into: taken)
        let payloads = (0..<100).map { [UInt8($0), 0xAA] }
        try await bench.send(payloads, first: 10)
        try await eventually("all packets are taken") { taken.packets.count == 100 }
        #expect(taken.packets.map(\.payload) == payloads)
        let numbers = taken.packets.map(\.sequence)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
        #expect(taken.packets.allSatisfy { $0.isChosen })
        let origin = await bench.metrics()
        #expect(origin.forwarder.packetsTransferred == 100 && origin.relay.packetDrops == 0)
        #expect(await bench.gateway.counters.recordsReceived >= 100)

        await bench.gateway.stop(bench.track.track)
        try await bench.send([[1]], first: 200)
        try await bench.send([[2]], first: 201)
        try await eventually("the media loop has received them") {
            await bench.metrics().forwarder.rtpReceived >= 103
        }
        #expect(taken.packets.count == 100 && taken.ends == 0)
        #expect(await bench.gateway.count == 0)
        #expect(await bench.metrics().forwarder.packetsTransferred == 100)
        await bench.end()
    }

    @Test func `a sink ends when its publisher leaves, and names are used again`() async throws {
        let bench = try await GatewayBench()
        let taken = Taken()
        try await bench.gateway.take(bench.track, into: taken)
        try await bench.send([[1]], first: 1)
        try await eventually("a packet is taken") { taken.packets.count == 1 }
        await bench.loops.loops[1].removePeer(bench.publisher.id)
        // The next subscription is answered with the end.
        try await eventually("the sink has ended") { taken.ends == 1 }
        #expect(await bench.gateway.count == 0)
        let track = bench.track
        await #expect(throws: ForwarderError.self) { try await bench.gateway.take(track, into: taken) }
        await bench.end()
    }

    @Test func `a sink that asks for a key frame gets one from the publisher`() async throws {
        let bench = try await GatewayBench(kind: .video)
        let taken = Taken()
        let keyFrame: [UInt8] = [0x10, 0x00, 7, 7, 0x9D, 0x01, 0x2A, 0, 1, 0, 1]
        try await bench.send([keyFrame, [0x10, 0x01, 8, 8]], first: 1)
        try await bench.gateway.take(bench.track, into: taken)
        _ = await bench.publisher.takeKeyFrameRequest()
        try await eventually("the publisher is asked for a key frame") {
            await bench.gateway.requestKeyFrame(of: bench.track.track)
            return await bench.publisher.takeKeyFrameRequest()
        }
        await bench.end()
    }

    @Test func `a second sink of a track takes over, and the first one ends`() async throws {
        let bench = try await GatewayBench()
        let (first, second) = (Taken(), Taken())
        try await bench.gateway.take(bench.track, into: first)
        try await bench.gateway.take(bench.track, into: second)
        #expect(first.ends == 1)
        try await bench.send([[1], [2]], first: 1)
        try await eventually("the second one takes the packets") { second.packets.count == 2 }
        #expect(first.packets.isEmpty && second.ends == 0)
        #expect(await bench.gateway.count == 1)
        await bench.end()
    }
}
