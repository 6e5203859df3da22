public import Base
public import MediaTypes
public import TURN
public import Wire

/// The core's TURN server, and the media addresses that its clients reach.
final class TURNGateway {
    var server: TURNServer
    let mediaAddresses: [TransportAddress]
    /// The loop, in the user names of its sessions.
    private let loop: UInt16
    /// The calls that there were so far.
    private var callNumber: UInt64 = 0
    /// Peers that ended in this turn. What is in the batch for them still leaves.
    var ended: [PeerID] = []
    /// Without sessions nobody has credentials, so nobody is answered.
    var isInUse: Bool { server.sessionCount > 0 }
    /// When allocations expire next; `nil` while there are none.
    var nextDeadline: Instant? { server.nextDeadline }

    /// Ends the allocations that have expired.
    func handleTimeout(at now: Instant) { while server.handleTimeout(at: now) != nil {} }

    /// The peer that a datagram to a client's own address is for, and where its packet is behind the header of a channel.
    func payload(of datagram: RawSpan, to client: NetworkPath) -> (peer: PeerID, payload: Range<Int>)? {
        server.payload(of: datagram, to: client).map { (PeerID(rawValue: $0.0.rawValue), $0.1) }
    }

    func makeCredentials(using generator: inout some RandomNumberGenerator) -> TURNCredentials {
        TURNCredentials(loop: loop, using: &generator)
    }

    /// Adds a call.
    /// - Returns: its number and the credentials of its members; `nil` when there are as many calls as may be.
    func addCall(
        at now: Instant,
        using generator: inout some RandomNumberGenerator
    ) -> (number: UInt64, first: TURNCredentials, second: TURNCredentials)? {
        let number = callNumber
        let (first, second) = (makeCredentials(using: &generator), makeCredentials(using: &generator))
        let isAdded = server.addCall(
            (Self.session(ofCall: number), first),
            (TURNSessionID(rawValue: Self.session(ofCall: number).rawValue - 1), second),
            at: now
        )
        guard isAdded else { return nil }
        callNumber += 1
        return (number, first, second)
    }

    func endCall(_ number: UInt64, keepsAllocations: Bool, at now: Instant) {
        guard number < callNumber else { return }
        let session = Self.session(ofCall: number)
        if keepsAllocations {
            server.releaseCall(of: session, at: now)
        } else {
            server.removeCall(of: session, at: now)
        }
    }

    /// The session of a call's first member; that of the second one is the number below. They go down from the highest number,
    /// which the identifiers of peers do not reach.
    private static func session(ofCall number: UInt64) -> TURNSessionID {
        TURNSessionID(rawValue: .max - 2 * number)
    }

    /// The client that a relayed path leads to.
    func client(of path: NetworkPath) -> NetworkPath? { server.client(of: path.remote) }

    /// The peer whose allocation a client has; `nil` without one.
    func peer(of client: NetworkPath) -> PeerID? {
        server.session(of: client).map { PeerID(rawValue: $0.rawValue) }
    }

    init(
        _ configuration: TURNConfiguration,
        mediaAddresses: [TransportAddress],
        using source: inout some RandomNumberGenerator
    ) {
        server = TURNServer(configuration, using: &source)
        loop = configuration.loop
        self.mediaAddresses = mediaAddresses
    }
}

/// TURN: what a client sends through its allocation reaches its own peer, as if it had come over another socket, or in a call the
/// other member, whose datagrams the server itself puts into the batch.
extension Forwarder {
    /// Starts the core's TURN server; once. It answers while any peer has credentials.
    /// - Parameter mediaAddresses: the host candidates of the core's descriptions, the only addresses that clients reach.
    public func startTURN(_ configuration: TURNConfiguration, mediaAddresses: [TransportAddress]) {
        precondition(turn == nil, "a core has one TURN server")
        var generator = self.configuration.generator
        turn = TURNGateway(configuration, mediaAddresses: mediaAddresses, using: &generator)
    }

    /// Accepts new TURN credentials for a peer, which may be added later. They end with the peer, or with
    /// ``removePeer(_:at:into:)`` if it is never added.
    /// - Returns: `nil` without a TURN server, or when the peer has credentials.
    public func openTURN(for peer: PeerID, at now: Instant) -> TURNCredentials? {
        guard let turn else { return nil }
        let session = TURNSessionID(rawValue: peer.rawValue)
        guard !turn.server.hasSession(session) else { return nil }
        var generator = configuration.generator
        let credentials = turn.makeCredentials(using: &generator)
        turn.server.addSession(session, credentials: credentials, peers: turn.mediaAddresses, at: now)
        return credentials
    }

    /// Accepts new TURN credentials for the two members of a call, until ``closeCallRelay(_:keepsAllocations:at:)``. They reach each
    /// other's relayed addresses, and no peer.
    /// - Returns: the call's number and the credentials; `nil` without a TURN server, or when there are as many calls as may be.
    public func openCallRelay(
        at now: Instant
    ) -> (number: UInt64, first: TURNCredentials, second: TURNCredentials)? {
        var generator = configuration.generator
        return turn?.addCall(at: now, using: &generator)
    }

    /// Ends the TURN credentials of a call's members. Does nothing for an unknown call.
    /// - Parameter keepsAllocations: whether those that the clients have stay for as long as they refresh them.
    public func closeCallRelay(_ number: UInt64, keepsAllocations: Bool, at now: Instant) {
        turn?.endCall(number, keepsAllocations: keepsAllocations, at: now)
    }

    /// The calls whose members have credentials.
    public var turnCallCount: Int { turn?.server.callCount ?? 0 }
    /// The allocations of members of calls.
    public var turnCallAllocationCount: Int { turn?.server.callAllocationCount ?? 0 }
    /// The counters of the TURN server; `nil` without one.
    public var turnCounters: TURNCounters? { turn?.server.counters }
    /// The allocations of the TURN server.
    public var turnAllocationCount: Int { turn?.server.allocationCount ?? 0 }
    /// Those of clients on streams.
    public var turnStreamAllocationCount: Int { turn?.server.streamAllocationCount ?? 0 }

    /// Ends the TURN sessions of peers that ended. To be called after a turn's batch was sent.
    public func closeTURNSessions(at now: Instant) {
        guard let turn, !turn.ended.isEmpty else { return }
        for peer in turn.ended { turn.server.removeSession(TURNSessionID(rawValue: peer.rawValue), at: now) }
        turn.ended.removeAll()
    }

    // MARK: - From clients

    /// Whether a datagram is for the TURN server. Asked about STUN only: other datagrams tell it by their first byte.
    @inline(__always)
    func isTURN(_ datagram: RawSpan) -> Bool {
        guard let turn else { return false }
        return turn.isInUse && TURNServer.isTURN(datagram)
    }

    /// Takes a datagram for the TURN server, and what it carries for the client's peer.
    func receivedTURN(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard let turn, turn.isInUse else {
            counters.drop(.unknownProtocol)
            return
        }
        guard batch.hasRoom() else { return }
        // The server counts what it drops.
        guard
            let event = try? turn.server.handle(
                datagram.bytes.extracting(0..<length),
                from: path,
                at: now,
                into: batch
            ),
            case .relayed(let session, let relayedPath, let payload) = event
        else { return }
        var inner = datagram._mutatingExtracting(payload)
        receivedRelayed(
            &inner,
            of: PeerID(rawValue: session.rawValue),
            path: relayedPath,
            at: now,
            into: batch
        )
    }

    /// Takes a datagram from a relayed address. It reaches the peer that the allocation belongs to, and no other.
    private func receivedRelayed(
        _ datagram: inout MutableRawSpan,
        of peer: PeerID,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let kind = PacketProtocol(firstByte: datagram.bytes.byte(at: 0))
        if kind == .stun {
            receivedSTUN(datagram.bytes, of: peer, path: path, at: now, into: batch)
            return
        }
        guard directory.peer(over: path)?.object.id == peer else {
            counters.drop(.unvalidatedAddress)
            return
        }
        switch kind {
        case .dtls: receivedDTLS(datagram.bytes, path: path, at: now, into: batch)
        case .rtp: receivedMedia(&datagram, length: datagram.byteCount, path: path, at: now, into: batch)
        default: counters.drop(.unknownProtocol)
        }
    }

    /// Answers a Binding request that names no peer: clients of a TURN server use it as a STUN server too.
    /// - Returns: whether the request was such a one.
    func answeredBinding(
        _ message: borrowing STUNMessageView,
        from path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Bool {
        guard let turn, turn.isInUse, message.messageClass == .request, message.usernameRange == nil,
            path.local.kind != .relayed
        else { return false }
        if batch.hasRoom() { turn.server.answerBinding(message, from: path, at: now, into: batch) }
        return true
    }

    // MARK: - To clients

    /// Frames the datagrams of a run on a relayed path for their client. Drops them, counted by the server, when the
    /// allocation or its permission has ended.
    ///
    /// - Parameters:
    ///   - run: a run of `batch` that ``completeBatch()`` was called for.
    ///   - framed: gets a datagram for each one of the run, to the client's own address.
    /// - Returns: whether the path is a relayed one of this core.
    public func frame(
        _ run: DatagramBatch.Run,
        of batch: DatagramBatch,
        at now: Instant,
        into framed: DatagramBatch
    ) -> Bool {
        guard let turn, run.path.local.kind == .relayed else { return false }
        guard var route = try? turn.server.route(over: run.path, at: now) else { return true }
        let start = route.headerBytes
        batch.forEachDatagram(of: run) { bytes in
            let end = start + bytes.byteCount
            let isFramed = framed.append(to: route.client) { slot in
                guard end <= slot.byteCount else { return nil }
                slot.store(bytes, at: start)
                return route.frame(start..<end, in: &slot)?.upperBound
            }
            if isFramed { turn.server.noteSent() } else { turn.server.noteTooLong() }
        }
        return true
    }
}
