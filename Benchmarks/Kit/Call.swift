internal import DTLS
internal import Forwarding
internal import MediaTypes
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
        /// The subscribers are on another loop, which the packets reach through a ring.
        package var crossesLoops = false
        package init() {}
    }

    /// A publisher at 240 packets a second: eight-packet frames, thirty a second.
    private static let turnInterval = Interval.microseconds(33_333)
    /// Turns between two renewals of consent (RFC 7675 §5.1), and about as often as browsers report.
    private static let refreshTurns = 30
    private static let outwardLink = LinkID(rawValue: 0)
    private static let backLink = LinkID(rawValue: 1)
    private static let certificates = Result {
        (node: try DTLSCertificate.generate(), client: try DTLSCertificate.generate())
    }

    package let shape: Shape
    /// The publisher's loop.
    private let core: Forwarder
    /// The subscribers' loop: mostly the same.
    private let home: Forwarder
    private let batch = DatagramBatch(capacity: 1_024)
    private let outward = RingLink()
    private let back = RingLink()
    /// Virtual time, where reading it is not an access to be checked.
    private let clock: UnsafeMutablePointer<Instant>
    private var now: Instant {
        get { unsafe clock.pointee }
        set { unsafe clock.pointee = newValue }
    }
    private let publisher: RemotePeer
    private let viewers: [RemotePeer]
    private var maker: SyntheticPacket
    private let inbox: Inbox
    private var turns = 0
    /// Datagrams that left the forwarder since the last ``takeForwarded()``.
    private var forwarded = 0
    /// What the last turn was made of, in the clear.
    private var plain: [[UInt8]] = []

    package init(_ shape: Shape) throws {
        self.shape = shape
        let now = Instant(nanoseconds: 1_000_000_000)
        unsafe clock = .allocate(capacity: 1)
        unsafe clock.initialize(to: now)
        let certificates = try Self.certificates.get()
        core = makeForwarder(certificates.node, shape.backend, seed: 5)
        home = shape.crossesLoops ? makeForwarder(certificates.node, shape.backend, seed: 6) : core
        var environment = RemotePeer.Environment(
            node: certificates.node,
            client: certificates.client,
            profile: shape.profile,
            engine: try SRTPEngine(.openssl),
            generator: SeededGenerator(seed: 9)
        )
        maker = SyntheticPacket(ssrc: Session.source, payloadBytes: shape.payloadBytes)
        inbox = Inbox(capacity: max(shape.packetsPerTurn, shape.subscribers))
        publisher = try RemotePeer(
            1,
            joining: core,
            receive: [Session.published],
            in: &environment,
            through: batch,
            at: now
        )
        var viewers: [RemotePeer] = []
        for index in 0..<shape.subscribers {
            viewers.append(
                try RemotePeer(
                    2 + UInt64(index),
                    joining: home,
                    send: [Session.slot(of: index)],
                    in: &environment,
                    through: batch,
                    at: now
                )
            )
        }
        self.viewers = viewers
        try connect()
        batch.onFull = { [unowned self] batch in
            core.completeBatch()
            home.completeBatch()
            forwarded += batch.count
            batch.removeAll()
        }
    }

    deinit { unsafe clock.deallocate() }

    private func connect() throws {
        let track = TrackID(peer: publisher.id, mid: Session.mid)
        if shape.crossesLoops {
            core.setLink(outward, as: Self.outwardLink)
            home.setLink(back, as: Self.backLink)
            let relay = try home.makeRelayID()
            let relayed = try core.exportTrack(track, as: relay, over: Self.outwardLink, at: now)
            home.addMirror(relayed, as: relay, from: Self.backLink, at: now)
        }
        for viewer in viewers {
            try home.connect(slot: TrackID(peer: viewer.id, mid: Session.mid), to: track, at: now)
        }
    }

    // MARK: - Turns

    /// Puts the next turn's packets, encrypted by the publisher, where the socket would.
    package func prepareTurn() throws {
        plain.removeAll(keepingCapacity: true)
        inbox.removeAll()
        for _ in 0..<shape.packetsPerTurn {
            let packet = maker.next()
            inbox.append(try publisher.protectRTP(packet), from: publisher.path)
            plain.append(packet)
        }
    }

    /// What a loop's turn does with datagrams that have arrived: everything up to the one flush of the socket.
    @inline(never)
    package func forwardTurn() {
        inbox.deliver(to: core, at: now, into: batch)
        core.endTurn(at: now, into: batch)
        if shape.crossesLoops {
            _ = outward.pass(to: home, from: Self.backLink, at: now, into: batch)
            home.endTurn(at: now, into: batch)
            _ = back.pass(to: core, from: Self.outwardLink, at: now, into: batch)
        }
    }

    /// What a loop does when its timer fires: feedback to the publisher, reports to everybody, at their time.
    @inline(never)
    package func serviceTurn() {
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        guard shape.crossesLoops, let deadline = home.nextDeadline, deadline <= now else { return }
        home.handleTimeout(at: now, into: batch)
    }

    /// Takes the batch's datagrams as sent and lets time go on to the next turn.
    package func finishTurn() {
        forwarded += batch.count
        discardBatch()
        turns += 1
        now += Self.turnInterval
        if turns % Self.refreshTurns == 0 { refresh() }
    }

    /// Takes the batch's datagrams as sent, without a turn having passed.
    package func discardBatch() { batch.removeAll() }

    /// Lets time go on without any media.
    package func pass(_ interval: Interval) { now += interval }

    /// Datagrams that left since the last call.
    package func takeForwarded() -> Int {
        defer { forwarded = 0 }
        return forwarded
    }

    /// Every client renews consent and every viewer reports, which also tells the node that it knows its SSRC.
    package func refresh() {
        let before = forwarded
        for peer in viewers { deliver(peer.makeCheck(), from: peer.path, to: home, at: now, into: batch) }
        deliver(publisher.makeCheck(), from: publisher.path, to: core, at: now, into: batch)
        for (index, viewer) in viewers.enumerated() {
            var writer = RTCPWriter()
            let block = ReportBlock(
                ssrc: Session.ssrc(of: index),
                fractionLost: 0,
                cumulativeLost: 0,
                highestSequence: 0,
                jitter: 0,
                lastSR: 0,
                delaySinceLastSR: 0
            )
            writer.appendReceiverReport(sender: SSRC(rawValue: 7), blocks: [block])
            guard let report = try? viewer.protectRTCP(writer.bytes) else { continue }
            deliver(report, from: viewer.path, to: home, at: now, into: batch)
        }
        core.endTurn(at: now, into: batch)
        home.endTurn(at: now, into: batch)
        discardBatch()
        _ = core.takeEvents()
        _ = home.takeEvents()
        forwarded = before
    }

    /// Lets the call reach its steady state: histories grown, reports received, batches at their size.
    ///
    /// Every packet is followed to the first and the last viewer on the way, decrypted there and compared.
    package func warmUp(turns count: Int = 120) throws {
        for turn in 0..<count {
            try prepareTurn()
            forwardTurn()
            // Of a batch that overflowed only the end would be there. The first turn's feedback brings the key frame.
            if batch.capacity > (shape.packetsPerTurn + 1) * shape.subscribers, turn > 0 { try verifyTurn() }
            finishTurn()
            serviceTurn()
            discardBatch()
        }
        _ = takeForwarded()
    }

    /// Whether the first and the last viewer were sent the turn's packets under `type`, and these are whole.
    private func verifyTurn(as type: PayloadType = SyntheticPacket.payloadType) throws {
        for index in Set([0, viewers.count - 1]) where viewers.indices.contains(index) {
            let arrived = datagrams(to: viewers[index], of: type)
            guard arrived.count == plain.count else {
                throw CallError.broken("\(arrived.count) of \(plain.count) packets arrived")
            }
            for (sent, datagram) in zip(plain, arrived) {
                let packet = try viewers[index].unprotectRTP(datagram)
                // Behind the descriptor, whose picture id is the viewer's own, everything is as it was sent.
                guard packet.suffix(shape.payloadBytes - 6).elementsEqual(sent.suffix(shape.payloadBytes - 6)) else {
                    throw CallError.broken("a packet changed on its way")
                }
            }
        }
    }

    private func datagrams(to viewer: RemotePeer, of type: PayloadType) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for place in 0..<batch.count {
            batch.withDatagram(place) { bytes, path in
                if path == viewer.path, bytes.byte(at: 1) & 0x7F == type.rawValue { found.append(bytes.array()) }
            }
        }
        return found
    }

    // MARK: - Retransmission

    /// Sends a turn of media on, of which every viewer then asks for every packet again. The requests wait to be
    /// received by ``forwardTurn()``.
    package func prepareRequests() throws {
        try prepareTurn()
        forwardTurn()
        let lost = viewers.map { viewer in
            datagrams(to: viewer, of: SyntheticPacket.payloadType).map {
                SequenceNumber(rawValue: UInt16($0[2]) << 8 | UInt16($0[3]))
            }
        }
        finishTurn()
        serviceTurn()
        discardBatch()
        _ = takeForwarded()
        inbox.removeAll()
        for (index, viewer) in viewers.enumerated() {
            var writer = RTCPWriter()
            writer.appendNACK(sender: SSRC(rawValue: 7), media: Session.ssrc(of: index), lost: lost[index])
            inbox.append(try viewer.protectRTCP(writer.bytes), from: viewer.path)
        }
    }

    /// Checks what was sent again, and takes it as sent.
    package func finishRequests() throws {
        try verifyTurn(as: Session.retransmissionType)
        discardBatch()
    }
}
