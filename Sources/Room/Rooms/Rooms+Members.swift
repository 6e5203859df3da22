// Requests of members about their place in a channel, and an operator's requests about members.

public import Wire

extension Rooms {
    /// Makes a member of an interactive channel host or audience. It does nothing when the member has the role.
    ///
    /// A host that becomes audience stops publishing, and others are notified that it is gone. It stays connected and receives
    /// what it received before.
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/rolesUnused`` in a channel that is not interactive,
    ///   ``RoomError/roleUnavailable`` for a connection that only sends or only receives,
    ///   ``RoomError/publishingForbidden``, ``RoomError/publishersFull``, ``RoomError/nodePublishersFull``,
    ///   ``RoomError/appPublishersFull``, ``RoomError/audienceByOperator``, ``RoomError/changesTooFrequent``.
    public func changeRole(
        of id: ParticipantID,
        to role: ChannelRole,
        by initiator: Initiator
    ) async throws(RoomError) {
        try await channel(of: id).changeRole(of: id, to: role, by: initiator)
    }

    /// Mutes a kind of a member's media, or unmutes it. An operator's mute also stops its forwarding, and the member
    /// cannot undo it. A member's own mute is only announced; beyond the member's budget
    /// (``RoomLimits/changesPerSecond``) others are told later, of the latest one.
    ///
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/mutedByOperator`` when the member unmutes what an operator
    ///   muted.
    public func setMuted(
        _ isMuted: Bool,
        kind: MediaKind,
        of id: ParticipantID,
        by initiator: Initiator
    ) async throws(RoomError) {
        try await channel(of: id).change { model throws(RoomError) in
            try model.muteRequested(isMuted, kind, of: id, by: initiator)
        }
    }

    /// Changes what later notifications say of a member; see ``Member/metadataJSON``. Nobody is notified of the change itself.
    ///
    /// - Parameters:
    ///   - json: JSON text.
    ///   - isPushed: whether the caller tells all members of it, which takes one of the member's changes
    ///     (``RoomLimits/changesPerSecond``).
    /// - Throws: ``RoomError/participantUnknown``, and ``RoomError/changesTooFrequent`` for a change that is pushed. Nothing
    ///   has changed then.
    public func changeMetadata(_ json: String, of id: ParticipantID, isPushed: Bool) async throws(RoomError) {
        try await channel(of: id).change { model throws(RoomError) in
            try model.metadataChanged(to: json, of: id, isPushed: isPushed)
        }
    }

    /// Changes that members made of themselves beyond their budgets.
    public var limitedChanges: [ChangeLimit: UInt64] {
        get async { node.withModel { $0.limitedChanges } }
    }

    /// Subscribes a receiver to tracks of others, or unsubscribes it. The last request that matches a track decides.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when `receiver` does not watch, ``RoomError/subscriptionsFull``.
    public func subscribe(
        _ isSubscribed: Bool,
        to selection: SubscriptionSelection,
        receiver: ParticipantID
    ) async throws(RoomError) {
        try await channel(of: receiver).change { model throws(RoomError) in
            try model.subscriptionRequested(isSubscribed, selection, by: receiver)
        }
    }
}
