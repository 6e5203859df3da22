import Base
import Wire

/// One client's 5-tuple with a relayed address (RFC 8656 §3.2). Permissions and channels exist for the session's own media
/// addresses only, so their number is bounded by these. Those of a call are in ``TURNServer/callChannels``.
struct TURNAllocation: Sendable {
    /// The permission and the channel of one media address.
    struct PeerState: Sendable {
        var permittedUntil: Instant?
        var channel: ChannelNumber?
        var boundUntil = Instant(nanoseconds: 0)

        /// The channel that is bound, or whose number still rests.
        func heldChannel(at now: Instant) -> ChannelNumber? {
            now < boundUntil + TURNTimes.channelRest ? channel : nil
        }
        func isPermitted(at now: Instant) -> Bool { permittedUntil.map { now < $0 } ?? false }
    }

    let session: TURNSessionID
    let client: NetworkPath
    let relayed: TransportAddress
    /// Of the Allocate request, whose repetition gets the same response.
    let transactionID: STUNTransactionID
    /// The lifetime in the response to the Allocate request, in seconds.
    let grantedSeconds: UInt32
    var expiresAt: Instant
    /// The session's media addresses; none in a call.
    let peers: [TransportAddress]
    private var states: [PeerState]

    init(
        session: TURNSessionID,
        client: NetworkPath,
        relayed: TransportAddress,
        transactionID: STUNTransactionID,
        grantedSeconds: UInt32,
        peers: [TransportAddress],
        at now: Instant
    ) {
        self.session = session
        self.client = client
        self.relayed = relayed
        self.transactionID = transactionID
        self.grantedSeconds = grantedSeconds
        self.peers = peers
        expiresAt = now + .seconds(Int(grantedSeconds))
        states = Array(repeating: PeerState(), count: peers.count)
    }

    /// Installs or refreshes the permission for an address, whatever the port (RFC 8656 §9).
    mutating func permit(_ ip: IPAddress, at now: Instant) {
        for index in peers.indices where peers[index].ip == ip {
            states[index].permittedUntil = now + TURNTimes.permission + TURNTimes.permissionGrace
        }
    }

    func isPermitted(_ peer: Int, at now: Instant) -> Bool { states[peer].isPermitted(at: now) }

    /// Binds or refreshes a channel, and installs the permission (RFC 8656 §12.2).
    /// - Returns: `false` when the number belongs to another peer or the peer to another number.
    mutating func bind(_ channel: ChannelNumber, to peer: Int, at now: Instant) -> Bool {
        for index in states.indices {
            guard let held = states[index].heldChannel(at: now) else { continue }
            guard (held == channel) == (index == peer) else { return false }
        }
        states[peer].channel = channel
        states[peer].boundUntil = now + TURNTimes.channel
        permit(peers[peer].ip, at: now)
        return true
    }

    /// The channel that is bound to a peer.
    func channel(of peer: Int, at now: Instant) -> ChannelNumber? {
        now < states[peer].boundUntil ? states[peer].channel : nil
    }

    /// The peer that a channel is bound to.
    func peer(of channel: UInt16, at now: Instant) -> Int? {
        for index in states.indices where states[index].channel?.rawValue == channel {
            // The number may have rested and be bound to another peer now.
            if now < states[index].boundUntil { return index }
        }
        return nil
    }
}

/// What the server knows of one session.
struct TURNSession: Sendable {
    let username: String
    /// Of MESSAGE-INTEGRITY.
    let key: [UInt8]
    let peers: [TransportAddress]
    /// Until when the first allocation may be made. A member of a call may wait for the other one.
    let firstAllocationDeadline: Instant
    var hasAllocated = false
    /// The slots of its allocations.
    var allocations: [Int] = []
    private var creations = 0
    private var creationsSince: Instant

    init(
        _ credentials: TURNCredentials,
        realm: String,
        peers: [TransportAddress] = [],
        isOfCall: Bool = false,
        at now: Instant
    ) {
        username = credentials.username
        key = credentials.key(realm: realm)
        self.peers = peers
        firstAllocationDeadline = isOfCall ? Instant(nanoseconds: .max) : now + TURNTimes.firstAllocation
        creationsSince = now
    }

    /// Whether the session's quotas permit another allocation.
    mutating func mayAllocate(_ configuration: TURNConfiguration, at now: Instant) -> Bool {
        if now - creationsSince >= configuration.creationWindow {
            creationsSince = now
            creations = 0
        }
        return allocations.count < configuration.sessionAllocationsMax
            && creations < configuration.sessionCreationsMax
    }

    mutating func add(_ slot: Int) {
        allocations.append(slot)
        creations += 1
        hasAllocated = true
    }
}
