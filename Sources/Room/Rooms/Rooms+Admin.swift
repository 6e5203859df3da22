public import MediaTypes
import Wire

// Requests of the admin API.

extension Rooms {
    /// Ends the participants of a channel with this role and client, in the order of joining; `nil` matches any.
    /// - Returns: the participants that ended.
    @discardableResult
    public func end(
        channel: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) async -> [ParticipantID] {
        await node.actor(of: channel)?.end(role: role, clientID: clientID, reason: reason) ?? []
    }

    /// Ends all participants of a channel's session.
    ///
    /// - Returns: the participants that ended.
    /// - Throws: ``RoomError/channelUnknown`` without participants, ``RoomError/sessionUnknown`` when the channel has
    ///   another session.
    @discardableResult
    public func terminate(
        session: ChannelSessionID,
        of channel: ChannelName
    ) async throws(RoomError) -> [ParticipantID] {
        try await self.channel(named: channel).terminate(session: session)
    }

    /// Sends a message to connected members.
    ///
    /// - Parameter json: JSON text.
    /// - Returns: how many it reached: members whose signaling carries messages.
    /// - Throws: ``RoomError/channelUnknown``, and ``RoomError/participantUnknown`` for an unknown participant.
    @discardableResult
    public func push(_ json: String, to audience: Audience) async throws(RoomError) -> Int {
        try await channel(named: audience.channel).push(json, to: audience)
    }

    /// The filters of a scope in the order of evaluation.
    public func filters(of scope: FilterScope) async throws(RoomError) -> [ForwardingFilter] {
        try await channel(named: scope.channel).filters(of: scope)
    }

    /// Adds a filter.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` accepts any.
    /// - Throws: ``RoomError/filterExists``, ``RoomError/filtersTooLarge``, and ``RoomError/channelUnknown``,
    ///   ``RoomError/sessionUnknown`` or ``RoomError/participantUnknown`` for an unknown scope.
    public func createFilter(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        session: ChannelSessionID? = nil
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterCreated(filter, in: scope, session: session)
        }
    }

    /// Replaces the filter of the same name.
    ///
    /// - Parameter expected: refuse unless this is the filter's version; `nil` accepts any.
    /// - Throws: ``RoomError/filterUnknown``, ``RoomError/filterVersionMismatch``, ``RoomError/filtersTooLarge``, and
    ///   ``RoomError/channelUnknown`` or ``RoomError/participantUnknown`` for an unknown scope.
    public func updateFilter(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        expected: String? = nil
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterUpdated(filter, in: scope, expected: expected)
        }
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` accepts any.
    /// - Throws: ``RoomError/filterUnknown``, ``RoomError/filterVersionMismatch``, and ``RoomError/channelUnknown`` or
    ///   ``RoomError/participantUnknown`` for an unknown scope.
    public func deleteFilter(
        _ name: String,
        in scope: FilterScope,
        expected: String? = nil
    ) async throws(RoomError) {
        try await channel(named: scope.channel).change { model throws(RoomError) in
            try model.filterDeleted(name, in: scope, expected: expected)
        }
    }

    /// A participant's media as it is now; `nil` for an unknown participant and one without negotiated media.
    public func statistics(of id: ParticipantID) async -> PeerStatistics? {
        await node.actor(of: id)?.statistics(of: id)
    }
}
