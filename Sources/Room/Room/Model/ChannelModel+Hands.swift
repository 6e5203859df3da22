import ChannelTypes

// Raised hands. Everybody sees that of a host; that of the audience, which is not announced, is for moderators.

extension ChannelModel {
    /// A connected member asks to speak, or no longer does.
    ///
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/changesTooFrequent``.
    mutating func handRequested(_ isRaised: Bool, of id: ParticipantID) throws(RoomError) -> [Effect] {
        guard let participant = participants[id], participant.isConnected else { throw .participantUnknown }
        guard participant.isHandRaised != isRaised else { return [] }
        var effects: [Effect] = []
        try takeChange(of: id, into: &effects)
        setHand(isRaised, of: id, into: &effects)
        changed(into: &effects)
        return effects
    }

    mutating func setHand(_ isRaised: Bool, of id: ParticipantID, into effects: inout [Effect]) {
        guard participants[id]?.isHandRaised == !isRaised else { return }
        participants[id]?.isHandRaised = isRaised
        if let participant = participants[id] { announceHand(of: participant, into: &effects) }
    }

    /// Tells those who see the hand of it, and the member itself.
    mutating func announceHand(of participant: Participant, into effects: inout [Effect]) {
        var receivers = observers(of: participant).filter { sees(handOf: participant, $0) }
        if state.extended.contains(participant.id) { receivers.append(participant.id) }
        if !receivers.isEmpty { effects.append(.notify(.handChanged(participant.hand), to: receivers)) }
    }

    /// Who becomes host, and moderates from now on, is told of the audience's hands.
    mutating func tellHands(toHost id: ParticipantID, into effects: inout [Effect]) {
        guard let host = participants[id], host.moderates, state.extended.contains(id) else { return }
        for hand in hands(asSeenBy: host, isAnnounced: false) { effects.append(.notify(.handChanged(hand), to: [id])) }
    }

    /// Others learn from nothing else that a user's hand is gone which was not announced, or whose other connections stay.
    mutating func lowerHand(ofDeparted participant: Participant, into effects: inout [Effect]) {
        guard participant.isHandRaised, !participant.isAnnounced || state.users[participant.member.clientID] != nil
        else { return }
        var lowered = participant
        lowered.isHandRaised = false
        announceHand(of: lowered, into: &effects)
    }

    private func sees(handOf participant: Participant, _ observer: ParticipantID) -> Bool {
        participant.isAnnounced || participants[observer]?.moderates == true
    }

    /// The raised hands that a member sees, in the order of joining.
    /// - Parameter isAnnounced: of those alone who are announced, or are not; `nil` for all.
    mutating func hands(asSeenBy observer: Participant, isAnnounced: Bool? = nil) -> [Hand] {
        workDone += state.connected.count
        return state.connected.compactMap { id in
            guard let participant = participants[id], participant.isHandRaised,
                participant.isAnnounced == isAnnounced ?? participant.isAnnounced,
                participant.member.clientID != observer.member.clientID, sees(handOf: participant, observer.id)
            else { return nil }
            return participant.hand
        }
    }
}

extension Participant {
    var hand: Hand { Hand(user: member.clientID, displayName: terms.displayName, isRaised: isHandRaised) }
}
