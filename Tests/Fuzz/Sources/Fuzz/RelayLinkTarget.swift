import Base
import Forwarding
import MediaTypes
import SRTP
import Wire

/// Datagrams of a link between nodes: contents of any kind that are sealed with the right keys, as another node may send
/// them, and datagrams that are not. They reach a core that both exports and mirrors tracks over the link.
func fuzzRelayLink(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let scene = LinkScene()
    while !input.isAtEnd {
        let isSealed = input.flag()
        let isReport = input.flag()
        let contents = input.chunk()
        if isSealed { scene.receiveSealed(isReport ? .report : .media, contents) } else { scene.receive(contents) }
    }
    scene.end()
}

private final class LinkScene {
    private static let peer = PeerID(rawValue: 1)
    private static let farPeer = PeerID(rawValue: 2)
    private static let here = MediaLocation(loop: LoopIndex(rawValue: 1))
    private static let address = TransportAddress(ip: IPAddress(v4: 0x0A00_0001), port: 7_000)
    private static let secret = LinkSecret { 0x0101_0101_0101_0101 }
    private let core = makeCore()
    private let batch = SharedBatch.take()
    private var sender: MediaLinkSender
    private let link: UInt16
    private let node: NodeIncarnation
    private var now = Instant(nanoseconds: 1_000_000_000)

    init() {
        guard let node = NodeIncarnation(rawValue: 7) else { fatalError("no scene: a node's number") }
        self.node = node
        let there = MediaLocation(node: node, loop: LoopIndex(rawValue: 2))
        core.startMediaLinks(at: Self.here, sockets: [Self.address], addresses: [Self.address], into: batch)
        do {
            try RelaySample.addPublisher(Self.peer, to: core, at: now)
            let end = try core.mediaLinkEnd(to: there, at: now)
            let far = MediaLinkEnd(location: there, addresses: [Self.address], link: 3, secret: Self.secret)
            let id = try core.joinMediaLink(far, at: now)
            // The first identifiers of a core: indices 0, 1, … of generation 0.
            for track in ConnectedMedia.receive {
                let relay = try core.makeMirrorID()
                _ = try core.exportTrack(TrackID(peer: Self.peer, mid: track.mid), as: relay, to: far, at: now)
                let mirrored = MirroredTrack(id: TrackID(peer: Self.farPeer, mid: track.mid), parameters: track)
                core.addMirror(mirrored, as: relay, from: id, at: now)
            }
            var context: [UInt8] = [TransferMessage.version]
            for location in [there, Self.here] {
                context.append(bigEndian: location.node.rawValue)
                context.append(bigEndian: location.loop.rawValue)
            }
            let schedule = MediaLinkKeySchedule(
                receiverSecret: end.secret.bytes,
                senderSecret: Self.secret.bytes,
                context: context
            )
            sender = try MediaLinkSender(schedule, engine: SRTPEngine(.openssl), at: now)
            link = end.link
        } catch {
            fatalError("no scene: \(error)")
        }
    }

    func receiveSealed(_ kind: TransferEnvelope.Kind, _ contents: [UInt8]) {
        guard !contents.isEmpty else { return }
        var datagram = [UInt8](repeating: 0, count: TransferEnvelope.headerBytes) + contents
        let length = datagram.count
        datagram += [UInt8](repeating: 0, count: TransferEnvelope.tagBytes)
        let sealed = unsafe datagram.withUnsafeMutableBytes { bytes in
            unsafe bytes.baseAddress.flatMap { unsafe sender.seal($0, kind, link: link, length: length) }
        }
        require(sealed == datagram.count, "contents are sealed")
        let before = core.mediaLinkCounters.received.datagrams
        receive(datagram)
        require(core.mediaLinkCounters.received.datagrams == before + 1, "an authentic datagram is taken")
    }

    func receive(_ datagram: [UInt8]) {
        var buffer = datagram
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: Self.address)
        var span = buffer.mutableSpan
        var bytes = unsafe span.mutableBytes
        core.receive(&bytes, length: datagram.count, path: path, at: now, into: batch)
        core.endTurn(at: now, into: batch)
        now += .milliseconds(20)
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        batch.removeAll()
    }

    func end() {
        core.removeMediaLinks(to: node, at: now)
        core.removePeer(Self.peer, at: now, into: batch)
        core.endTurn(at: now, into: batch)
        batch.removeAll()
        for track in ConnectedMedia.receive { core.removeUnusedMirror(of: TrackID(peer: Self.farPeer, mid: track.mid)) }
        require(core.gauges.mirroredTracks == 0 && core.gauges.historyBytes == 0, "no mirror stays")
        require(core.mediaLinkStates(at: now).isEmpty, "no link stays")
    }
}

func seedsRelayLink() -> [(name: String, bytes: [UInt8])] {
    let relay = RelaySample.relay
    let (packet, rtp) = RelaySample.packet
    let messages: [(TransferMessage, [UInt8])] = [
        (packet, rtp), (.subscribe(TransferMessage.Subscription(relay: relay, choices: 1, layers: [])), []),
        (.keyFrameRequest(relay, stream: nil), []), (.unsubscribe(relay), []),
    ]
    var room = [UInt8](repeating: 0, count: 256)
    var length = 0
    var span = room.mutableSpan
    var target = unsafe span.mutableBytes
    for (message, body) in messages {
        length += withSpan(body) { TransferEnvelope.write(message, $0, age: 1_000_000, at: length, of: &target) } ?? 0
    }
    let records = target.bytes.extracting(0..<length).array()
    let report = TransferFeedback(
        sentAt: 1_700_000_001_000_000_000,
        echo: 1_700_000_000_990_000_000,
        echoDelay: 1_000,
        newest: 9,
        missing: [TransferFeedback.Missing(first: 1, count: 3)]
    )
    let reportLength = report.encode(at: 0, of: &target) ?? 0
    let reported = target.bytes.extracting(0..<reportLength).array()
    return [
        (
            "sealed",
            SeedWriter.make { writer in
                for (isReport, contents) in [(0, records), (1, reported), (0, records)] as [(UInt8, [UInt8])] {
                    writer.byte(1)
                    writer.byte(isReport)
                    writer.chunk(contents)
                }
            }
        ),
        (
            "not-sealed",
            SeedWriter.make { writer in
                writer.byte(0)
                writer.byte(0)
                writer.chunk([0xD0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] + records)
            }
        ),
    ]
}
