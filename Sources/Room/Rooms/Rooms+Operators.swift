public import MediaTypes
import Wire

// Calls of the admin API and of webhooks.

/// The receivers of an operator's message, among the connected members.
public enum Audience: Hashable, Sendable {
    /// With a role: those that have it.
    case channel(ChannelName, Role?)
    case client(ChannelName, String)
    case connection(ChannelName, ParticipantID)

    var channel: ChannelName {
        switch self {
        case .channel(let name, _), .client(let name, _), .connection(let name, _): name
        }
    }
}

extension Rooms {
    /// Ends all participants of a channel that fit, in the order of joining, and returns them.
    @discardableResult
    public func end(
        channel: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) async -> [ParticipantID] {
        await node.actor(of: channel)?.end(role: role, clientID: clientID, reason: reason) ?? []
    }

    /// Ends everybody of a channel's session, and returns them.
    ///
    /// - Throws: ``RoomError/channelUnknown`` when nobody is there, ``RoomError/sessionUnknown`` when it has another
    ///   session.
    @discardableResult
    public func terminate(
        session: ChannelSessionID,
        of channel: ChannelName
    ) async throws(RoomError) -> [ParticipantID] {
        try await self.channel(named: channel).terminate(session: session)
    }

    /// Sends a message to connected members, and returns how many it reached: those whose signaling carries messages.
    ///
    /// - Parameter json: JSON text.
    /// - Throws: ``RoomError/channelUnknown``, and ``RoomError/participantUnknown`` for a single one that is not there.
    @discardableResult
    public func push(_ json: String, to audience: Audience) async throws(RoomError) -> Int {
        try await channel(named: audience.channel).push(json, to: audience)
    }

    /// The filters of a scope in the order in which they decide.
    public func filters(of scope: FilterScope) async throws(RoomError) -> [ForwardingFilter] {
        try await channel(named: scope.channel).filters(of: scope)
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
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterCreated(filter, in: scope, session: session)
        }
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
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterUpdated(filter, in: scope, expected: expected)
        }
    }

    /// - Parameter expected: refuse unless this is the version of the one there; `nil` takes any.
    /// - Throws: ``RoomError/filterUnknown``, ``RoomError/filterVersionMismatch``, and ``RoomError/channelUnknown`` or
    ///   ``RoomError/participantUnknown`` when the scope is not there.
    public func deleteFilter(
        _ name: String,
        in scope: FilterScope,
        expected: String? = nil
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterDeleted(name, in: scope, expected: expected)
        }
    }

    /// A participant's media as it is now; `nil` when it is not there, or its media is not negotiated yet.
    public func statistics(of id: ParticipantID) async -> PeerStatistics? {
        await node.actor(of: id)?.statistics(of: id)
    }
}

extension ChannelModel {
    /// - Throws: ``RoomError/channelUnknown``, and ``RoomError/participantUnknown`` for a single one that is not there.
    func receivers(_ audience: Audience) throws(RoomError) -> [ParticipantID] {
        guard state.session != nil else { throw .channelUnknown }
        let isConnected = { (id: ParticipantID) in participants[id]?.isConnected == true }
        switch audience {
        case .channel(_, let role): return members(role: role).filter(isConnected)
        case .client(_, let clientID): return members(clientID: clientID).filter(isConnected)
        case .connection(_, let id):
            guard isConnected(id) else { throw .participantUnknown }
            return [id]
        }
    }
}
