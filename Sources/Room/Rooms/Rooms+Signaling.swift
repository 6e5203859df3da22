public import MediaTypes
public import Wire

// What a participant's signaling needs when its session changes in a call.

extension Rooms {
    /// The events of a participant, for its signaling to read; to be called once, right after
    /// ``reserve(_:)``: one that nobody reads events of when it is activated is told no news at all. What happened
    /// before is not among them, but what ``visibleStreams(to:)`` answers is of now. Of a participant that is gone
    /// there is nothing but the end.
    public func events(of id: ParticipantID) -> ParticipantEvents {
        precondition(mailboxes[id] == nil, "a participant's events have one reader")
        let mailbox = ParticipantMailbox(capacity: model.limits.eventsWaitingMax)
        if model.participants[id] != nil {
            mailboxes[id] = mailbox
        } else {
            mailbox.close(.setupFailed)
        }
        return ParticipantEvents(mailbox: mailbox)
    }

    /// What a participant that follows everyone may see now, in the order of becoming live; nothing for any other.
    public func visibleStreams(to id: ParticipantID) -> [VisibleStream] { model.visibleStreams(to: id) }

    /// A participant's description has further slots for single senders, or some no longer. The MID of a slot that was
    /// taken away is not used again.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when it is not active or does not watch, ``RoomError/media(_:)``.
    public func changeSlots(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) async throws(RoomError) {
        try apply { model throws(RoomError) in try model.slotsChanged(of: id, add: [], remove: mids) }
        guard let participant = model.participants[id] else { throw .participantUnknown }
        for mid in mids {
            _ = work[participant.home].takeWish(for: TrackID(peer: participant.peer, mid: mid))
        }
        do {
            try await planes[participant.home].changeSlots(
                of: participant.peer,
                add: assigned.map(\.parameters),
                remove: mids
            )
        } catch {
            throw model.participants[id] == nil ? .participantUnknown : .media("\(error)")
        }
        try apply { model throws(RoomError) in try model.slotsChanged(of: id, add: assigned, remove: []) }
    }

    /// A participant's description has no codec of these tracks: it is told so, and so is the operator.
    public func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) {
        guard let peer = model.participants[id]?.peer else { return }
        for track in tracks { notice(.formatUnsupported(peer, slot: track.mid, track.codec)) }
        let refused = tracks.compactMap { track in
            ParticipantID(track.streamID).map { (sender: $0, codec: track.codec) }
        }
        apply { $0.codecsRefused(by: id, refused) }
    }

    /// Ends a participant. Returns whether it was there.
    @discardableResult
    public func end(_ id: ParticipantID, reason: EndReason) -> Bool {
        guard model.participants[id] != nil else { return false }
        apply { $0.left(id, reason: reason) }
        return true
    }

    /// Changes what the client says of itself to others, who are told: JSON text, or `nil` for nothing.
    public func setNotifyMetadata(of id: ParticipantID, to json: String?) throws(RoomError) {
        try apply { model throws(RoomError) in try model.notifyMetadataChanged(of: id, to: json) }
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
    ) throws(RoomError) {
        try apply { model throws(RoomError) in try model.layerRequested(layer, by: receiver, of: sender) }
    }

    /// Asks a sender for a key frame of everything that it sends.
    public func requestKeyFrame(of id: ParticipantID) async throws(RoomError) {
        guard let participant = model.participants[id], participant.isActive else { throw .participantUnknown }
        await planes[participant.home].requestKeyFrame(of: participant.peer)
    }

    /// Puts a live sender into focus, in place of the one that is silent longest.
    ///
    /// - Parameter isFixed: whether it stays there whoever speaks.
    public func focus(_ id: ParticipantID, in channel: ChannelName, isFixed: Bool) throws(RoomError) {
        try apply { model throws(RoomError) in try model.focusRequested(id, in: channel, isFixed: isFixed) }
    }

    /// Takes a live sender out of focus until it begins to speak.
    public func unfocus(_ id: ParticipantID, in channel: ChannelName) throws(RoomError) {
        try apply { model throws(RoomError) in try model.unfocusRequested(id, in: channel) }
    }

    /// Changes how many are focused, one of ``Spotlight/numbers``.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
    public func changeSpotlightNumber(
        of channel: ChannelName,
        session: ChannelSessionID? = nil,
        to number: Int
    ) throws(RoomError) {
        try apply { model throws(RoomError) in
            try model.spotlightNumberChanged(of: channel, session: session, to: number)
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
    ) throws(RoomError) {
        try apply { model throws(RoomError) in
            try model.spotlightLayersRequested((focus, unfocus), by: receiver, of: sender)
        }
    }

    /// Undoes ``requestSpotlightLayers(receiver:sender:focus:unfocus:)``.
    public func resetSpotlightLayers(receiver: ParticipantID, sender: ParticipantID?) throws(RoomError) {
        try apply { model throws(RoomError) in
            try model.spotlightLayersRequested(nil, by: receiver, of: sender)
        }
    }
}
