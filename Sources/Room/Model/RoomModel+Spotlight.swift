public import MediaTypes
import Wire

// Who is focused, which is the same for all of a channel; what a receiver makes of it is its ``Viewer``'s.

extension RoomModel {
    /// The media plane hears somebody begin or cease to speak.
    mutating func spoke(_ id: ParticipantID, into mid: MID, isSpeaking: Bool, into decisions: inout [Decision]) {
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
            channels[participant.channel]?.session?.stage.began(id)
        } else if !speaks {
            channels[participant.channel]?.session?.stage.ceased(id)
        }
        settleStage(of: participant.channel, into: &decisions)
    }

    /// A sender left the stage with its channel.
    mutating func leaveStage(_ participant: Participant, into decisions: inout [Decision]) {
        channels[participant.channel]?.session?.stage.dismiss(participant.id)
        settleStage(of: participant.channel, into: &decisions)
    }

    /// Puts a sender into focus, in place of the one that is silent longest.
    ///
    /// - Parameter isFixed: whether it stays there whoever speaks.
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    public mutating func focusRequested(
        _ id: ParticipantID,
        in name: ChannelName,
        isFixed: Bool
    ) throws(RoomError) -> [Decision] {
        try checkSender(id, in: name)
        channels[name]?.session?.stage.putForward(id, isFixed: isFixed)
        var decisions: [Decision] = []
        settleStage(of: name, into: &decisions)
        return decisions
    }

    /// Takes a sender out of focus until it begins to speak.
    ///
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    public mutating func unfocusRequested(_ id: ParticipantID, in name: ChannelName) throws(RoomError) -> [Decision] {
        try checkSender(id, in: name)
        channels[name]?.session?.stage.dismiss(id)
        var decisions: [Decision] = []
        settleStage(of: name, into: &decisions)
        return decisions
    }

    private func checkSender(_ id: ParticipantID, in name: ChannelName) throws(RoomError) {
        guard channels[name]?.session != nil else { throw .channelUnknown }
        guard let participant = participants[id], participant.channel == name, participant.isLive
        else { throw .participantUnknown }
    }

    /// Changes how many are focused.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
    public mutating func spotlightNumberChanged(
        of name: ChannelName,
        session: ChannelSessionID? = nil,
        to number: Int
    ) throws(RoomError) -> [Decision] {
        guard Spotlight.numbers.contains(number) else { throw .spotlightNumberInvalid }
        try checkSession(session, of: name)
        channels[name]?.session?.stage.change(number: number)
        var decisions: [Decision] = []
        settleStage(of: name, into: &decisions)
        return decisions
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
    ) throws(RoomError) -> [Decision] {
        try checkReceiver(id, of: sender)
        guard viewers[id]?.usesSpotlight == true else { throw .spotlightUnused }
        let layers = layers.map { Viewer.SpotlightLayers(focus: $0.focus, unfocus: $0.unfocus) }
        viewers[id]?.ask(forSpotlight: layers, of: sender)
        return repointed(id, sender)
    }

    /// Ranks the speakers anew, points the slots of those that came into focus or fell out of it, and says so.
    mutating func settleStage(of name: ChannelName, into decisions: inout [Decision]) {
        guard let change = channels[name]?.session?.stage.settle() else { return }
        for id in change.unfocused + change.focused {
            for viewer in channels[name]?.spotlightViewers ?? Roster() { repoint(viewer, at: id, into: &decisions) }
        }
        for id in change.unfocused { announceFocus(of: id, in: name, isFocused: false, into: &decisions) }
        for id in change.focused { announceFocus(of: id, in: name, isFocused: true, into: &decisions) }
    }
}
