import Base
package import ChannelTypes
import MediaTypes
import Speakers
import Wire

// The members in focus. ``Viewer`` applies the focus to one receiver's slots.

extension ChannelModel {
    /// A participant starts or stops speaking in a track.
    mutating func speechChanged(
        of id: ParticipantID,
        in mid: MID,
        isSpeaking: Bool,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id],
            participant.negotiatedPublications.contains(where: { $0.mid == mid && $0.kind == .audio })
        else { return }
        if isSpeaking {
            participants[id]?.speaking.insert(mid)
        } else {
            participants[id]?.speaking.remove(mid)
        }
        guard participant.isLive, !participant.stopped.contains(.audio),
            let speaks = participants[id].map({ !$0.speaking.isEmpty })
        else { return }
        if isSpeaking {
            state.session?.speakers.startedSpeaking(id)
            if participant.publications.contains(where: { $0.kind == .video }) {
                state.session?.recentSpeakers.startedSpeaking(id)
            }
        } else if !speaks {
            state.session?.speakers.stoppedSpeaking(id)
        }
        let changed = state.session?.recentSpeakers.update(at: now.second) ?? []
        updateFocus(into: &effects)
        updateSlots(ofViewersOf: changed, into: &effects)
    }

    /// An operator muted or unmuted a participant's audio: who is not heard does not speak.
    mutating func updateSpeech(of id: ParticipantID, into effects: inout [Effect]) {
        guard let participant = participants[id], participant.isLive, !participant.speaking.isEmpty else { return }
        if participant.stopped.contains(.audio) {
            state.session?.speakers.stoppedSpeaking(id)
            updateFocus(into: &effects)
        } else {
            for mid in participant.speaking { speechChanged(of: id, in: mid, isSpeaking: true, into: &effects) }
        }
    }

    /// Changes the recent speakers if a change had to wait until now.
    mutating func updateRecentSpeakers(into effects: inout [Effect]) {
        updateSlots(ofViewersOf: state.session?.recentSpeakers.update(at: now.second) ?? [], into: &effects)
    }

    /// Updates the slots of single senders' tracks. Who follows one publisher sees nobody beside it.
    private mutating func updateSlots(ofViewersOf senders: [ParticipantID], into effects: inout [Effect]) {
        for sender in senders {
            for viewer in state.followersOfEveryone { updateSlots(of: viewer, from: sender, into: &effects) }
        }
    }

    /// A sender left the channel.
    mutating func removeSpeaker(_ participant: Participant, into effects: inout [Effect]) {
        state.session?.speakers.remove(participant.id)
        state.session?.recentSpeakers.remove(participant.id)
        updateFocus(into: &effects)
    }

    /// Puts a sender into focus, in place of the one that has been silent longest.
    ///
    /// - Parameters:
    ///   - isFixed: whether it stays in focus while others speak.
    ///   - isTold: whether the other nodes do it, too.
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    package mutating func focusRequested(
        _ id: ParticipantID,
        isFixed: Bool,
        isTold: Bool
    ) throws(RoomError) -> [Effect] {
        try checkSender(id)
        changeFocus(isTold: isTold) { $0.focus(id, isFixed: isFixed) }
        var effects = isTold ? [] : requestsToOthers(.focus(id, isFixed: isFixed))
        updateFocus(into: &effects)
        return effects
    }

    /// Takes a sender out of focus until it starts to speak.
    ///
    /// - Parameter isTold: whether the other nodes do it, too.
    /// - Throws: ``RoomError/participantUnknown`` unless it is a live sender of the channel.
    package mutating func unfocusRequested(
        _ id: ParticipantID,
        isTold: Bool
    ) throws(RoomError) -> [Effect] {
        try checkSender(id)
        changeFocus(isTold: isTold) { $0.remove(id) }
        var effects = isTold ? [] : requestsToOthers(.unfocus(id))
        updateFocus(into: &effects)
        return effects
    }

    /// Nodes that get the channel later learn who is fixed.
    private mutating func changeFocus(isTold: Bool, _ change: (inout ActiveSpeakers) -> Void) {
        guard var speakers = state.session?.speakers else { return }
        change(&speakers)
        let isRegisterChanged = !isTold && speakers.fixed != state.session?.speakers.fixed
        state.session?.speakers = speakers
        if isRegisterChanged { registerChanged() }
    }

    private func checkSender(_ id: ParticipantID) throws(RoomError) {
        guard state.session != nil else { throw .channelUnknown }
        guard let participant = participants[id], participant.isLive
        else { throw .participantUnknown }
    }

    /// Changes how many senders are in focus.
    package mutating func spotlightNumberChanged(to number: Int) throws(RoomError) -> [Effect] {
        guard Spotlight.numbers.contains(number) else { throw .spotlightNumberInvalid }
        guard state.session != nil else { throw .channelUnknown }
        state.session?.speakers.change(number: number)
        registerChanged()
        var effects: [Effect] = []
        updateFocus(into: &effects)
        return effects
    }

    /// A receiver, or an operator for it, requests other layers of senders in focus and of the others.
    ///
    /// - Parameters:
    ///   - layers: `nil` for the layers that it joined with.
    ///   - sender: the sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch, or `sender` does not send to its channel;
    ///   ``RoomError/spotlightUnused``.
    package mutating func spotlightLayersRequested(
        _ layers: SpotlightLayers?,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        let command = ChannelCommand.requestSpotlightLayers(layers, receiver: id, sender: sender)
        if let effects = try requestInstead(command, ofReceiver: id, sender) {
            guard participants[id]?.terms.spotlight != nil else { throw .spotlightUnused }
            return effects
        }
        try checkReceiver(id, of: sender)
        guard viewers[id]?.usesSpotlight == true else { throw .spotlightUnused }
        viewers[id]?.requestSpotlightLayers(layers, of: sender)
        return updateSlots(afterRequestBy: id, of: sender)
    }

    /// A sender went live, which another node may have fixed in focus before.
    mutating func updateFocus(afterComing id: ParticipantID, into effects: inout [Effect]) {
        guard participants[id]?.isLive == true, state.session?.speakers.came(id) == true else { return }
        updateFocus(into: &effects)
    }

    /// Ranks the speakers, updates the slots that may play those whose focus changed, and notifies members.
    mutating func updateFocus(into effects: inout [Effect]) {
        guard let change = state.session?.speakers.update() else { return }
        for id in change.unfocused + change.focused {
            for viewer in state.spotlightViewers { updateSlots(of: viewer, thatMayPlay: id, into: &effects) }
        }
        for id in change.unfocused { announceFocus(of: id, isFocused: false, into: &effects) }
        for id in change.focused { announceFocus(of: id, isFocused: true, into: &effects) }
    }
}
