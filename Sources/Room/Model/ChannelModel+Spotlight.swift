public import MediaTypes
import Wire

// The focused members of the channel. ``Viewer`` applies the focus to one receiver's slots.

extension ChannelModel {
    /// A participant starts or stops speaking into a track.
    mutating func spoke(_ id: ParticipantID, into mid: MID, isSpeaking: Bool, into effects: inout [Effect]) {
        guard let participant = participants[id],
            participant.publications.contains(where: { $0.mid == mid && $0.kind == .audio })
        else { return }
        if isSpeaking {
            participants[id]?.speaking.insert(mid)
        } else {
            participants[id]?.speaking.remove(mid)
        }
        guard participant.isLive, let speaks = participants[id].map({ !$0.speaking.isEmpty }) else { return }
        if isSpeaking {
            state.session?.speakers.began(id)
        } else if !speaks {
            state.session?.speakers.ceased(id)
        }
        updateFocus(into: &effects)
    }

    /// A sender left the channel.
    mutating func removeSpeaker(_ participant: Participant, into effects: inout [Effect]) {
        state.session?.speakers.dismiss(participant.id)
        updateFocus(into: &effects)
    }

    /// Puts a sender into focus, in place of the one that is silent longest.
    ///
    /// - Parameter isFixed: whether it stays there whoever speaks.
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    public mutating func focusRequested(
        _ id: ParticipantID,
        isFixed: Bool
    ) throws(RoomError) -> [Effect] {
        try checkSender(id)
        state.session?.speakers.putForward(id, isFixed: isFixed)
        var effects: [Effect] = []
        updateFocus(into: &effects)
        return effects
    }

    /// Takes a sender out of focus until it begins to speak.
    ///
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    public mutating func unfocusRequested(_ id: ParticipantID) throws(RoomError) -> [Effect] {
        try checkSender(id)
        state.session?.speakers.dismiss(id)
        var effects: [Effect] = []
        updateFocus(into: &effects)
        return effects
    }

    private func checkSender(_ id: ParticipantID) throws(RoomError) {
        guard state.session != nil else { throw .channelUnknown }
        guard let participant = participants[id], participant.isLive
        else { throw .participantUnknown }
    }

    /// Changes how many are focused.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
    public mutating func spotlightNumberChanged(
        session: ChannelSessionID? = nil,
        to number: Int
    ) throws(RoomError) -> [Effect] {
        guard Spotlight.numbers.contains(number) else { throw .spotlightNumberInvalid }
        try checkSession(session)
        state.session?.speakers.change(number: number)
        var effects: [Effect] = []
        updateFocus(into: &effects)
        return effects
    }

    /// A receiver, or an operator for it, wants other layers of those in focus and of the others.
    ///
    /// - Parameters:
    ///   - layers: `nil` for what it joined with.
    ///   - sender: of that sender's video; `nil` for every sender that nothing else is asked of.
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch, or `sender` does not send to its channel;
    ///   ``RoomError/spotlightUnused``.
    public mutating func spotlightLayersRequested(
        _ layers: (focus: LayerChoice, unfocus: LayerChoice)?,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try checkReceiver(id, of: sender)
        guard viewers[id]?.usesSpotlight == true else { throw .spotlightUnused }
        let layers = layers.map { Viewer.SpotlightLayers(focus: $0.focus, unfocus: $0.unfocus) }
        viewers[id]?.ask(forSpotlight: layers, of: sender)
        return repointed(id, sender)
    }

    /// Ranks the speakers, updates the slots of those whose focus changed, and notifies members of the change.
    mutating func updateFocus(into effects: inout [Effect]) {
        guard let change = state.session?.speakers.update() else { return }
        for id in change.unfocused + change.focused {
            for viewer in state.spotlightViewers { repoint(viewer, at: id, into: &effects) }
        }
        for id in change.unfocused { announceFocus(of: id, isFocused: false, into: &effects) }
        for id in change.focused { announceFocus(of: id, isFocused: true, into: &effects) }
    }
}
