public import MediaTypes
public import Wire

// What a participant's signaling needs.

extension Rooms {
    /// What is known of a session; `nil` once it ended.
    public func session(_ id: SessionID) async -> Session? { await node.actor(of: id)?.session(id) }

    /// Ends a session for its owner and frees all of it. Returns whether there was one.
    public func end(_ id: SessionID) async -> Bool { await node.actor(of: id)?.end(id) ?? false }

    /// Puts new ICE credentials in force, the remote ones given and local ones made here.
    ///
    /// When it fails, the session goes on with what it had.
    /// - Parameter expected: refuse unless this is the current version; `nil` takes any.
    public func restartICE(
        _ id: SessionID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> Session {
        guard let channel = node.actor(of: id) else { throw .sessionUnknown }
        return try await channel.restartICE(id, expected: expected, remote: remote)
    }

    /// The events of a participant, for its signaling to read; to be called once, right after
    /// ``reserve(_:)``: one that nobody reads events of when it is activated gets no notifications at all. What happened
    /// before is not among them, but what ``visibleStreams(to:)`` answers is of now. Of a participant that is gone
    /// there is nothing but the end.
    public func events(of id: ParticipantID) async -> ParticipantEvents {
        if let channel = node.actor(of: id) { return await channel.events(of: id) }
        let mailbox = ParticipantMailbox(capacity: 1)
        mailbox.close(.setupFailed)
        return ParticipantEvents(mailbox: mailbox)
    }

    /// A participant's description has further slots for single senders, or some no longer. The MID of a slot that was
    /// taken away is not used again.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when it is not active or does not watch, ``RoomError/media(_:)``.
    public func changeSlots(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) async throws(RoomError) {
        try await channel(of: id).changeSlots(of: id, add: assigned, remove: mids)
    }

    /// A participant's description has no codec of these tracks: its signaling and the operator are notified.
    public func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) async {
        await node.actor(of: id)?.codecsRefused(by: id, tracks)
    }

    /// Ends a participant. Returns whether it was there.
    @discardableResult
    public func end(_ id: ParticipantID, reason: EndReason) async -> Bool {
        await node.actor(of: id)?.end(id, reason: reason) ?? false
    }

    /// Changes the metadata that others see of the client, and notifies them: JSON text, or `nil` for none.
    public func setNotifyMetadata(of id: ParticipantID, to json: String?) async throws(RoomError) {
        try await channel(of: id).change { model throws(RoomError) in try model.notifyMetadataChanged(of: id, to: json)
        }
    }

    /// The channel of a participant.
    private func channel(of id: ParticipantID) throws(RoomError) -> ChannelActor {
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
    /// Asks for another layer of video for a receiver.
    ///
    /// - Parameter sender: of that live sender only; `nil` for every sender that nothing else is asked of.
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

    /// Asks a sender for a key frame of everything that it sends.
    public func requestKeyFrame(of id: ParticipantID) async throws(RoomError) {
        try await channel(of: id).requestKeyFrame(of: id)
    }

    /// Puts a live sender into focus, in place of the one that is silent longest.
    ///
    /// - Parameter isFixed: whether it stays there whoever speaks.
    public func focus(_ id: ParticipantID, in channel: ChannelName, isFixed: Bool) async throws(RoomError) {
        try await self.channel(named: channel).change { model throws(RoomError) in
            try model.focusRequested(id, isFixed: isFixed)
        }
    }

    /// Takes a live sender out of focus until it begins to speak.
    public func unfocus(_ id: ParticipantID, in channel: ChannelName) async throws(RoomError) {
        try await self.channel(named: channel).change { model throws(RoomError) in try model.unfocusRequested(id) }
    }

    /// Changes how many are focused, one of ``Spotlight/numbers``.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
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

    /// Asks for other layers for a receiver with spotlight.
    ///
    /// - Parameter sender: of that live sender only; `nil` for every sender that nothing else is asked of.
    /// - Throws: ``RoomError/spotlightUnused`` when `receiver` joined without, ``RoomError/participantUnknown``.
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
