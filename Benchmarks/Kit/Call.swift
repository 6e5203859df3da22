internal import Counters
internal import DTLS
internal import Forwarding
package import SRTP
package import Wire

/// A call in memory: a forwarder with one publisher and a number of subscribers, all connected by real ICE and DTLS,
/// in virtual time.
@safe
package final class Call {
    package struct Shape: Sendable {
        package var subscribers = 100
        package var profile = SRTPProfile.aeadAES128GCM
        package var backend = SRTPBackend.preferred
        package var payloadBytes = 1_100
        /// Packets that arrive in one turn of the loop.
        package var packetsPerTurn = 8
        package init() {}
    }

    /// A publisher at 240 packets a second: eight-packet frames, thirty a second.
    private static let turnInterval = Interval.microseconds(33_333)
    private static let receiveSlotBytes = 2_048
    /// Before consent runs out (RFC 7675 §5.1) and about as often as browsers report.
    private static let refreshTurns = 30
    private static let certificates = Result {
        (near: try DTLSCertificate.generate(), far: try DTLSCertificate.generate())
    }

    package let shape: Shape
    let core: Forwarder
    let batch = DatagramBatch(capacity: 1_024)
    package private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private let publisher: RemotePeer
    private let viewers: [RemotePeer]
    private var maker: SyntheticPacket
    /// Where the sockets put datagrams: one slot for each packet of a turn.
    private let received: UnsafeMutableRawBufferPointer
    private let lengths: UnsafeMutableBufferPointer<Int>
    private var turns = 0
    /// Datagrams that left the forwarder since the last ``takeForwarded()``.
    private var forwarded = 0
    /// What the last turn was made of, in the clear.
    private var plain: [[UInt8]] = []

    package init(_ shape: Shape) throws {
        self.shape = shape
        let certificates = try Self.certificates.get()
        core = makeForwarder(certificates.near, shape.backend, seed: 5)
        // The clients', whose work is not measured.
        let engine = try SRTPEngine(.openssl)
        var generator = SeededGenerator(seed: 9)
        maker = SyntheticPacket(ssrc: SSRC(rawValue: 0x5151), payloadBytes: shape.payloadBytes)
        let codec = CodecParameters(
            name: .vp8,
            payloadType: SyntheticPacket.payloadType,
            rtxPayloadType: PayloadType(wire: 97),
            feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportCC]
        )
        guard let mid = MID("0") else { throw CallError.broken("a MID") }
        publisher = try RemotePeer(
            joining: core,
            { id, credentials, remote in
                PeerParameters(
                    id: id,
                    localCredentials: credentials,
                    remote: remote,
                    receive: [
                        ReceiveTrackParameters(
                            mid: mid,
                            kind: .video,
                            codecs: [codec],
                            extensions: SyntheticPacket.extensions
                        )
                    ]
                )
            },
            number: 1,
            certificates: certificates,
            profile: shape.profile,
            engine: engine,
            through: batch,
            at: now,
            using: &generator
        )
        var viewers: [RemotePeer] = []
        for index in 0..<shape.subscribers {
            let viewer = try RemotePeer(
                joining: core,
                { id, credentials, remote in
                    PeerParameters(
                        id: id,
                        localCredentials: credentials,
                        remote: remote,
                        send: [
                            SendTrackParameters(
                                mid: mid,
                                kind: .video,
                                codecs: [codec],
                                extensions: SyntheticPacket.extensions,
                                ssrc: Self.ssrc(of: index),
                                rtxSSRC: SSRC(rawValue: 0x2_0000 + UInt32(index)),
                                cname: "stream"
                            )
                        ]
                    )
                },
                number: 2 + UInt64(index),
                certificates: certificates,
                profile: shape.profile,
                engine: engine,
                through: batch,
                at: now,
                using: &generator
            )
            viewers.append(viewer)
        }
        self.viewers = viewers
        unsafe received = .allocate(byteCount: shape.packetsPerTurn * Self.receiveSlotBytes, alignment: 64)
        unsafe received.initializeMemory(as: UInt8.self, repeating: 0)
        unsafe lengths = .allocate(capacity: shape.packetsPerTurn)
        unsafe lengths.initialize(repeating: 0)
        for viewer in viewers {
            try core.connect(
                slot: TrackID(peer: viewer.id, mid: mid),
                to: TrackID(peer: publisher.id, mid: mid),
                at: now
            )
        }
        _ = core.takeEvents()
        batch.onFull = { [unowned self] batch in
            core.completeBatch()
            forwarded += batch.count
            batch.removeAll()
        }
    }

    deinit {
        unsafe received.deallocate()
        unsafe lengths.deallocate()
    }

    private static func ssrc(of viewer: Int) -> SSRC { SSRC(rawValue: 0x1_0000 + UInt32(viewer)) }

    // MARK: - Turns

    /// Puts the next turn's packets, encrypted by the publisher, where the socket would.
    package func prepareTurn() throws {
        plain.removeAll(keepingCapacity: true)
        for index in 0..<shape.packetsPerTurn {
            let packet = maker.next()
            let protected = try publisher.protectRTP(packet)
            plain.append(packet)
            unsafe lengths[index] = protected.count
            let start = index * Self.receiveSlotBytes
            unsafe UnsafeMutableRawBufferPointer(rebasing: received[start..<start + Self.receiveSlotBytes])
                .copyBytes(from: protected)
        }
    }

    /// What a loop's turn does with datagrams that have arrived: everything up to the one flush of the socket.
    @inline(never)
    package func forwardTurn() {
        for index in 0..<shape.packetsPerTurn {
            let slot = unsafe UnsafeMutableRawBufferPointer(
                start: received.baseAddress! + index * Self.receiveSlotBytes,
                count: Self.receiveSlotBytes
            )
            var span = unsafe slot.mutableBytes
            core.receive(&span, length: unsafe lengths[index], path: publisher.path, at: now, into: batch)
        }
        core.endTurn(at: now, into: batch)
        core.completeBatch()
    }

    /// What a loop does when its timer fires: feedback to the publisher, reports to everybody, at their time.
    @inline(never)
    package func serviceTurn() {
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        core.completeBatch()
    }

    /// Takes the batch's datagrams as sent and lets time go on to the next turn.
    package func finishTurn() {
        forwarded += batch.count
        batch.removeAll()
        turns += 1
        now += Self.turnInterval
        if turns % Self.refreshTurns == 0 { refresh() }
    }

    /// Takes the batch's datagrams as sent, without a turn having passed.
    package func discardBatch() { batch.removeAll() }

    /// Datagrams that left since the last call.
    package func takeForwarded() -> Int {
        defer { forwarded = 0 }
        return forwarded
    }

    /// Every client renews consent and every viewer reports, which also tells the node that it knows its SSRC.
    private func refresh() {
        let before = forwarded
        for peer in [publisher] + viewers {
            deliver(peer.makeCheck(), from: peer.path, to: core, at: now, into: batch)
        }
        for (index, viewer) in viewers.enumerated() {
            var writer = RTCPWriter()
            let block = ReportBlock(
                ssrc: Self.ssrc(of: index),
                fractionLost: 0,
                cumulativeLost: 0,
                highestSequence: 0,
                jitter: 0,
                lastSR: 0,
                delaySinceLastSR: 0
            )
            writer.appendReceiverReport(sender: SSRC(rawValue: 7), blocks: [block])
            guard let report = try? viewer.protectRTCP(writer.bytes) else { continue }
            deliver(report, from: viewer.path, to: core, at: now, into: batch)
        }
        core.endTurn(at: now, into: batch)
        core.completeBatch()
        batch.removeAll()
        _ = core.takeEvents()
        forwarded = before
    }

    /// Lets the call reach its steady state: histories grown, reports received, batches at their size.
    ///
    /// Every packet is followed to the first and the last viewer on the way, decrypted there and compared.
    package func warmUp(turns count: Int = 120) throws {
        for turn in 0..<count {
            try prepareTurn()
            forwardTurn()
            // The full check of a turn with a batch that overflowed would see only its end.
            if batch.capacity >= shape.packetsPerTurn * shape.subscribers, turn > 0 { try verifyTurn() }
            finishTurn()
            serviceTurn()
            discardBatch()
        }
        _ = takeForwarded()
        _ = core.takeEvents()
    }

    private func verifyTurn() throws {
        for index in Set([0, viewers.count - 1]) where viewers.indices.contains(index) {
            let viewer = viewers[index]
            var arrived: [[UInt8]] = []
            for place in 0..<batch.count {
                batch.withDatagram(place) { bytes, path in
                    if path == viewer.path, !RTPPacketView.isRTCP(bytes) { arrived.append(bytes.array()) }
                }
            }
            guard arrived.count == plain.count else {
                throw CallError.broken("\(arrived.count) of \(plain.count) packets arrived")
            }
            for (sent, datagram) in zip(plain, arrived) {
                let packet = try viewer.unprotectRTP(datagram)
                // Behind the descriptor, whose picture id is the viewer's own, everything is as it was sent.
                guard packet.suffix(shape.payloadBytes - 6).elementsEqual(sent.suffix(shape.payloadBytes - 6)) else {
                    throw CallError.broken("a packet changed on its way")
                }
            }
        }
    }
}
