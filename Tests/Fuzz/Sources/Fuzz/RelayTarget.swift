import Base
import Forwarding
import MediaTypes
import Wire

/// Relay messages from a link between nodes: each is decoded, encoded again, and handled by a core with a mirror and an
/// exported track.
func fuzzRelay(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let scene = TransferScene()
    while !input.isAtEnd {
        let isFromOrigin = input.flag()
        let message = input.chunk()
        withSpan(message) { scene.receive($0, isFromOrigin: isFromOrigin) }
    }
    scene.end()
}

/// A track on one core and its mirror on another, connected by the input only.
private final class TransferScene {
    private static let link = LinkID(rawValue: 1)
    private static let peer = PeerID(rawValue: 1)
    private let origin = makeCore()
    private let edge = makeCore()
    private let batch = SharedBatch.take()
    private var now = Instant(nanoseconds: 1_000_000_000)

    init() {
        origin.setLink(TransferLink(), as: Self.link)
        edge.setLink(TransferLink(), as: Self.link)
        do {
            try RelaySample.addPublisher(Self.peer, to: origin, at: now)
            // The first identifiers of a core: indices 0, 1, … of generation 0.
            for track in ConnectedMedia.receive {
                let relay = try edge.makeMirrorID()
                let id = TrackID(peer: Self.peer, mid: track.mid)
                let relayed = try origin.exportTrack(id, as: relay, over: Self.link, at: now)
                edge.addMirror(relayed, as: relay, from: Self.link, at: now)
            }
        } catch {
            fatalError("no scene: \(error)")
        }
    }

    func receive(_ bytes: RawSpan, isFromOrigin: Bool) {
        let decoded: (message: TransferMessage, bodyOffset: Int)
        do { decoded = try TransferMessage.decode(bytes) } catch { return }
        let body = bytes.extracting(decoded.bodyOffset...)
        let written = decoded.message.encoded(body)
        require(written == bytes.array(), "a decoded message encodes to the same bytes")
        let core = isFromOrigin ? edge : origin
        core.receiveTransferred(TransferRecord(decoded.message), body, from: Self.link, at: now, into: batch)
        core.endTurn(at: now, into: batch)
        now += .milliseconds(20)
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        batch.removeAll()
    }

    func end() {
        for track in ConnectedMedia.receive { edge.removeUnusedMirror(of: TrackID(peer: Self.peer, mid: track.mid)) }
        origin.removePeer(Self.peer, at: now, into: batch)
        origin.endTurn(at: now, into: batch)
        require(edge.gauges.mirroredTracks == 0 && edge.gauges.historyBytes == 0, "no mirror stays")
        require(origin.gauges.peers == 0, "no peer stays")
    }
}

func seedsRelay() -> [(name: String, bytes: [UInt8])] {
    let relay = RelaySample.relay
    let (packet, rtp) = RelaySample.packet
    let clock = TransferMessage.clock(
        TransferMessage.Clock(
            relay: relay,
            stream: 1,
            senderNanoseconds: 3_900_000_000_000_000_000,
            timestamp: RTPTimestamp(rawValue: 48_000),
            offsetNanoseconds: 1_000
        )
    )
    // One stream of the table: its number, its index, whether it is active, bit/s, and the rates and sizes of its
    // layers.
    var table: [UInt8] = []
    table.append(bigEndian: 1 as UInt64)
    table += [0, 1]
    table.append(bigEndian: 48_000 as UInt32)
    table += [UInt8](repeating: 0, count: 80)
    let layers = withSpan(table) { TransferMessage.layers(relay).encoded($0) }
    let subscription = TransferMessage.Subscription(relay: relay, choices: 1, layers: LayerSet(layer: 0))
    let packetBytes = withSpan(rtp) { packet.encoded($0) }
    return [
        (
            "from-origin",
            SeedWriter.make { writer in
                for message in [packetBytes, clock.encoded(), layers] {
                    writer.byte(1)
                    writer.chunk(message)
                }
            }
        ),
        (
            "to-origin",
            SeedWriter.make { writer in
                let messages: [TransferMessage] = [
                    .subscribe(subscription), .keyFrameRequest(relay, stream: nil), .keyFrameRequest(relay, stream: 1),
                    .repairRequest(relay, stream: 1), .hold(relay, stream: 1), .unsubscribe(relay),
                ]
                for message in messages {
                    writer.byte(0)
                    writer.chunk(message.encoded())
                }
            }
        ),
    ]
}
