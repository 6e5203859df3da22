public import Base
public import Wire

/// An error response (RFC 8489 §14.8, RFC 8656 §19).
enum TURNError: Int, Error {
    case badRequest = 400
    case unauthorized = 401
    case forbidden = 403
    case unknownAttribute = 420
    case allocationMismatch = 437
    case staleNonce = 438
    case addressFamilyNotSupported = 440
    case wrongCredentials = 441
    case unsupportedTransport = 442
    case peerAddressFamilyMismatch = 443
    case quotaReached = 486
    case insufficientCapacity = 508

    /// Only in authenticated responses: others are kept short.
    var reason: String {
        switch self {
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .unknownAttribute: "Unknown Attribute"
        case .allocationMismatch: "Allocation Mismatch"
        case .staleNonce: "Stale Nonce"
        case .addressFamilyNotSupported: "Address Family not Supported"
        case .wrongCredentials: "Wrong Credentials"
        case .unsupportedTransport: "Unsupported Transport Protocol"
        case .peerAddressFamilyMismatch: "Peer Address Family Mismatch"
        case .quotaReached: "Allocation Quota Reached"
        case .insufficientCapacity: "Insufficient Capacity"
        }
    }
}

/// Requests: authentication in the order of RFC 8489 §9.2.4, then the methods of RFC 8656.
extension TURNServer {
    /// The least request that gets a 401: Allocate with REQUESTED-TRANSPORT, which every client sends.
    static let challengedBytesMin = 28

    /// What a request that is authenticated leads to.
    private struct Verdict {
        var event: TURNEvent?
        var attributes: (inout STUNMessageBuilder) -> Void = { _ in }
    }

    mutating func receiveRequest(
        _ message: borrowing STUNMessageView,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) -> TURNEvent? {
        let id: TURNSessionID
        let key: [UInt8]
        do throws(TURNError) {
            (id, key) = try authenticate(message, from: client, at: now)
        } catch {
            try refuse(message, with: error, from: client, at: now, into: batch)
            return nil
        }
        let attributes = TURNAttributes(message)
        var response: STUNMessageBuilder
        var event: TURNEvent?
        do throws(TURNError) {
            let verdict = try perform(message, attributes, session: id, client: client, at: now)
            response = STUNMessageBuilder(.success, method: message.method, transactionID: message.transactionID)
            verdict.attributes(&response)
            event = verdict.event
            counters.succeeded &+= 1
        } catch {
            response = STUNMessageBuilder(.error, method: message.method, transactionID: message.transactionID)
            response.appendErrorCode(error.rawValue, reason: error.reason)
            if error == .unknownAttribute { response.appendUnknownAttributes(attributes.unknown) }
            counters.refused &+= 1
        }
        response.appendMessageIntegrity(key: key)
        response.appendFingerprint()
        batch.append(to: client, copying: unsafe response.bytes.span.bytes)
        return event
    }

    /// The session that sent the request, and its key.
    private func authenticate(
        _ message: borrowing STUNMessageView,
        from client: NetworkPath,
        at now: Instant
    ) throws(TURNError) -> (TURNSessionID, [UInt8]) {
        switch message.method {
        case .allocate, .refresh, .createPermission, .channelBind: break
        default: throw .badRequest
        }
        let isAnonymous =
            message.usernameRange == nil && message.realm == nil && message.nonce == nil && !message.hasIntegrity
        guard !isAnonymous else { throw .unauthorized }
        guard message.hasIntegrity, let username = message.username, message.realm != nil, let nonce = message.nonce
        else { throw .badRequest }
        guard nonces.isValid(nonce, for: client, at: now) else { throw .staleNonce }
        guard let id = sessionsByUsername[username], let session = sessions[id],
            message.hasValidIntegrity(key: session.key)
        else { throw .unauthorized }
        return (id, session.key)
    }

    /// Responds to a request that is not authenticated, if the response cannot amplify an attack.
    private mutating func refuse(
        _ message: borrowing STUNMessageView,
        with error: TURNError,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) {
        var response = STUNMessageBuilder(.error, method: message.method, transactionID: message.transactionID)
        response.appendErrorCode(error.rawValue, reason: "")
        if error != .badRequest {
            response.append(.realm, configuration.realm)
            response.append(.nonce, nonces.make(for: client, at: now))
        }
        let bytes = message.bytes.byteCount
        let isChallenge = error == .unauthorized && !message.hasIntegrity
        if client.local.kind == .udp {
            let isFirst = isChallenge && message.method == .allocate && bytes >= Self.challengedBytesMin
            guard response.bytes.count <= bytes || isFirst else { throw .responseTooLarge }
            guard limiter.take(client.remote.ip, at: now) else { throw .rateLimited }
        }
        batch.append(to: client, copying: unsafe response.bytes.span.bytes)
        switch error {
        case .unauthorized where isChallenge: counters.challenges &+= 1
        case .unauthorized: counters.unauthorized &+= 1
        case .staleNonce: counters.staleNonces &+= 1
        default: counters.refused &+= 1
        }
    }

    /// Answers a Binding request without credentials (RFC 8489 §2): clients of a TURN server ask it for their own address
    /// too. The response is at most 24 bytes longer than the request, and limited like those to unauthenticated requests.
    public mutating func answerBinding(
        _ message: borrowing STUNMessageView,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard client.local.kind != .udp || limiter.take(client.remote.ip, at: now) else {
            counters.drop(.rateLimited)
            return
        }
        var response = STUNMessageBuilder(.success, transactionID: message.transactionID)
        response.appendXORMappedAddress(client.remote)
        batch.append(to: client, copying: unsafe response.bytes.span.bytes)
        counters.bindings &+= 1
    }

    private mutating func perform(
        _ message: borrowing STUNMessageView,
        _ attributes: TURNAttributes,
        session id: TURNSessionID,
        client: NetworkPath,
        at now: Instant
    ) throws(TURNError) -> Verdict {
        guard !attributes.isMalformed else { throw .badRequest }
        guard attributes.unknown.isEmpty else { throw .unknownAttribute }
        let slot = slot(of: client, at: now)
        if message.method == .allocate {
            return try allocate(message.transactionID, attributes, session: id, client: client, slot: slot, at: now)
        }
        guard let slot, let allocation = allocations[slot] else { throw .allocationMismatch }
        guard allocation.session == id else { throw .wrongCredentials }
        switch message.method {
        case .refresh: return try refresh(slot, allocation, attributes, at: now)
        case .createPermission: try createPermission(slot, allocation, attributes, at: now)
        default: try bindChannel(slot, allocation, attributes, at: now)
        }
        return Verdict()
    }

    // MARK: - Allocate and Refresh

    private mutating func allocate(
        _ transactionID: STUNTransactionID,
        _ attributes: TURNAttributes,
        session id: TURNSessionID,
        client: NetworkPath,
        slot: Int?,
        at now: Instant
    ) throws(TURNError) -> Verdict {
        if let slot, let allocation = allocations[slot] {
            guard allocation.session == id, allocation.transactionID == transactionID else { throw .allocationMismatch }
            return Verdict(attributes: Self.allocated(allocation))
        }
        guard let transport = attributes.transport else { throw .badRequest }
        guard transport == 17 else { throw .unsupportedTransport }
        let ip = try relayedIP(attributes.family)
        guard !attributes.asksForReservation else { throw .insufficientCapacity }
        guard let session = sessions[id], callMembers[id]?.releasedUntil == nil,
            sessions[id]?.mayAllocate(configuration, at: now) == true
        else { throw .quotaReached }
        if !session.hasAllocated, now >= session.firstAllocationDeadline {
            throw .unauthorized
        }
        let even = attributes.asksForEvenPort
        // Not 486, which is the quota of a user name (RFC 8656 §7.2).
        guard let relayed = acquireAddress(ip, for: client, even: even, at: now) else { throw .insufficientCapacity }
        let allocation = TURNAllocation(
            session: id,
            client: client,
            relayed: relayed,
            transactionID: transactionID,
            grantedSeconds: Self.lifetime(attributes.lifetime),
            peers: session.peers,
            at: now
        )
        addAllocation(allocation)
        return Verdict(
            event: .allocated(id, relayed: relayed, client: client),
            attributes: Self.allocated(allocation)
        )
    }

    private static func allocated(_ allocation: TURNAllocation) -> (inout STUNMessageBuilder) -> Void {
        { response in
            response.appendXORAddress(.xorRelayedAddress, allocation.relayed)
            response.appendXORMappedAddress(allocation.client.remote)
            response.append(.lifetime, allocation.grantedSeconds)
        }
    }

    /// The host part of a relayed address: IPv4 unless the client asks for IPv6 or the node has IPv6 only.
    private func relayedIP(_ family: UInt8?) throws(TURNError) -> IPAddress {
        let ip: IPAddress?
        switch family {
        case nil: ip = configuration.addresses.first(where: \.isV4) ?? configuration.addresses.first
        case 1: ip = configuration.addresses.first(where: \.isV4)
        case 2: ip = configuration.addresses.first { !$0.isV4 }
        default: ip = nil
        }
        guard let ip else { throw .addressFamilyNotSupported }
        return ip
    }

    /// The lifetime for a requested one, in seconds (RFC 8656 §7.2).
    static func lifetime(_ requested: UInt32?) -> UInt32 {
        min(max(requested ?? TURNTimes.lifetimeDefault, TURNTimes.lifetimeDefault), TURNTimes.lifetimeMax)
    }

    private mutating func refresh(
        _ slot: Int,
        _ allocation: TURNAllocation,
        _ attributes: TURNAttributes,
        at now: Instant
    ) throws(TURNError) -> Verdict {
        if let family = attributes.family {
            guard family == (allocation.relayed.ip.isV4 ? 1 : 2) else { throw .peerAddressFamilyMismatch }
        }
        var event: TURNEvent?
        var seconds: UInt32 = 0
        if attributes.lifetime == 0 {
            event = removeAllocation(slot, at: now)
        } else {
            seconds = Self.lifetime(attributes.lifetime)
            if let end = callMembers[allocation.session]?.releasedUntil {
                guard now < end else { throw .quotaReached }
                seconds = min(seconds, UInt32(clamping: (end - now).nanoseconds / 1_000_000_000))
            }
            setExpiry(slot, to: now + .seconds(Int(seconds)))
        }
        return Verdict(event: event) { $0.append(.lifetime, seconds) }
    }

    // MARK: - Permissions and channels

    private mutating func createPermission(
        _ slot: Int,
        _ allocation: TURNAllocation,
        _ attributes: TURNAttributes,
        at now: Instant
    ) throws(TURNError) {
        guard !attributes.peers.isEmpty else { throw .badRequest }
        // All or none (RFC 8656 §10.2).
        for peer in attributes.peers {
            guard peer.ip.isV4 == allocation.relayed.ip.isV4 else { throw .peerAddressFamilyMismatch }
            guard mayReach(peer.ip, from: allocation) else { throw .forbidden }
        }
        guard callChannels[slot] == nil else {
            // All are the one address of the other member's allocations.
            callChannels[slot]?.permit(at: now)
            return
        }
        for peer in attributes.peers { allocations[slot]?.permit(peer.ip, at: now) }
    }

    private mutating func bindChannel(
        _ slot: Int,
        _ allocation: TURNAllocation,
        _ attributes: TURNAttributes,
        at now: Instant
    ) throws(TURNError) {
        guard let peer = attributes.peers.first, let number = attributes.channel,
            let channel = ChannelNumber(rawValue: number)
        else { throw .badRequest }
        guard peer.ip.isV4 == allocation.relayed.ip.isV4 else { throw .peerAddressFamilyMismatch }
        guard callChannels[slot] == nil else {
            guard memberSlot(at: peer, from: allocation) != nil else { throw .forbidden }
            switch callChannels[slot]?.bind(channel, to: peer, at: now) {
            case .bound: return
            case .full: throw .insufficientCapacity
            case .taken, nil: throw .badRequest
            }
        }
        guard let index = allocation.peers.firstIndex(of: peer) else { throw .forbidden }
        guard allocations[slot]?.bind(channel, to: index, at: now) == true else { throw .badRequest }
    }
}
