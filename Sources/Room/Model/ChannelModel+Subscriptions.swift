public import MediaTypes
public import Wire

// MARK: - Slots of single senders' tracks

extension ChannelModel {
    /// A viewer's description has further slots, or some no longer. What goes is gone before what comes is there.
    ///
    /// Throws ``RoomError/participantUnknown`` for one that is not active or does not watch.
    public mutating func slotsChanged(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) throws(RoomError) -> [Effect] {
        guard viewers[id]?.isActive == true else { throw .participantUnknown }
        for mid in mids { viewers[id]?.removeSlot(mid) }
        add(assigned, to: id)
        workDone += mids.count
        var effects: [Effect] = []
        for sender in Set(assigned.map(\.sender)).sorted(by: { $0.precedes($1) }) {
            point(id, at: sender, into: &effects)
        }
        return effects
    }

    mutating func add(_ assigned: [SlotAssignment], to id: ParticipantID) {
        for slot in assigned {
            viewers[id]?.add(
                Slot(mid: slot.parameters.mid, kind: slot.parameters.kind),
                track: slot.track,
                of: slot.sender
            )
        }
    }
}

// MARK: - Sources of slots

extension ChannelModel {
    /// A sender as slots need it; `nil` unless it is active.
    mutating func source(_ id: ParticipantID) -> Source? {
        guard let participant = participants[id], participant.isActive else { return nil }
        var source = participant.source(isFocused: state.session?.speakers.isFocused(id) ?? false)
        source.channelVerdict = channelVerdict(on: source)
        return source
    }

    /// The verdict of the channel's filters on a publisher, evaluated once.
    private mutating func channelVerdict(on source: Source) -> FilterVerdict {
        if let known = state.session?.verdicts[source.id] { return known }
        guard let filters = state.session?.filters, !filters.isEmpty else { return FilterVerdict() }
        let verdict = filters.verdict(on: source, looked: &workDone)
        state.session?.verdicts[source.id] = verdict
        return verdict
    }

    /// A sender as viewers that follow everyone get it.
    private mutating func liveSource(_ id: ParticipantID) -> Source? {
        participants[id]?.isLive == true ? source(id) : nil
    }

    mutating func subscribeAll(_ list: ParticipantList, into effects: inout [Effect]) {
        for viewer in list { subscribe(viewer, into: &effects) }
    }

    /// Updates the sources of all slots of a viewer.
    mutating func subscribe(_ id: ParticipantID, wasAsked: Bool = false, into effects: inout [Effect]) {
        guard let viewer = viewers[id], viewer.isActive else { return }
        let followed: ParticipantID? =
            switch viewer.following {
            case .currentPublisher: state.live.last { !isCompanion($0, of: id) }
            case .participant(let target): target
            case .everyone: nil
            }
        var source: Source?
        if let followed { source = self.source(followed) }
        let looked = viewers[id]?.follow(source, wasAsked: wasAsked, into: &effects) ?? 0
        workDone += 1 + looked
        for sender in viewer.slotSenders.sorted(by: { $0.precedes($1) }) {
            point(id, at: sender, wasAsked: wasAsked, into: &effects)
        }
    }

    /// Updates the sources of a viewer's slots of one sender.
    mutating func point(
        _ id: ParticipantID,
        at sender: ParticipantID,
        wasAsked: Bool = false,
        into effects: inout [Effect]
    ) {
        let isVisible = participants[sender] != nil && !isCompanion(sender, of: id)
        let source = isVisible ? liveSource(sender) : nil
        let looked = viewers[id]?.point(at: source, of: sender, wasAsked: wasAsked, into: &effects)
        workDone += 1 + (looked ?? 0)
    }

    /// Updates the sources of a viewer's slots that play, or may play, one sender.
    mutating func repoint(_ id: ParticipantID, at sender: ParticipantID, into effects: inout [Effect]) {
        switch viewers[id]?.following {
        case .everyone: point(id, at: sender, into: &effects)
        case .currentPublisher, .participant: subscribe(id, into: &effects)
        case nil: break
        }
    }

    /// Whether two participants are of one bundle, or the same.
    private func isCompanion(_ one: ParticipantID, of other: ParticipantID) -> Bool {
        guard one != other else { return true }
        guard let participant = participants[one] else { return false }
        return state.bundles[participant.bundle]?.contains(other) == true
    }
}

// MARK: - Streams that start and end

extension ChannelModel {
    /// A sender went live: viewers that follow everyone may receive it.
    mutating func streamChanged(of participant: Participant, into effects: inout [Effect]) {
        let companions = state.bundles[participant.bundle] ?? []
        let source = source(participant.id)
        for viewer in state.followersOfEveryone where !companions.contains(viewer) {
            let looked = viewers[viewer]?.point(at: source, of: participant.id, into: &effects) ?? 0
            workDone += 1 + looked
            effects.append(.streamsChanged(viewer))
        }
    }

    /// A sender left. Nobody received one that never was live.
    mutating func streamGone(
        _ participant: Participant,
        _ companions: Set<ParticipantID>,
        into effects: inout [Effect]
    ) {
        guard participant.isLive else { return }
        for viewer in state.followersOfEveryone {
            let looked = viewers[viewer]?.point(at: nil, of: participant.id, into: &effects) ?? 0
            viewers[viewer]?.forget(participant.id)
            workDone += 1 + looked
            if !companions.contains(viewer) { effects.append(.streamsChanged(viewer)) }
        }
    }
}

// MARK: - Layers

extension ChannelModel {
    /// A receiver, or an operator for it, requests another layer.
    ///
    /// - Parameter sender: of that sender's video; `nil` for every sender that nothing else is asked of.
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch, or `sender` is not a live sender of its
    ///   channel, or `id` does not follow everyone.
    public mutating func layerRequested(
        _ layer: LayerChoice,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try checkReceiver(id, of: sender)
        viewers[id]?.ask(for: layer, of: sender)
        return repointed(id, sender)
    }

    func checkReceiver(_ id: ParticipantID, of sender: ParticipantID?) throws(RoomError) {
        guard viewers[id] != nil else { throw .participantUnknown }
        guard let sender else { return }
        guard let participant = participants[sender], participant.isLive,
            viewers[id]?.following == .everyone
        else { throw .participantUnknown }
    }

    mutating func repointed(_ id: ParticipantID, _ sender: ParticipantID?) -> [Effect] {
        var effects: [Effect] = []
        if let sender {
            point(id, at: sender, wasAsked: true, into: &effects)
        } else {
            subscribe(id, wasAsked: true, into: &effects)
        }
        return effects
    }

    mutating func layerSwitched(
        in mid: MID,
        of id: ParticipantID,
        from previous: RID?,
        to current: RID?,
        isWished: Bool,
        into effects: inout [Effect]
    ) {
        guard current != previous,
            let (slot, wasAsked) = viewers[id]?.layerSwitched(in: mid, to: current, isWished: isWished)
        else { return }
        // The viewer of a slot that plays nothing was notified of that before.
        guard viewers[id]?.receivesNotifications == true, slot.source != nil else { return }
        let sender = slot.source.flatMap { participantOfPeer[$0.peer] }
        let publication = sender.flatMap { participants[$0] }?.publications.first { $0.mid == slot.source?.mid }
        let rank = { (rid: RID?) in rid.map { publication?.rids.firstIndex(of: $0) ?? 0 } ?? -1 }
        let news = Notification.LayerSwitch(
            sender: sender,
            wished: slot.wish,
            current: current,
            previous: previous,
            isHigher: rank(current) > rank(previous),
            trigger: wasAsked ? .receiver : .sender
        )
        effects.append(.notify(.layerSwitched(news), to: [id]))
    }
}
