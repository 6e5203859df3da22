public import Base
public import Wire

/// The TURN server of one media loop (RFC 8656), without relay sockets.
///
/// The only peers that a client reaches are the media addresses of its own session. So an allocation is an entry in a
/// table: what a client sends to a peer is handed to its session as if it had arrived on the media socket, and nothing
/// can be relayed to another host.
///
/// The two sessions of a call have no media addresses. Their clients reach each other's relayed addresses: the server hands
/// a datagram from the one's allocation to the other's, and sends it to that client's own 5-tuple.
///
/// A relayed datagram comes from the path whose local end is `LocalEndpoint(.relayed, index)`, where the index is that
/// of the media address in the session's list, and whose remote end is the allocation's relayed address. What is sent
/// on this path goes to the client; ``route(over:at:)`` tells where and how. A relayed datagram must not be given to the
/// server again.
///
/// Nothing is kept for a client before a request is authenticated.
///
/// Deviation: a response to an unauthenticated request over UDP is never larger than the request, except for the first
/// 401 to Allocate. Others are dropped, so that a spoofed source address gains nothing.
///
/// Deviation: only MESSAGE-INTEGRITY with SHA-1 is supported (RFC 8489 §9.2.4 permits a server to offer nothing else);
/// browsers use nothing else.
public struct TURNServer: Sendable {
    /// The most media addresses of a session.
    public static let peersMax = 16
    /// The bytes of a ChannelData header.
    public static let channelHeaderBytes = 4

    let configuration: TURNConfiguration
    public internal(set) var counters = TURNCounters()

    var sessions: [TURNSessionID: TURNSession] = [:]
    var sessionsByUsername: [String: TURNSessionID] = [:]

    /// Allocations by slot; `nil` for a free slot.
    var allocations: [TURNAllocation?] = []
    private var freeSlots: [Int] = []
    var slotsByClient: [NetworkPath: Int] = [:]
    var slotsByRelayed: [TransportAddress: Int] = [:]
    private var deadlines = TURNDeadlines()
    /// Allocations whose end the caller has not been told.
    private var ended: [TURNEvent] = []

    var nonces: TURNNonces
    /// Of responses to unauthenticated requests: UDP sources can be spoofed, so it bounds what the server sends to a victim.
    var limiter: NetworkRateLimiter
    private var portsV4: RelayedPortPool
    private var portsV6: RelayedPortPool
    /// What all calls together may send.
    var callBucket: TokenBucket
    /// The sessions that are members of calls, and what leads from their allocations to the other member, by slot. They are beside the
    /// sessions and allocations, because those of peers are many, and are copied.
    var callMembers: [TURNSessionID: TURNCallMember] = [:]
    var callChannels: [Int: TURNCallChannels] = [:]
    /// Those of them whose calls are not released.
    var callSessionCount = 0
    var generator: SplitMix64

    /// - Parameter source: for secrets; cryptographically secure in the product.
    public init(_ configuration: TURNConfiguration, using source: inout some RandomNumberGenerator) {
        precondition(
            (1...TURNConfiguration.realmBytesMax).contains(configuration.realm.utf8.count)
                && configuration.realm.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C },
            "a realm is short, and legal in a quoted string"
        )
        self.configuration = configuration
        nonces = TURNNonces(key: configuration.nonceKey, using: &source)
        limiter = NetworkRateLimiter(
            perSecond: configuration.challengesPerSecond,
            burst: configuration.challengeBurst,
            using: &source
        )
        let (reserved, networkMax) = (configuration.reservedPorts, configuration.portsPerNetworkMax)
        portsV4 = RelayedPortPool(reserved: reserved, networkMax: networkMax, using: &source)
        portsV6 = RelayedPortPool(reserved: reserved, networkMax: networkMax, using: &source)
        callBucket = TokenBucket(configuration.calls.rate)
        generator = SplitMix64(seed: source.next())
    }

    /// Whether a datagram on a socket that ICE, DTLS and media share is for this server: ChannelData, or STUN with
    /// another method than Binding.
    public static func isTURN(_ bytes: RawSpan) -> Bool {
        guard bytes.byteCount >= channelHeaderBytes else { return false }
        if PacketProtocol(firstByte: bytes.byte(at: 0)) == .turnChannel { return true }
        // The method's twelve bits, without the two of the class between them.
        return STUNMessageView.isSTUN(bytes) && bytes.bigEndianUInt16(at: 0) & 0x3EEF != STUNMethod.binding.rawValue
    }

    /// The loop of the session that a request names in USERNAME; `nil` without a user name of such form. Nothing is
    /// authenticated.
    public static func loop(of bytes: RawSpan) -> UInt16? {
        guard let message = try? STUNMessageView(bytes), message.messageClass == .request,
            let username = message.username
        else { return nil }
        return TURNCredentials.loop(ofUsername: username)
    }

    // MARK: - Sessions

    /// Accepts the credentials of a session. The first allocation must be made within 300 s; after it more are accepted
    /// until the session ends.
    ///
    /// - Parameter peers: the media addresses that the session's offer has, at most ``peersMax``; further ones are
    ///   ignored.
    public mutating func addSession(
        _ id: TURNSessionID,
        credentials: TURNCredentials,
        peers: [TransportAddress],
        at now: Instant
    ) {
        precondition(sessions[id] == nil, "a session is added once")
        precondition(sessionsByUsername[credentials.username] == nil, "a user name belongs to one session")
        sessions[id] = TURNSession(
            credentials,
            realm: configuration.realm,
            peers: Array(peers.prefix(Self.peersMax)),
            at: now
        )
        sessionsByUsername[credentials.username] = id
    }

    /// Ends a session with its credentials and allocations. Does nothing when it was not added.
    /// - Returns: the clients' 5-tuples; streams among them can be closed.
    @discardableResult
    public mutating func removeSession(_ id: TURNSessionID, at now: Instant) -> [NetworkPath] {
        guard let session = sessions[id] else { return [] }
        let clients = session.allocations.compactMap { allocations[$0]?.client }
        // First, because the end of the last allocation may end the session.
        sessions[id] = nil
        if let call = callMembers.removeValue(forKey: id), call.releasedUntil == nil { callSessionCount -= 1 }
        for slot in session.allocations { removeAllocation(slot, at: now) }
        sessionsByUsername[session.username] = nil
        return clients
    }

    /// Ends the allocation of a stream that was closed.
    public mutating func closeStream(_ client: NetworkPath, at now: Instant) -> TURNEvent? {
        slotsByClient[client].flatMap { removeAllocation($0, at: now) }
    }

    public func hasSession(_ id: TURNSessionID) -> Bool { sessions[id] != nil }
    public var sessionCount: Int { sessions.count }
    public var allocationCount: Int { slotsByClient.count }
    /// The allocations of clients on streams. O(allocations).
    public var streamAllocationCount: Int { slotsByClient.keys.count { $0.local.kind == .tcp } }

    // MARK: - Time

    /// When to call ``handleTimeout(at:)`` next; `nil` while there is nothing to wait for.
    public var nextDeadline: Instant? { ended.isEmpty ? deadlines.first?.deadline : Instant(nanoseconds: .min) }

    /// Ends one allocation that has expired. Called until it returns `nil`.
    public mutating func handleTimeout(at now: Instant) -> TURNEvent? {
        if let event = ended.popLast() { return event }
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        counters.allocationsExpired &+= 1
        return removeAllocation(first.slot, at: now)
    }

    // MARK: - Messages

    /// Handles one message that a client sent, and writes the response to `batch`.
    ///
    /// - Parameters:
    ///   - message: one datagram, or one message of a stream.
    ///   - client: the path to the client: a UDP socket, or a stream (`LocalEndpoint.Kind.tcp`).
    /// - Returns: what the message led to; `nil` for a response only.
    /// - Throws: why the message was dropped, which is counted.
    public mutating func handle(
        _ message: RawSpan,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) -> TURNEvent? {
        do throws(TURNDropReason) {
            guard message.byteCount >= Self.channelHeaderBytes else { throw .malformed }
            if PacketProtocol(firstByte: message.byte(at: 0)) == .turnChannel {
                return try receiveChannelData(message, from: client, at: now, into: batch)
            }
            return try receiveSTUN(message, from: client, at: now, into: batch)
        } catch {
            counters.drop(error)
            throw error
        }
    }

    private mutating func receiveSTUN(
        _ bytes: RawSpan,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) -> TURNEvent? {
        let message: STUNMessageView
        do { message = try STUNMessageView(bytes) } catch { throw .malformed }
        guard !message.hasFingerprint || message.hasValidFingerprint() else { throw .fingerprint }
        switch message.messageClass {
        case .request: return try receiveRequest(message, from: client, at: now, into: batch)
        case .indication:
            guard message.method == .send else { throw .unexpectedClass }
            return try receiveSend(message, from: client, at: now, into: batch)
        case .success, .error: throw .unexpectedClass
        }
    }

    // MARK: - Allocations

    /// The slot of a client's allocation. One that has expired is ended first.
    mutating func slot(of client: NetworkPath, at now: Instant) -> Int? {
        guard let slot = slotsByClient[client], let allocation = allocations[slot] else { return nil }
        if now < allocation.expiresAt { return slot }
        counters.allocationsExpired &+= 1
        if let event = removeAllocation(slot, at: now) { ended.append(event) }
        return nil
    }

    /// A relayed address that no other allocation of the loop has.
    /// - Returns: `nil` when all ports are in use or resting, or the client's network holds as many as it may.
    mutating func acquireAddress(
        _ ip: IPAddress,
        for client: NetworkPath,
        even: Bool,
        at now: Instant
    ) -> TransportAddress? {
        let remote = client.remote.ip
        let port =
            ip.isV4
            ? portsV4.acquire(for: remote, even: even, at: now) : portsV6.acquire(for: remote, even: even, at: now)
        return port.map { TransportAddress(ip: ip, port: $0) }
    }

    mutating func addAllocation(_ allocation: TURNAllocation) {
        let slot = freeSlots.popLast() ?? allocations.count
        if slot == allocations.count { allocations.append(allocation) } else { allocations[slot] = allocation }
        slotsByClient[allocation.client] = slot
        slotsByRelayed[allocation.relayed] = slot
        sessions[allocation.session]?.add(slot)
        if callMembers[allocation.session] != nil { callChannels[slot] = TURNCallChannels() }
        deadlines.set(slot, to: allocation.expiresAt)
        counters.allocationsCreated &+= 1
    }

    mutating func setExpiry(_ slot: Int, to deadline: Instant) {
        allocations[slot]?.expiresAt = deadline
        deadlines.set(slot, to: deadline)
    }

    @discardableResult
    mutating func removeAllocation(_ slot: Int, at now: Instant) -> TURNEvent? {
        guard let allocation = allocations[slot] else { return nil }
        allocations[slot] = nil
        freeSlots.append(slot)
        deadlines.remove(slot)
        slotsByClient[allocation.client] = nil
        slotsByRelayed[allocation.relayed] = nil
        sessions[allocation.session]?.allocations.removeAll { $0 == slot }
        let (port, client) = (allocation.relayed.port, allocation.client.remote.ip)
        if allocation.relayed.ip.isV4 {
            portsV4.release(port, of: client, at: now)
        } else {
            portsV6.release(port, of: client, at: now)
        }
        counters.allocationsEnded &+= 1
        if callChannels.removeValue(forKey: slot) != nil { removeUnusedCall(of: allocation.session, at: now) }
        return .ended(allocation.session, relayed: allocation.relayed, client: allocation.client)
    }
}
