package import ChannelTypes
package import MediaTypes
package import Wire

// The connection of a participant, as its signaling uses it.

extension ChannelDirectory {
    /// `nil` for an unknown resource.
    package func resource(_ id: ResourceID) async -> Resource? { await node.actor(of: id)?.resource(id) }

    /// Deletes a resource and ends its participant.
    /// - Returns: whether there was one.
    package func end(_ id: ResourceID) async -> Bool { await node.actor(of: id)?.end(id) ?? false }

    /// Restarts ICE with the given remote credentials and new local ones. When it fails, the old credentials stay
    /// valid.
    ///
    /// - Parameter expected: refuse unless this is the current version; `nil` accepts any.
    /// - Throws: ``RoomError/resourceUnknown``, ``RoomError/versionMismatch``, ``RoomError/restartUnderWay``,
    ///   ``RoomError/media(_:)``.
    package func restartICE(
        _ id: ResourceID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> Resource {
        guard let channel = node.actor(of: id) else { throw .resourceUnknown }
        return try await channel.restartICE(id, expected: expected, remote: remote)
    }

    /// The events of a participant, for its signaling. To be called once, right after ``reserve(_:)``: a participant
    /// whose events have no reader at ``activate(_:remote:receive:send:slots:data:firstMediaKind:mids:owner:endpointPath:)`` gets no
    /// notifications.
    ///
    /// Earlier events are not included; ``visibleStreams(to:)`` has the present state. For a participant that has left,
    /// the only event is the end.
    package func events(of id: ParticipantID) async -> ParticipantEvents {
        if let channel = node.actor(of: id) { return await channel.events(of: id) }
        let mailbox = ParticipantMailbox(capacity: 1)
        mailbox.close(.setupFailed)
        return ParticipantEvents(mailbox: mailbox)
    }

    /// The events of a resource's participant, for a reader that comes after its setup and may go before its end. They
    /// are those that follow, without notifications of other members, after the present quality of its network where that is
    /// known. Events of an earlier reader end. `nil` for an unknown resource.
    package func events(of id: ResourceID) async -> ParticipantEvents? { await node.actor(of: id)?.events(of: id) }

    /// Ends the reading of ``events(of:)-(ResourceID)``.
    package func stopReading(_ events: ParticipantEvents) async {
        guard let participant = events.participant else { return }
        await node.actor(of: participant)?.stopReading(events)
    }

    /// Removes slots of a participant, then adds slots for single senders. The MID of a removed slot is not reused.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when it is not active or does not watch, ``RoomError/media(_:)``.
    package func changeSlots(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) async throws(RoomError) {
        guard let channel = node.actor(of: id) else { throw .participantUnknown }
        try await channel.changeSlots(of: id, add: assigned, remove: mids)
    }

    /// A participant's description has no codec of these tracks. Its signaling and the operator are notified.
    package func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) async {
        await node.actor(of: id)?.codecsRefused(by: id, tracks)
    }

    /// Changes who owns a participant's resource, if it has an owner: its client presented a new token that authorization
    /// accepted.
    package func replaceOwner(of id: ParticipantID, by owner: OwnerProof) async {
        await node.actor(of: id)?.replaceOwner(of: id, by: owner)
    }

    /// Ends the participant of a reservation, unless another connection has taken its place.
    /// - Returns: whether it was there.
    @discardableResult
    package func end(_ reservation: Reservation, reason: EndReason) async -> Bool {
        await node.actor(of: reservation.participant)?.end(reservation, reason: reason) ?? false
    }
}
