public import Base
import Wire

/// The session of one member of a call.
struct TURNCallMember: Sendable {
    /// The session of the other member.
    let partner: TURNSessionID
    /// What the member may send.
    var bucket: TokenBucket
    /// The call is over, except for the allocations that it has, and until when those are refreshed; `nil` before.
    var releasedUntil: Instant?
}

/// The permission and the channels of an allocation of a call.
///
/// All allocations of one family have the same IP address, so there is one permission.
struct TURNCallChannels: Sendable {
    enum Binding { case bound, taken, full }

    private struct Channel: Sendable {
        let number: ChannelNumber
        let peer: TransportAddress
        var boundUntil: Instant
    }

    /// Numbers that are bound or rest. The other member has a few allocations, and new ones after a restart of ICE.
    static let channelsMax = 32

    private var permittedUntil: Instant?
    private var channels: [Channel] = []

    func isPermitted(at now: Instant) -> Bool { permittedUntil.map { now < $0 } ?? false }

    /// Installs or refreshes the permission (RFC 8656 §9).
    mutating func permit(at now: Instant) {
        permittedUntil = now + TURNTimes.permission + TURNTimes.permissionGrace
    }

    /// Binds or refreshes a channel, and installs the permission (RFC 8656 §12.2).
    mutating func bind(_ number: ChannelNumber, to peer: TransportAddress, at now: Instant) -> Binding {
        channels.removeAll { now >= $0.boundUntil + TURNTimes.channelRest }
        guard channels.allSatisfy({ ($0.number == number) == ($0.peer == peer) }) else { return .taken }
        if let index = channels.firstIndex(where: { $0.number == number }) {
            channels[index].boundUntil = now + TURNTimes.channel
        } else {
            guard channels.count < Self.channelsMax else { return .full }
            channels.append(Channel(number: number, peer: peer, boundUntil: now + TURNTimes.channel))
        }
        permit(at: now)
        return .bound
    }

    /// The channel that is bound to a peer.
    func channel(of peer: TransportAddress, at now: Instant) -> ChannelNumber? {
        channels.first { $0.peer == peer && now < $0.boundUntil }?.number
    }

    /// The peer that a channel is bound to.
    func peer(of number: UInt16, at now: Instant) -> TransportAddress? {
        channels.first { $0.number.rawValue == number && now < $0.boundUntil }?.peer
    }
}

/// Calls of two clients that are both clients of this server.
///
/// What a member sends goes to the other member's own 5-tuple and nowhere else, so no datagram leaves for an address that is
/// not an authenticated client's.
extension TURNServer {
    /// Accepts the credentials of the two members of a call, until ``removeCall(of:at:)`` or ``releaseCall(of:at:)``.
    /// - Returns: `false` when there are as many calls as may be.
    public mutating func addCall(
        _ first: (id: TURNSessionID, credentials: TURNCredentials),
        _ second: (id: TURNSessionID, credentials: TURNCredentials),
        at now: Instant
    ) -> Bool {
        guard callCount < configuration.calls.callsMax else { return false }
        precondition(first.id != second.id, "a call has two sessions")
        for (member, partner) in [(first, second), (second, first)] {
            precondition(sessions[member.id] == nil, "a session is added once")
            precondition(sessionsByUsername[member.credentials.username] == nil, "a user name belongs to one session")
            sessions[member.id] = TURNSession(
                member.credentials,
                realm: configuration.realm,
                isOfCall: true,
                at: now
            )
            let bucket = TokenBucket(configuration.calls.memberRate)
            callMembers[member.id] = TURNCallMember(partner: partner.id, bucket: bucket)
            sessionsByUsername[member.credentials.username] = member.id
            callSessionCount += 1
        }
        return true
    }

    /// Ends the call of a session with the credentials and allocations of both members. Does nothing when there is none.
    public mutating func removeCall(of id: TURNSessionID, at now: Instant) {
        guard let partner = callMembers[id]?.partner else { return }
        removeSession(id, at: now)
        removeSession(partner, at: now)
    }

    /// Ends the call of a session but for the allocations that its members have: these stay as long as both clients refresh them,
    /// for ``TURNTimes/released`` at most, because nobody can end them. No new one is made, and the call is not in ``callCount``.
    public mutating func releaseCall(of id: TURNSessionID, at now: Instant) {
        guard let partner = callMembers[id]?.partner else { return }
        for member in [id, partner] where callMembers[member]?.releasedUntil == nil {
            callMembers[member]?.releasedUntil = now + TURNTimes.released
            callSessionCount -= 1
        }
        removeUnusedCall(of: id, at: now)
    }

    public var callCount: Int { callSessionCount / 2 }
    /// The allocations of members of calls.
    public var callAllocationCount: Int { callChannels.count }

    /// Ends a call that was released and of which a member has no allocation.
    mutating func removeUnusedCall(of id: TURNSessionID, at now: Instant) {
        guard let session = sessions[id], let call = callMembers[id], call.releasedUntil != nil,
            session.allocations.isEmpty || sessions[call.partner]?.allocations.isEmpty ?? true
        else { return }
        removeCall(of: id, at: now)
    }

    /// Whether a client may have a permission for an address: one of its session's media addresses, or the address of an
    /// allocation of the call's other member.
    func mayReach(_ ip: IPAddress, from allocation: TURNAllocation) -> Bool {
        guard let partner = callMembers[allocation.session]?.partner else {
            return allocation.peers.contains { $0.ip == ip }
        }
        let others = sessions[partner]?.allocations ?? []
        return others.contains { allocations[$0]?.relayed.ip == ip }
    }

    /// The allocation of the call's other member that has a relayed address; `nil` when none has it.
    func memberSlot(at relayed: TransportAddress, from allocation: TURNAllocation) -> Int? {
        guard let partner = callMembers[allocation.session]?.partner, relayed.ip == allocation.relayed.ip,
            let slot = slotsByRelayed[relayed], allocations[slot]?.session == partner
        else { return nil }
        return slot
    }

    /// Hands a datagram from one member's allocation to the other's, if both have a permission.
    mutating func relay(
        _ payload: RawSpan,
        from slot: Int,
        toMember peer: TransportAddress,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) {
        guard let sender = allocations[slot], now < sender.expiresAt else { throw .noAllocation }
        guard let other = memberSlot(at: peer, from: sender), let receiver = allocations[other] else {
            throw .forbiddenPeer
        }
        guard now < receiver.expiresAt else { throw .noAllocation }
        guard callChannels[slot]?.isPermitted(at: now) == true, callChannels[other]?.isPermitted(at: now) == true else {
            throw .noPermission
        }
        guard callMembers[sender.session]?.bucket.take(payload.byteCount, at: now) == true,
            callBucket.take(payload.byteCount, at: now)
        else { throw .overRate }
        var route = TURNRoute(
            client: receiver.client,
            channel: callChannels[other]?.channel(of: sender.relayed, at: now),
            peer: sender.relayed,
            generator: SplitMix64(seed: generator.next())
        )
        let start = route.headerBytes
        let end = start + payload.byteCount
        let isFramed = batch.append(to: route.client) { slot in
            guard end <= slot.byteCount else { return nil }
            slot.store(payload, at: start)
            return route.frame(start..<end, in: &slot)?.upperBound
        }
        guard isFramed else { throw .tooLong }
        counters.packetsIn &+= 1
        counters.packetsOut &+= 1
        counters.callPackets &+= 1
        counters.callBytes &+= payload.byteCount
    }
}
