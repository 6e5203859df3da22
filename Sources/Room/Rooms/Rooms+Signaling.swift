public import MediaTypes
public import Wire

// Requests of participants' signaling, and of the admin API for participants.

extension Rooms {
    /// `nil` for an unknown resource.
    public func resource(_ id: ResourceID) async -> Resource? { await node.actor(of: id)?.resource(id) }

    /// Deletes a resource and ends its participant.
    /// - Returns: whether there was one.
    public func end(_ id: ResourceID) async -> Bool { await node.actor(of: id)?.end(id) ?? false }

    /// Restarts ICE with the given remote credentials and new local ones. When it fails, the old credentials stay
    /// valid.
    ///
    /// - Parameter expected: refuse unless this is the current version; `nil` accepts any.
    /// - Throws: ``RoomError/resourceUnknown``, ``RoomError/versionMismatch``, ``RoomError/restartUnderWay``,
    ///   ``RoomError/media(_:)``.
    public func restartICE(
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
    public func events(of id: ParticipantID) async -> ParticipantEvents {
        if let channel = node.actor(of: id) { return await channel.events(of: id) }
        let mailbox = ParticipantMailbox(capacity: 1)
        mailbox.close(.setupFailed)
        return ParticipantEvents(mailbox: mailbox)
    }

    /// The events of a resource's participant, for a reader that comes after its setup and may go before its end. They
    /// are those that follow, without notifications of other members, after the present quality of its network where that is
    /// known. Events of an earlier reader end. `nil` for an unknown resource.
    public func events(of id: ResourceID) async -> ParticipantEvents? { await node.actor(of: id)?.events(of: id) }

    /// Ends the reading of ``events(of:)-(ResourceID)``.
    public func stopReading(_ events: ParticipantEvents) async {
        guard let participant = events.participant else { return }
        await node.actor(of: participant)?.stopReading(events)
    }

    /// Removes slots of a participant, then adds slots for single senders. The MID of a removed slot is not reused.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when it is not active or does not watch, ``RoomError/media(_:)``.
    public func changeSlots(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) async throws(RoomError) {
        try await channel(of: id).changeSlots(of: id, add: assigned, remove: mids)
    }

    /// A participant's description has no codec of these tracks. Its signaling and the operator are notified.
    public func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) async {
        await node.actor(of: id)?.codecsRefused(by: id, tracks)
    }

    /// Extends a participant's permission in place, when it has presented a new token or URL that authorization
    /// accepted. Its media goes on. It is warned again before the new end.
    ///
    /// - Parameters:
    ///   - expiry: when the new permission expires; `nil` without an end.
    ///   - owner: the new owner of the participant's resource, if that has an owner; `nil` to keep the owner.
    /// - Throws: ``RoomError/participantUnknown``, and ``RoomError/expiryNotLater`` unless `expiry` is later than the
    ///   present one.
    public func refreshAccess(
        of id: ParticipantID,
        until expiry: AccessExpiry?,
        owner: OwnerProof? = nil
    ) async throws(RoomError) {
        try await channel(of: id).refreshAccess(of: id, until: expiry, owner: owner)
    }

    /// Ends a participant.
    /// - Returns: whether there was one.
    @discardableResult
    public func end(_ id: ParticipantID, reason: EndReason) async -> Bool {
        await node.actor(of: id)?.end(id, reason: reason) ?? false
    }

    /// Ends the participant of a reservation, unless another connection has taken its place.
    /// - Returns: whether it was there.
    @discardableResult
    public func end(_ reservation: Reservation, reason: EndReason) async -> Bool {
        await node.actor(of: reservation.participant)?.end(reservation, reason: reason) ?? false
    }

    /// The channel of a participant.
    func channel(of id: ParticipantID) throws(RoomError) -> ChannelActor {
        guard let channel = node.actor(of: id) else { throw .participantUnknown }
        return channel
    }

    /// The channel of a name.
    func channel(named name: ChannelName) throws(RoomError) -> ChannelActor {
        guard let channel = node.actor(of: name) else { throw .channelUnknown }
        return channel
    }
}

// MARK: - Layers and spotlight

extension Rooms {
    /// Requests another layer of video for a receiver.
    ///
    /// - Parameter sender: the live sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: ``RoomError/participantUnknown`` when `receiver` does not watch, or `sender` is not a live sender of
    ///   its channel.
    public func requestLayer(
        _ layer: LayerChoice,
        receiver: ParticipantID,
        sender: ParticipantID?
    ) async throws(RoomError) {
        try await channel(of: receiver).change { model throws(RoomError) in
            try model.layerRequested(layer, by: receiver, of: sender)
        }
    }

    /// Requests video of another height for a receiver.
    ///
    /// - Parameters:
    ///   - height: in pixels, one of ``JoinRequest/videoHeights``; `nil` for as high as there is, or of one sender as of
    ///     all.
    ///   - sender: the live sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: ``RoomError/participantUnknown`` when `receiver` does not watch, or `sender` is not a live sender of
    ///   its channel.
    public func requestHeight(
        _ height: Int?,
        receiver: ParticipantID,
        sender: ParticipantID?
    ) async throws(RoomError) {
        try await channel(of: receiver).change { model throws(RoomError) in
            try model.heightRequested(height, by: receiver, of: sender)
        }
    }

    /// Limits the rate at which an active receiver is sent media.
    ///
    /// - Parameter bitsPerSecond: in place of its grant's limit; `nil` for that again.
    /// - Throws: ``RoomError/participantUnknown`` when `id` is not active or does not watch.
    public func limitSending(to id: ParticipantID, bitsPerSecond: Int?) async throws(RoomError) {
        try await channel(of: id).change { model throws(RoomError) in
            try model.sendingLimited(to: id, bitsPerSecond: bitsPerSecond)
        }
    }

    /// Requests key frames of all video of an active participant.
    public func requestKeyFrame(of id: ParticipantID) async throws(RoomError) {
        try await channel(of: id).requestKeyFrame(of: id)
    }

    /// Puts a live sender into focus, in place of the one that has been silent longest.
    ///
    /// - Parameter isFixed: whether it stays in focus while others speak.
    public func focus(_ id: ParticipantID, in channel: ChannelName, isFixed: Bool) async throws(RoomError) {
        try await self.channel(named: channel).change { model throws(RoomError) in
            try model.focusRequested(id, isFixed: isFixed)
        }
    }

    /// Takes a live sender out of focus until it starts to speak.
    public func unfocus(_ id: ParticipantID, in channel: ChannelName) async throws(RoomError) {
        try await self.channel(named: channel).change { model throws(RoomError) in try model.unfocusRequested(id) }
    }

    /// Changes the number of members in focus, one of ``Spotlight/numbers``.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` accepts any.
    public func changeSpotlightNumber(
        of channel: ChannelName,
        session: ChannelSessionID? = nil,
        to number: Int
    ) async throws(RoomError) {
        guard Spotlight.numbers.contains(number) else { throw .spotlightNumberInvalid }
        try await self.channel(named: channel).change { model throws(RoomError) in
            try model.spotlightNumberChanged(session: session, to: number)
        }
    }

    /// Requests other layers for a receiver with spotlight.
    ///
    /// - Parameter sender: the live sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: ``RoomError/spotlightUnused`` when `receiver` joined without spotlight,
    ///   ``RoomError/participantUnknown``.
    public func requestSpotlightLayers(
        receiver: ParticipantID,
        sender: ParticipantID?,
        focus: LayerChoice,
        unfocus: LayerChoice
    ) async throws(RoomError) {
        try await channel(of: receiver).change { model throws(RoomError) in
            try model.spotlightLayersRequested((focus, unfocus), by: receiver, of: sender)
        }
    }

    /// Undoes ``requestSpotlightLayers(receiver:sender:focus:unfocus:)``.
    public func resetSpotlightLayers(receiver: ParticipantID, sender: ParticipantID?) async throws(RoomError) {
        try await channel(of: receiver).change { model throws(RoomError) in
            try model.spotlightLayersRequested(nil, by: receiver, of: sender)
        }
    }
}
