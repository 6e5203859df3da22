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
    ///   ``RoomError/appPublishersFull``, ``RoomError/audienceByOperator``.
    public func changeRole(
        of id: ParticipantID,
        to role: ChannelRole,
        by initiator: Initiator
    ) async throws(RoomError) {
        try await channel(of: id).changeRole(of: id, to: role, by: initiator)
    }

    /// Mutes a kind of a member's media, or unmutes it. An operator's mute also stops its forwarding, and the member
    /// cannot undo it. A member's own mute is only announced.
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
    /// - Parameter json: JSON text.
    /// - Throws: ``RoomError/participantUnknown``.
    public func changeMetadata(_ json: String, of id: ParticipantID) async throws(RoomError) {
        try await channel(of: id).change { model throws(RoomError) in try model.metadataChanged(to: json, of: id) }
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
