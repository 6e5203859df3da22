import Base
import DTLS
import Forwarding
import ICE
import MediaTypes
import SRTP
import TestSupport
import Wire

/// The forwarding core with a connected peer: whatever the peer protects reaches the media path, with subscribers of
/// every kind.
func fuzzConnected(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let run = ConnectedRun()
    // The input bounds the length of the script, but a few bytes can be a burst.
    var steps = 0
    while !input.isAtEnd, steps < 400 {
        run.step(&input)
        steps += 1
    }
    run.finish()
}

private final class ConnectedRun {
    private static let local = Sample.credentials("node", "the node's password")
    private static let remote = Sample.credentials("peer", "the peer's password")
    private static let peer = PeerID(rawValue: 1)

    private let core = makeCore()
    private let batch = SharedBatch.take()
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var path = samplePaths[0]
    private var transactions: UInt64 = 0
    private let transform: LibSRTPTransform
    private var receiver = MediaReceiver()
    private var sequences: [UInt32: UInt16] = [:]
    private var timestamps: [UInt32: UInt32] = [:]
    private var lastProtected: [UInt8] = []

    init() {
        let parameters = PeerParameters(
            id: Self.peer,
            localCredentials: Self.local,
            remote: RemoteTransport(
                credentials: Self.remote,
                fingerprints: [Certificates.far.fingerprint],
                localRole: .server
            ),
            receive: ConnectedMedia.receive,
            send: ConnectedMedia.send
        )
        do { try core.addPeer(parameters, at: now) } catch { fatalError("no peer: \(error)") }
        transform = Self.connect(core, batch, path, at: now)
        for slot in 0..<ConnectedMedia.send.count { connect(slot, to: slot < 2 ? 0 : slot == 3 ? 2 : 1) }
        settle()
    }

    /// ICE and DTLS with an honest client.
    private static func connect(
        _ core: Forwarder,
        _ batch: DatagramBatch,
        _ path: NetworkPath,
        at now: Instant
    ) -> LibSRTPTransform {
        func deliver(_ bytes: [UInt8]) {
            var buffer = bytes + [UInt8](repeating: 0, count: 32)
            var elements = buffer.mutableSpan
            var span = unsafe elements.mutableBytes
            core.receive(&span, length: bytes.count, path: path, at: now, into: batch)
        }
        deliver(makeCheck(to: local, from: remote, id: STUNTransactionID(high: 1, low: 0), nominating: true))
        batch.removeAll()
        guard
            let client = try? DTLSConnection(
                certificate: Certificates.far,
                role: .client,
                remoteFingerprints: [Certificates.near.fingerprint]
            )
        else { fatalError("no client") }
        client.start(at: now)
        var keys: SRTPKeyingMaterial?
        for _ in 0..<8 where keys == nil {
            var flight: [[UInt8]] = []
            client.drainOutput { flight.append($0.array()) }
            for datagram in flight {
                deliver(datagram)
                core.endTurn(at: now, into: batch)
            }
            for index in 0..<batch.count {
                batch.withDatagram(index) { datagram, _ in
                    if case .connected(let made) = client.receive(datagram, at: now) { keys = made }
                }
            }
            batch.removeAll()
        }
        guard let keys, let transform = try? LibSRTPTransform(keys) else { fatalError("no handshake") }
        return transform
    }

    func step(_ input: inout FuzzInput) {
        switch input.choice(17) {
        case 0, 1, 2, 3, 4: send(makePacket(&input), isRTCP: false)
        case 5: send(input.chunk(), isRTCP: false)
        case 6, 7: send(makeFeedback(&input), isRTCP: true)
        case 8: send(input.chunk(), isRTCP: true)
        case 9: now += .milliseconds(Int(input.uint16() & 0x1FFF))
        case 10: burst(&input)
        case 11:
            let slot = input.choice(ConnectedMedia.send.count)
            let choices: [LayerChoice] = [.richest, .level(0), .level(1), .level(2), .nothing]
            connect(slot, to: input.flag() ? input.choice(3) : nil, layer: input.pick(choices))
        case 12: deliver(lastProtected, on: path)
        case 13: roam(&input)
        case 14: deliver([0x80 | input.byte() & 0x3F] + input.chunk(), on: input.pick(samplePaths))
        case 16:
            core.requestKeyFrame(of: Self.peer, at: now)
            changeSlots(&input)
        default: core.endTurn(at: now, into: batch)
        }
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        settle()
    }

    /// A packet with a plausible header, and with extensions and a payload from the input.
    private func makePacket(_ input: inout FuzzInput) -> [UInt8] {
        let ssrc = input.pick(ConnectedMedia.ssrcs)
        let flags = input.byte()
        let payloadTypes: [UInt8] = [96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 111, 63, 0, 127]
        let payloadType = input.pick(payloadTypes)
        let step = Int8(bitPattern: input.byte())
        let sequence =
            flags & 1 != 0
            ? input.uint16() : sequences[ssrc, default: 65_530] &+ UInt16(truncatingIfNeeded: Int(step))
        sequences[ssrc] = sequence
        let timestamp = timestamps[ssrc, default: 0] &+ (flags & 2 != 0 ? input.uint32() : 3_000)
        timestamps[ssrc] = timestamp
        var extensions: [(id: UInt8, data: [UInt8])] = []
        for _ in 0..<input.choice(5) {
            let kind = input.byte() % 12
            switch kind {
            case 0: extensions.append((1, Array(input.pick(["a", "v", "l", "x"]).utf8)))
            case 1, 2: extensions.append((kind + 1, Array(input.pick(["h", "m", "l", "x"]).utf8)))
            case 8: extensions.append((9, input.flag() ? dependencyStructure : dependencyFrame))
            default: extensions.append((kind + 1, input.chunk(max: 40)))
            }
        }
        var payload = flags & 4 != 0 ? input.pick(samplePayloads).bytes : input.chunk()
        if payloadType < 106, payloadType % 2 == 1 {
            payload = [UInt8(sequence >> 8), UInt8(sequence & 0xFF)] + payload
        }
        if flags & 8 != 0 { payload += [UInt8](repeating: 0, count: 3) + [4] }
        var packet = makeRTP(
            payloadType: payloadType,
            marker: flags & 32 != 0,
            sequence: sequence,
            timestamp: timestamp,
            ssrc: ssrc,
            profile: flags & 16 == 0 ? nil : 0x1000,
            extensions: extensions,
            payload: payload
        )
        if flags & 8 != 0 { packet[0] |= 0x20 }
        return packet
    }

    private func makeFeedback(_ input: inout FuzzInput) -> [UInt8] {
        let slot = SSRC(rawValue: input.pick(ConnectedMedia.slotSSRCs))
        let source = SSRC(rawValue: input.pick(ConnectedMedia.ssrcs))
        var datagram: [UInt8] = []
        for _ in 0...input.choice(3) {
            var writer = RTCPWriter()
            switch input.choice(7) {
            case 0:
                let newest = SequenceNumber(rawValue: receiver.newest[slot.rawValue] ?? 0)
                let lost = (0..<input.choice(40)).map { _ in newest.advanced(by: -input.choice(256)) }
                writer.appendNACK(sender: source, media: slot, lost: lost)
            case 1: writer.appendPictureLoss(sender: source, media: slot)
            case 2:
                datagram += RTCPPackets.fullIntraRequest(
                    sender: source.rawValue,
                    media: slot.rawValue,
                    sequence: input.byte()
                )
            case 3:
                let block = ReportBlock(
                    ssrc: slot,
                    fractionLost: input.byte(),
                    cumulativeLost: Int32(Int8(bitPattern: input.byte())),
                    highestSequence: input.uint32(),
                    jitter: input.uint32(),
                    lastSR: input.uint32(),
                    delaySinceLastSR: input.uint32()
                )
                writer.appendReceiverReport(sender: source, blocks: [block])
            case 4:
                let ntp = UInt64(input.uint32()) << 32 | UInt64(input.uint32())
                let info = SenderInfo(
                    ntp: NTPTimestamp(rawValue: ntp),
                    rtp: RTPTimestamp(rawValue: input.uint32()),
                    packetCount: 1,
                    octetCount: 1
                )
                writer.appendSenderReport(sender: source, info: info)
            case 5:
                let bitrate = UInt64(input.uint32()) << 24
                datagram += RTCPPackets.remb(sender: source.rawValue, bitrate: bitrate, sources: [slot.rawValue])
            default: return input.pick(sampleRTCP(media: slot)).bytes
            }
            datagram += writer.bytes
        }
        return datagram
    }

    /// Consecutive packets, as in a frame or a talkspurt.
    private func burst(_ input: inout FuzzInput) {
        let ssrc = ConnectedMedia.ssrcs[input.choice(4)]
        let sample = input.pick(samplePayloads)
        let stride = UInt16(1 + input.choice(3))
        let room = Int(input.uint16()) % 1_300
        for _ in 0..<input.choice(64) {
            let sequence = sequences[ssrc, default: 65_530] &+ stride
            sequences[ssrc] = sequence
            let payloadType: UInt8 =
                switch sample.codec {
                case .opus: 111
                case .red: 63
                case .vp8: 96
                case .vp9: 98
                case .av1: 100
                case .h264: 102
                case .h265: 104
                }
            let extensions: [(id: UInt8, data: [UInt8])] = [
                (5, [UInt8(sequence >> 8), UInt8(sequence & 0xFF)]), (1, Array((ssrc == 0x1111 ? "a" : "v").utf8)),
            ]
            let payload = sample.bytes + [UInt8](repeating: 0, count: room)
            send(
                makeRTP(
                    payloadType: payloadType,
                    sequence: sequence,
                    timestamp: timestamps[ssrc, default: 0],
                    ssrc: ssrc,
                    extensions: extensions,
                    payload: payload
                ),
                isRTCP: false
            )
            settle()
        }
        timestamps[ssrc, default: 0] &+= 3_000
    }

    private func roam(_ input: inout FuzzInput) {
        let from = input.pick(samplePaths)
        let nominating = input.flag()
        transactions += 1
        deliver(
            makeCheck(
                to: Self.local,
                from: Self.remote,
                id: STUNTransactionID(high: 2, low: transactions),
                nominating: nominating
            ),
            on: from
        )
        if nominating { path = from }
    }

    private func connect(_ slot: Int, to track: Int?, layer: LayerChoice = .richest) {
        let slotID = TrackID(peer: Self.peer, mid: ConnectedMedia.send[slot].mid)
        let trackID = track.map { TrackID(peer: Self.peer, mid: ConnectedMedia.receive[$0].mid) }
        try? core.connect(slot: slotID, to: trackID, layer: layer, at: now)
    }

    /// Adds or removes another slot.
    private func changeSlots(_ input: inout FuzzInput) {
        var added = ConnectedMedia.send[input.choice(ConnectedMedia.send.count)]
        guard let mid = MID("added") else { return }
        added.mid = mid
        added.ssrc = SSRC(rawValue: 0x7000_0000 | UInt32(input.byte()))
        added.rtxSSRC = nil
        added.rid = nil
        let isAdded = input.flag()
        do {
            try core.changeSlots(of: Self.peer, add: isAdded ? [added] : [], remove: isAdded ? [] : [mid], at: now)
            if isAdded { receiver.slots.append(added) }
        } catch {
            // Refused: the slot is there already, or its SSRC was used before.
        }
        let trackID = TrackID(peer: Self.peer, mid: ConnectedMedia.receive[input.choice(3)].mid)
        try? core.connect(slot: TrackID(peer: Self.peer, mid: mid), to: trackID, at: now)
    }

    private func send(_ packet: [UInt8], isRTCP: Bool) {
        guard let protected = protect(packet, room: 32, isRTCP: isRTCP, with: transform) else { return }
        lastProtected = protected
        deliver(protected, on: path)
    }

    private func deliver(_ bytes: [UInt8], on path: NetworkPath) {
        var buffer = bytes + [UInt8](repeating: 0, count: 32)
        var elements = buffer.mutableSpan
        var span = unsafe elements.mutableBytes
        core.receive(&span, length: bytes.count, path: path, at: now, into: batch)
    }

    private func settle() {
        for index in 0..<batch.count {
            batch.withDatagram(index) { datagram, _ in receiver.received(datagram, with: transform) }
        }
        batch.removeAll()
        for (_, event) in core.takeEvents() {
            if case .closed(let reason) = event { require(reason != .requested, "no close was requested") }
        }
        require(batch.overflowed == 0, "a turn's datagrams are bounded")
    }

    func finish() {
        core.endTurn(at: now, into: batch)
        settle()
        let figures = core.statistics(of: Self.peer, at: now)
        require((figures != nil) == (core.peerCount == 1), "an existing peer has statistics")
        core.removePeer(Self.peer, at: now, into: batch)
        core.endTurn(at: now, into: batch)
        require(
            core.peerCount == 0 && core.gauges.peers == 0 && core.gauges.historyBytes == 0,
            "everything is released"
        )
        batch.removeAll()
    }
}

func seedsConnected() -> [(name: String, bytes: [UInt8])] {
    let lossy = SeedWriter.make { seed in
        for (sample, stream) in [(3, 1), (0, 0), (1, 0), (6, 1), (9, 1), (11, 1), (14, 1)] {
            for value in [10, stream, sample, 1] { seed.byte(value) }
            seed.uint16(900)
            seed.byte(30)
            for value in [9, 0, 30, 15] { seed.byte(value) }
            for value in [6, 2, 1, 0, 0, 6, 0, 1, 2, 3, 4, 5, 6, 3, 1, 1] { seed.byte(value) }
        }
    }
    let layers = SeedWriter.make { seed in
        for layer in 0..<3 {
            for number in 0..<4 {
                // One packet of a layer: SSRC, flags, payload type, step, two extensions, a key frame.
                for value in [0, 3 + layer, 4, 0, 1, 2, 0, 2, 1, layer, 3] { seed.byte(value) }
                if number == 2 { for value in [9, 1, 44] { seed.byte(value) } }
            }
        }
    }
    let retransmitted = SeedWriter.make { seed in
        for value in [10, 1, 3, 0] { seed.byte(value) }
        seed.uint16(50)
        seed.byte(5)
        for value in [0, 2, 4, 1, 1, 0, 3, 0, 2, 4, 1, 2, 0, 4] { seed.byte(value) }
        seed.byte(12)
        for value in [13, 3, 1, 9, 0, 200] { seed.byte(value) }
        for value in [11, 2, 1, 2, 11, 2, 0] { seed.byte(value) }
    }
    let feedback = SeedWriter.make { seed in
        for sample in sampleRTCP(media: SSRC(rawValue: 0xB1)) {
            seed.byte(8)
            seed.chunk(sample.bytes)
        }
        for sample in seedsRTP() {
            seed.byte(5)
            seed.chunk(sample.bytes)
        }
    }
    return [("lossy", lossy), ("layers", layers), ("retransmitted", retransmitted), ("feedback", feedback)]
}
