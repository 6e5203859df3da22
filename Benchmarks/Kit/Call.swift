package import Base
internal import DTLS
internal import Forwarding
internal import MediaTypes
package import SRTP
package import Wire

/// A call in memory, in virtual time: a forwarder with one publisher and a number of subscribers, connected with real
/// ICE and DTLS.
@safe
package final class Call {
    package struct Shape: Sendable {
        package var subscribers = 100
        package var profile = SRTPProfile.aeadAES128GCM
        package var backend = SRTPBackend.preferred
        package var payloadBytes = 1_100
        /// Packets that arrive in one turn of the loop.
        package var packetsPerTurn = 8
        /// Whether the subscribers are on another loop, which the packets reach through a ring.
        package var crossesLoops = false
        /// Whether the subscribers are on another node, which the packets reach in sealed datagrams.
        package var crossesNodes = false
        /// Whether how much each subscriber is sent follows its feedback.
        package var isEstimating = false
        /// Whether the subscribers are behind the forwarder's own TURN server, each with a channel.
        package var isRelayed = false
        /// Every second subscriber may be sent at most this, in bit/s; `nil` for no limit.
        package var limit: Int?
        package init() {}
    }

    /// The publisher sends 30 frames of eight packets a second.
    static let turnInterval = Interval.microseconds(33_333)
    /// Turns between two renewals of consent (RFC 7675 §5.1) and between two receiver reports, about as in browsers.
    private static let refreshTurns = 30
    /// Turns between two reports of the packets' arrivals, as in browsers.
    static let turnsPerReport = 3
    private static let outwardLink = LinkID(rawValue: 0)
    private static let backLink = LinkID(rawValue: 1)
    private static let certificates = Result {
        (node: try DTLSCertificate.generate(), client: try DTLSCertificate.generate())
    }

    package let shape: Shape
    /// The forwarder of the publisher's loop.
    let publisherForwarder: Forwarder
    /// The forwarder of the viewers' loop. The same object unless the call crosses loops.
    let viewerForwarder: Forwarder
    let batch = DatagramBatch(capacity: 1_024)
    /// Datagrams of the batch with the headers of their channels.
    let framed = DatagramBatch(capacity: 1_024)
    private let outward = RingLink()
    private let back = RingLink()
    private let nodes = NodePair()
    /// Virtual time, in memory whose reads need no exclusivity check.
    private let clock: UnsafeMutablePointer<Instant>
    var now: Instant {
        get { unsafe clock.pointee }
        set { unsafe clock.pointee = newValue }
    }
    private let publisher: RemotePeer
    let viewers: [RemotePeer]
    private var maker: SyntheticPacket
    let inbox: Inbox
    private var turns = 0
    /// What each viewer reports of the packets that it received; empty unless they do.
    var reporters: [FeedbackReporter] = []
    /// Reports in the inbox.
    var reports = 0
    /// Periods that passed.
    var periods = 0
    /// Datagrams that left the forwarder since the last ``takeForwarded()``.
    var forwarded = 0
    /// The unencrypted packets of the last turn.
    var plain: [[UInt8]] = []

    package init(_ shape: Shape) throws {
        self.shape = shape
        let now = Instant(nanoseconds: 1_000_000_000)
        unsafe clock = .allocate(capacity: 1)
        unsafe clock.initialize(to: now)
        let certificates = try Self.certificates.get()
        func make(seed: UInt64) -> Forwarder {
            makeForwarder(certificates.node, shape.backend, isEstimating: shape.isEstimating, seed: seed)
        }
        publisherForwarder = make(seed: 5)
        viewerForwarder = shape.crossesLoops || shape.crossesNodes ? make(seed: 6) : publisherForwarder
        var environment = RemotePeer.Environment(
            node: certificates.node,
            client: certificates.client,
            profile: shape.profile,
            engine: try SRTPEngine(.openssl),
            generator: SplitMix64(seed: 9)
        )
        maker = SyntheticPacket(ssrc: Session.source, payloadBytes: shape.payloadBytes)
        inbox = Inbox(capacity: Self.turnsPerReport * shape.packetsPerTurn + shape.subscribers)
        publisher = try RemotePeer(
            1,
            joining: publisherForwarder,
            receive: [Session.published],
            in: &environment,
            through: batch,
            at: now
        )
        if shape.isRelayed { viewerForwarder.startTURN(at: Session.mediaAddress) }
        var viewers: [RemotePeer] = []
        for index in 0..<shape.subscribers {
            viewers.append(
                try RemotePeer(
                    2 + UInt64(index),
                    joining: viewerForwarder,
                    relayedTo: shape.isRelayed ? Session.mediaAddress : nil,
                    send: [Session.slot(of: index)],
                    in: &environment,
                    through: batch,
                    at: now
                )
            )
        }
        self.viewers = viewers
        if shape.isEstimating {
            reporters = viewers.indices.map { index in
                let egress = viewerForwarder.peer(viewers[index].id)?.transport.egress
                return FeedbackReporter(media: Session.ssrc(of: index), next: egress?.nextTransportSequence ?? 0)
            }
        }
        try connect()
        batch.onFull = { [unowned self] batch in
            publisherForwarder.completeBatch()
            viewerForwarder.completeBatch()
            forwarded += batch.count
            batch.removeAll()
        }
    }

    deinit { unsafe clock.deallocate() }

    private func connect() throws {
        let track = TrackID(peer: publisher.id, mid: Session.mid)
        if shape.crossesLoops {
            publisherForwarder.setLink(outward, as: Self.outwardLink)
            viewerForwarder.setLink(back, as: Self.backLink)
            let relay = try viewerForwarder.makeMirrorID()
            let relayed = try publisherForwarder.exportTrack(track, as: relay, over: Self.outwardLink, at: now)
            viewerForwarder.addMirror(relayed, as: relay, from: Self.backLink, at: now)
        }
        if shape.crossesNodes { try nodes.connect(track, from: publisherForwarder, to: viewerForwarder, at: now) }
        for viewer in viewers {
            try viewerForwarder.connect(slot: TrackID(peer: viewer.id, mid: Session.mid), to: track, at: now)
        }
        guard let limit = shape.limit else { return }
        for viewer in viewers.indices where viewer % 2 == 0 {
            viewerForwarder.limitSending(to: viewers[viewer].id, bitsPerSecond: limit, at: now)
        }
    }

    // MARK: - Turns

    /// Puts the next turn's packets, encrypted by the publisher, into the inbox.
    package func prepareTurn() throws {
        plain.removeAll(keepingCapacity: true)
        inbox.removeAll()
        try receiveTurn()
    }

    /// Puts a turn's packets, encrypted by the publisher, behind what is in the inbox.
    func receiveTurn() throws {
        for _ in 0..<shape.packetsPerTurn {
            let packet = maker.next()
            inbox.append(try publisher.protectRTP(packet), from: publisher.route)
            plain.append(packet)
        }
    }

    /// A loop's turn with received datagrams: everything before the flush of the socket.
    @inline(never)
    package func forwardTurn() {
        inbox.deliver(to: publisherForwarder, at: now, into: batch)
        publisherForwarder.endTurn(at: now, into: batch)
        if shape.crossesLoops {
            _ = outward.deliver(to: viewerForwarder, from: Self.backLink, at: now, into: batch)
            viewerForwarder.endTurn(at: now, into: batch)
            _ = back.deliver(to: publisherForwarder, from: Self.outwardLink, at: now, into: batch)
        }
        if shape.crossesNodes {
            nodes.deliverOutward(to: viewerForwarder, at: now, into: batch)
            viewerForwarder.endTurn(at: now, into: batch)
            nodes.deliverBack(to: publisherForwarder, at: now, into: batch)
        }
    }

    /// A turn of the publisher's node alone.
    /// - Returns: the datagrams that wait for the viewers' node, and their bytes.
    func forwardToNode() -> (datagrams: Int, bytes: Int) {
        inbox.deliver(to: publisherForwarder, at: now, into: batch)
        publisherForwarder.endTurn(at: now, into: batch)
        return nodes.waiting
    }

    /// The work of a loop when its timer fires: feedback to the publisher, and reports to all peers, when they are due.
    @inline(never)
    package func serviceTurn() {
        if let deadline = publisherForwarder.nextDeadline, deadline <= now {
            publisherForwarder.handleTimeout(at: now, into: batch)
        }
        guard shape.crossesLoops || shape.crossesNodes, let deadline = viewerForwarder.nextDeadline, deadline <= now
        else { return }
        viewerForwarder.handleTimeout(at: now, into: batch)
    }

    /// Counts and discards the batch's datagrams.
    @inline(__always)
    func takeBatch() {
        forwarded += batch.count
        discardBatch()
    }

    /// Counts and discards the batch's datagrams, and advances the time to the next turn.
    package func finishTurn() {
        takeBatch()
        turns += 1
        now += Self.turnInterval
        if turns % Self.refreshTurns == 0 { refresh() }
    }

    /// Discards the batch's datagrams.
    package func discardBatch() { batch.removeAll() }

    /// Advances the time without media.
    package func advance(_ interval: Interval) { now += interval }

    /// The number of datagrams that left since the last call.
    package func takeForwarded() -> Int {
        defer { forwarded = 0 }
        return forwarded
    }

    /// Every client renews consent with a check and answers those of the forwarder. Every viewer sends a receiver report,
    /// which also confirms its SSRC.
    package func refresh() {
        let before = forwarded
        for peer in viewers {
            deliver(peer.makeCheck(), from: peer.route, to: viewerForwarder, at: now, into: batch)
            peer.answerChecks(of: viewerForwarder, at: now, into: batch)
        }
        deliver(publisher.makeCheck(), from: publisher.route, to: publisherForwarder, at: now, into: batch)
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
            deliver(report, from: viewer.route, to: viewerForwarder, at: now, into: batch)
        }
        publisherForwarder.endTurn(at: now, into: batch)
        viewerForwarder.endTurn(at: now, into: batch)
        discardBatch()
        _ = publisherForwarder.takeEvents()
        _ = viewerForwarder.takeEvents()
        forwarded = before
    }

    /// Brings the call to its steady state: histories and batches have grown, reports were received.
    ///
    /// The first and the last viewer decrypt every packet and compare it with the one that was sent.
    package func warmUp(turns count: Int = 120) throws {
        for turn in 0..<count {
            try prepareTurn()
            forwardTurn()
            // A batch that overflowed has the last packets only. Nothing is verified before the first key frame.
            if batch.capacity > (shape.packetsPerTurn + 1) * shape.subscribers, turn > 0 { try verifyTurn() }
            finishTurn()
            serviceTurn()
            discardBatch()
        }
        _ = takeForwarded()
    }

    /// Checks that the first and the last viewer were sent the turn's packets with payload type `type`, unchanged.
    private func verifyTurn(as type: PayloadType = SyntheticPacket.payloadType) throws {
        for index in Set([0, viewers.count - 1]) where viewers.indices.contains(index) {
            let arrived = datagrams(to: viewers[index], of: type)
            guard arrived.count == plain.count else {
                throw CallError.broken("\(arrived.count) of \(plain.count) packets arrived")
            }
            for (sent, datagram) in zip(plain, arrived) {
                let packet = try viewers[index].unprotectRTP(datagram)
                // The payload descriptor differs, because each viewer has picture ids of its own.
                guard packet.suffix(shape.payloadBytes - 6).elementsEqual(sent.suffix(shape.payloadBytes - 6)) else {
                    throw CallError.broken("a packet was changed")
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

    /// Forwards a turn of media. Every viewer then sends a NACK for every packet; ``forwardTurn()`` receives the NACKs.
    package func prepareNACKs() throws {
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
            inbox.append(try viewer.protectRTCP(writer.bytes), from: viewer.route)
        }
    }

    /// Checks and discards the retransmissions.
    package func finishNACKs() throws {
        try verifyTurn(as: Session.retransmissionType)
        discardBatch()
    }
}
