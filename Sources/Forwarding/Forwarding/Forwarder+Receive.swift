public import Base
import ICE
import MediaTypes
public import Wire

/// Datagrams that come in: which protocol each is of, and which peer it is for.
extension Forwarder {
    /// Takes one datagram, decrypting in place.
    ///
    /// Its first byte tells the protocol. Only authenticated STUN makes an address known.
    /// - Parameters:
    ///   - datagram: the datagram at the start of a buffer.
    ///   - length: its bytes.
    public func receive(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        counters.datagramsReceived &+= 1
        counters.bytesReceived &+= UInt64(length)
        guard length >= 1, length <= datagram.byteCount else {
            counters.drop(.unknownProtocol)
            return
        }
        switch PacketProtocol(firstByte: datagram.bytes.byte(at: 0)) {
        case .stun:
            guard !isTURN(datagram.bytes.extracting(0..<length)) else {
                receivedTURN(&datagram, length: length, path: path, at: now, into: batch)
                return
            }
            receivedSTUN(datagram.bytes.extracting(0..<length), path: path, at: now, into: batch)
        case .dtls: receivedDTLS(datagram.bytes.extracting(0..<length), path: path, at: now, into: batch)
        case .rtp: receivedMedia(&datagram, length: length, path: path, at: now, into: batch)
        case .turnChannel: receivedTURN(&datagram, length: length, path: path, at: now, into: batch)
        case .relay: receivedMediaLink(&datagram, length: length, path: path, at: now, into: batch)
        case .zrtp, .quic, nil: counters.drop(.unknownProtocol)
        }
    }

    /// - Parameter owner: the only peer that the message may be for; `nil` for any.
    func receivedSTUN(
        _ datagram: RawSpan,
        of owner: PeerID? = nil,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let message: STUNMessageView
        do {
            message = try STUNMessageView(datagram)
        } catch {
            counters.drop(.malformedSTUN)
            return
        }
        guard let peer = directory.peer(of: message, over: path), owner == nil || peer.id == owner else {
            if !answeredBinding(message, from: path, at: now, into: batch) { counters.drop(.unknownUsername) }
            return
        }
        do {
            let wasSelected = peer.transport.selectedPath != nil
            let change = try peer.transport.receivedSTUN(message, path: path, at: now, into: batch)
            if !wasSelected, peer.transport.selectedPath != nil { notePath(of: peer, at: now) }
            peer.transport.countChecks(&counters)
            if message.messageClass == .request { peer.setup.checked(at: now) }
            // An indication is not authenticated and proves nothing.
            if message.messageClass != .indication, peer.transport.isValidated(path) {
                directory.noteCheck(over: path, of: peer, at: now)
            }
            handle(change, of: peer, over: path, at: now, into: batch)
        } catch {
            counters.drop(DropReason(error))
        }
    }

    func receivedDTLS(_ datagram: RawSpan, path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        guard let peer = directory.peer(over: path)?.object else {
            counters.drop(.unvalidatedAddress)
            return
        }
        // What follows a handshake does not overtake it.
        guard peer.transport.isConnected, handshakes.isEmpty || peer.waitingHandshakeDatagrams == 0 else {
            queueHandshake(datagram, of: peer, path: path, at: now)
            return
        }
        receivedDTLS(datagram, of: peer, path: path, at: now, into: batch)
    }

    private func queueHandshake(_ datagram: RawSpan, of peer: Peer, path: NetworkPath, at now: Instant) {
        guard peer.waitingHandshakeDatagrams < HandshakeQueue.datagramsOfPeerMax,
            handshakes.append(.init(peer: peer.id, path: path, bytes: datagram.array(), receivedAt: now))
        else {
            counters.drop(.handshakeQueueFull)
            return
        }
        peer.waitingHandshakeDatagrams += 1
    }

    /// Takes the next datagram of a handshake.
    /// - Parameter prepare: called before it is taken, if there is one.
    /// - Returns: whether there was one.
    func continueHandshake(at now: Instant, into batch: DatagramBatch, prepare: () -> Void) -> Bool {
        while let datagram = handshakes.removeFirst() {
            // The peer may have ended, or its path may be another one's now.
            guard let peer = peer(datagram.peer) else { continue }
            peer.waitingHandshakeDatagrams = max(0, peer.waitingHandshakeDatagrams - 1)
            guard directory.peer(over: datagram.path)?.object === peer else {
                counters.drop(.unvalidatedAddress)
                continue
            }
            prepare()
            receivedDTLS(unsafe datagram.bytes.span.bytes, of: peer, path: datagram.path, at: now, into: batch)
            return true
        }
        return false
    }

    private func receivedDTLS(
        _ datagram: RawSpan,
        of peer: Peer,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let wasSelected = peer.transport.selectedPath != nil
        let change = peer.transport.receivedDTLS(datagram, path: path, &counters, at: now, into: batch)
        if peer.transport.data != nil { schedule.markDirty(peer) }
        if !wasSelected, peer.transport.selectedPath != nil { notePath(of: peer, at: now) }
        counters.handshakeDatagramsHeld &+= UInt64(peer.transport.takeHeldDatagrams())
        for _ in 0..<min(peer.transport.takeMalformedRecords(), 16) { counters.drop(.malformedDTLS) }
        handle(change, of: peer, over: path, at: now, into: batch)
    }

    func receivedMedia(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard let peer = directory.peer(over: path) else {
            counters.drop(.unvalidatedAddress)
            return
        }
        // Its media removes no peer, so the directory keeps this one alive.
        let refusal = peer.with { peer in
            receivedMedia(&datagram, length: length, of: peer, at: now, into: batch)
        }
        if let refusal { counters.drop(refusal) }
    }

    @inline(__always)
    private func receivedMedia(
        _ datagram: inout MutableRawSpan,
        length: Int,
        of peer: Peer,
        at now: Instant,
        into batch: DatagramBatch
    ) -> DropReason? {
        let isRTCP = RTPPacketView.isRTCP(datagram.bytes.extracting(0..<length))
        if isRTCP, RTCPPacketView.reportsArrivals(datagram.bytes) { peer.prefetchReport() }
        guard peer.isConnected else { return .notSecured }
        do {
            if isRTCP {
                try peer.receivedRTCP(&datagram, length: length, at: now, into: batch)
            } else {
                try peer.receivedRTP(&datagram, length: length, core: self, at: now, into: batch)
            }
            return nil
        } catch {
            switch error {
            case .drop(let reason): return reason
            }
        }
    }

    /// Counts a peer whose first pair ICE selected.
    private func notePath(of peer: Peer, at now: Instant) {
        // A later one, after a time without consent, is not counted.
        guard let duration = peer.setup.pathSelected(at: now) else { return }
        counters.iceConnected &+= 1
        counters.setup.note(.ice, duration)
    }

    /// Acts on what the transport reported.
    /// - Parameter path: the pair of the datagram that caused it; `nil` for a timeout.
    func handle(
        _ change: PeerTransport.Change?,
        of peer: Peer,
        over path: NetworkPath? = nil,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        switch change {
        case .connected:
            counters.dtlsConnected &+= 1
            if let duration = peer.setup.connected(at: now) { counters.setup.note(.dtls, duration) }
            peer.becameConnected(at: now)
            peer.emitSetup()
            // The handshake may end before a pair is selected, or unselect a pair that is not proven.
            let transport = (peer.transport.selectedPath ?? path).flatMap(transportProtocol) ?? .udp
            peer.noteTransport(transport, at: now)
            emit(.connected(over: transport), of: peer.id)
            schedule.markDirty(peer)
        case .closed(let reason):
            fanOutAll(at: now, into: batch)
            tearDown(peer, reason, at: now)
        case .pathChanged:
            counters.pathChanges &+= 1
            peer.sendPathChanged(at: now)
            peer.transport.data?.value.pathChanged(at: now)
            reportTransport(of: peer, at: now)
            schedule.markDirty(peer)
        case nil: if !peer.transport.isConnected { schedule.markDirty(peer) }
        }
    }

    private func reportTransport(of peer: Peer, at now: Instant) {
        guard let path = peer.transport.selectedPath, let transport = transportProtocol(of: path),
            transport != peer.reportedTransport
        else { return }
        peer.noteTransport(transport, at: now)
        emit(.transportChanged(transport), of: peer.id)
    }

    /// What a pair is over; through an allocation, what its client is over. `nil` without the allocation.
    private func transportProtocol(of path: NetworkPath) -> TransportProtocol? {
        let client = path.local.kind == .relayed ? turn?.client(of: path) : path
        return client.map { $0.local.kind == .tcp ? .tcp : .udp }
    }
}
