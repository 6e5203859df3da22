public import MediaTypes
public import Wire

// What operators and webhooks ask for.

/// Whom an operator's message is for, among the connected members.
public enum Audience: Hashable, Sendable {
    /// With a role: those that have it.
    case channel(ChannelName, Role?)
    case client(ChannelName, String)
    case connection(ChannelName, ParticipantID)
}

extension Rooms {
    /// Ends all participants of a channel that fit, in the order of joining, and returns them.
    @discardableResult
    public func end(
        channel: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) -> [ParticipantID] {
        var ended: [ParticipantID] = []
        apply { model in
            let result = model.end(in: channel, role: role, clientID: clientID, reason: reason)
            ended = result.ended
            return result.decisions
        }
        return ended
    }

    /// Ends everybody of a channel's session, and returns them.
    ///
    /// - Throws: ``RoomError/channelUnknown`` when nobody is there, ``RoomError/sessionUnknown`` when it has another
    ///   session.
    @discardableResult
    public func terminate(session: ChannelSessionID, of channel: ChannelName) throws(RoomError) -> [ParticipantID] {
        try model.checkSession(session, of: channel)
        return end(channel: channel, reason: .sessionTerminated)
    }

    /// Sends a message to connected members, and returns how many it reached: those whose signaling carries messages.
    ///
    /// - Parameter json: JSON text.
    /// - Throws: ``RoomError/channelUnknown``, and ``RoomError/participantUnknown`` for a single one that is not there.
    @discardableResult
    public func push(_ json: String, to audience: Audience) throws(RoomError) -> Int {
        let receivers = try model.receivers(audience)
        var laggards: [ParticipantID] = []
        let count = receivers.count { post(.push(json), to: $0, &laggards) }
        for laggard in laggards { end(laggard, reason: .tooSlow) }
        return count
    }

    /// The filters of a scope in the order in which they decide.
    public func filters(of scope: FilterScope) throws(RoomError) -> [ForwardingFilter] {
        try model.filters(of: scope)
    }

    /// Adds a filter.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
    /// - Throws: ``RoomError/filterExists``, ``RoomError/filtersTooLarge``, and ``RoomError/channelUnknown``,
    ///   ``RoomError/sessionUnknown`` or ``RoomError/participantUnknown`` when the scope is not there.
    public func createFilter(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        session: ChannelSessionID? = nil
    ) throws(RoomError) {
        try apply { model throws(RoomError) in try model.filterCreated(filter, in: scope, session: session) }
    }

    /// Puts a filter in the place of the one of its name.
    ///
    /// - Parameter expected: refuse unless this is the version of the one there; `nil` takes any.
    /// - Throws: ``RoomError/filterUnknown``, ``RoomError/filterVersionMismatch``, ``RoomError/filtersTooLarge``, and
    ///   ``RoomError/channelUnknown`` or ``RoomError/participantUnknown`` when the scope is not there.
    public func updateFilter(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        expected: String? = nil
    ) throws(RoomError) {
        try apply { model throws(RoomError) in try model.filterUpdated(filter, in: scope, expected: expected) }
    }

    /// - Parameter expected: refuse unless this is the version of the one there; `nil` takes any.
    /// - Throws: ``RoomError/filterUnknown``, ``RoomError/filterVersionMismatch``, and ``RoomError/channelUnknown`` or
    ///   ``RoomError/participantUnknown`` when the scope is not there.
    public func deleteFilter(
        _ name: String,
        in scope: FilterScope,
        expected: String? = nil
    ) throws(RoomError) {
        try apply { model throws(RoomError) in try model.filterDeleted(name, in: scope, expected: expected) }
    }

    /// The participants of a channel whose media was negotiated, in the order of joining; with `nil` of all channels.
    public func connections(in channel: ChannelName? = nil) -> [Connection] { model.connections(in: channel) }

    /// `nil` when there is no such participant, or its media is not negotiated yet.
    public func connection(of id: ParticipantID) -> Connection? { model.connection(of: id) }

    /// All sessions, the oldest first.
    public var channelSessions: [ChannelSession] { model.sessions }

    /// The session of a channel; `nil` when nobody is in it.
    public func channelSession(of channel: ChannelName) -> ChannelSession? { model.session(of: channel) }

    /// The connected members of a channel by role.
    public func counts(of channel: ChannelName) -> ChannelCounts { model.counts(of: channel) }

    /// A participant's media as it is now; `nil` when it is not there, or its media is not negotiated yet.
    public func statistics(of id: ParticipantID) async -> PeerStatistics? {
        guard let participant = model.participants[id], participant.isActive else { return nil }
        return await planes[participant.home].statistics(of: participant.peer)
    }

    /// Whom the node takes in.
    public var mode: NodeMode { model.mode }
    public func setMode(_ mode: NodeMode) { model.mode = mode }
}

// MARK: - Time

extension Rooms {
    /// Lets time pass; to be called once a second. Ends those whose time is over, and tells of members' minutes.
    public func tick() {
        let now = clock.now()
        tick(at: now.instant, unixNanoseconds: now.unixNanoseconds)
    }

    /// ``tick()`` at a given time, which the clock that the rooms were made with agrees with.
    public func tick(at instant: Instant, unixNanoseconds: Int64) {
        carryOut(model.tick(at: RoomTime(instant: instant, unixNanoseconds: unixNanoseconds)))
    }
}

extension RoomModel {
    func receivers(_ audience: Audience) throws(RoomError) -> [ParticipantID] {
        switch audience {
        case .channel(let name, let role):
            guard channels[name]?.session != nil else { throw .channelUnknown }
            return members(of: name, role: role).filter { participants[$0]?.isConnected == true }
        case .client(let name, let clientID):
            guard channels[name]?.session != nil else { throw .channelUnknown }
            return members(of: name, clientID: clientID).filter { participants[$0]?.isConnected == true }
        case .connection(let name, let id):
            guard channels[name]?.session != nil else { throw .channelUnknown }
            guard let participant = participants[id], participant.channel == name, participant.isConnected
            else { throw .participantUnknown }
            return [id]
        }
    }
}
