public import MediaTypes
public import Wire

// MARK: - Slots of single senders' tracks

extension RoomModel {
    /// A viewer's description has further slots, or some no longer. What goes is gone before what comes is there.
    ///
    /// Throws ``RoomError/participantUnknown`` for one that is not active or does not watch.
    public mutating func slotsChanged(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) throws(RoomError) -> [Decision] {
        guard viewers[id]?.isActive == true else { throw .participantUnknown }
        for mid in mids { viewers[id]?.removeSlot(mid) }
        add(assigned, to: id)
        workDone += mids.count
        var decisions: [Decision] = []
        for sender in Set(assigned.map(\.sender)).sorted(by: { $0.precedes($1) }) {
            point(id, at: sender, into: &decisions)
        }
        return decisions
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

// MARK: - Pointing slots

extension RoomModel {
    /// What slots need to know of a sender; `nil` for one that nobody can get anything of.
    mutating func source(_ id: ParticipantID) -> Source? {
        guard let participant = participants[id], participant.isActive else { return nil }
        let name = participant.channel
        var source = participant.source(isFocused: channels[name]?.session?.stage.isFocused(id) ?? false)
        source.channelVerdict = channelVerdict(on: source, in: name)
        return source
    }

    /// What the channel's filters keep of a publisher, found out once.
    private mutating func channelVerdict(on source: Source, in name: ChannelName) -> FilterVerdict {
        if let known = channels[name]?.session?.verdicts[source.id] { return known }
        guard let filters = channels[name]?.session?.filters, !filters.isEmpty else { return FilterVerdict() }
        let verdict = filters.verdict(on: source, looked: &workDone)
        channels[name]?.session?.verdicts[source.id] = verdict
        return verdict
    }

    /// Of a sender as one that follows everyone gets it.
    private mutating func liveSource(_ id: ParticipantID) -> Source? {
        participants[id]?.isLive == true ? source(id) : nil
    }

    func filters(of name: ChannelName) -> FilterList { channels[name]?.session?.filters ?? FilterList() }

    mutating func subscribeAll(_ roster: Roster, into decisions: inout [Decision]) {
        for viewer in roster { subscribe(viewer, into: &decisions) }
    }

    /// Points all of a viewer's slots where they belong now.
    mutating func subscribe(_ id: ParticipantID, wasAsked: Bool = false, into decisions: inout [Decision]) {
        guard let viewer = viewers[id], viewer.isActive, let name = participants[id]?.channel else { return }
        let followed: ParticipantID? =
            switch viewer.following {
            case .currentPublisher: channels[name]?.live.last { !isCompanion($0, of: id) }
            case .participant(let target): target
            case .everyone: nil
            }
        var source: Source?
        if let followed { source = self.source(followed) }
        let looked = viewers[id]?.follow(source, wasAsked: wasAsked, into: &decisions) ?? 0
        workDone += 1 + looked
        for sender in viewer.slotSenders.sorted(by: { $0.precedes($1) }) {
            point(id, at: sender, wasAsked: wasAsked, into: &decisions)
        }
    }

    /// Points a viewer's slots of one sender where they belong now.
    mutating func point(
        _ id: ParticipantID,
        at sender: ParticipantID,
        wasAsked: Bool = false,
        into decisions: inout [Decision]
    ) {
        guard let name = participants[id]?.channel else { return }
        let isVisible = participants[sender]?.channel == name && !isCompanion(sender, of: id)
        let source = isVisible ? liveSource(sender) : nil
        let looked = viewers[id]?.point(at: source, of: sender, wasAsked: wasAsked, into: &decisions)
        workDone += 1 + (looked ?? 0)
    }

    /// Points a viewer's slots of one sender where they belong now, whether or not they are slots of its own.
    mutating func repoint(_ id: ParticipantID, at sender: ParticipantID, into decisions: inout [Decision]) {
        switch viewers[id]?.following {
        case .everyone: point(id, at: sender, into: &decisions)
        case .currentPublisher, .participant: subscribe(id, into: &decisions)
        case nil: break
        }
    }

    /// Whether two participants are of one bundle, or the same.
    private func isCompanion(_ one: ParticipantID, of other: ParticipantID) -> Bool {
        guard one != other else { return true }
        guard let participant = participants[one] else { return false }
        return channels[participant.channel]?.bundles[participant.bundle]?.contains(other) == true
    }
}

// MARK: - Streams that come and go

extension RoomModel {
    /// A sender went live: those that follow everyone may have it.
    mutating func streamChanged(of participant: Participant, into decisions: inout [Decision]) {
        guard let channel = channels[participant.channel] else { return }
        let companions = channel.bundles[participant.bundle] ?? []
        let source = source(participant.id)
        for viewer in channel.followersOfEveryone where !companions.contains(viewer) {
            let looked = viewers[viewer]?.point(at: source, of: participant.id, into: &decisions) ?? 0
            workDone += 1 + looked
            decisions.append(.streamsChanged(viewer))
        }
    }

    /// A sender left. Of one that never was live nobody had anything.
    mutating func streamGone(
        _ participant: Participant,
        _ companions: Set<ParticipantID>,
        into decisions: inout [Decision]
    ) {
        guard participant.isLive else { return }
        for viewer in channels[participant.channel]?.followersOfEveryone ?? Roster() {
            let looked = viewers[viewer]?.point(at: nil, of: participant.id, into: &decisions) ?? 0
            viewers[viewer]?.forget(participant.id)
            workDone += 1 + looked
            if !companions.contains(viewer) { decisions.append(.streamsChanged(viewer)) }
        }
    }
}

// MARK: - Layers

extension RoomModel {
    /// A receiver, or an operator for it, wants another layer.
    ///
    /// - Parameter sender: of that sender's video; `nil` for every sender that nothing else is asked of.
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch, or `sender` is not a live sender of its
    ///   channel, or `id` does not follow everyone.
    public mutating func layerRequested(
        _ layer: LayerChoice,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Decision] {
        try checkReceiver(id, of: sender)
        viewers[id]?.ask(for: layer, of: sender)
        return repointed(id, sender)
    }

    func checkReceiver(_ id: ParticipantID, of sender: ParticipantID?) throws(RoomError) {
        guard viewers[id] != nil, let name = participants[id]?.channel else { throw .participantUnknown }
        guard let sender else { return }
        guard let participant = participants[sender], participant.channel == name, participant.isLive,
            viewers[id]?.following == .everyone
        else { throw .participantUnknown }
    }

    mutating func repointed(_ id: ParticipantID, _ sender: ParticipantID?) -> [Decision] {
        var decisions: [Decision] = []
        if let sender {
            point(id, at: sender, wasAsked: true, into: &decisions)
        } else {
            subscribe(id, wasAsked: true, into: &decisions)
        }
        return decisions
    }

    mutating func layerSwitched(
        in mid: MID,
        of id: ParticipantID,
        from previous: RID?,
        to current: RID?,
        isWished: Bool,
        into decisions: inout [Decision]
    ) {
        guard current != previous,
            let (slot, wasAsked) = viewers[id]?.layerSwitched(in: mid, to: current, isWished: isWished)
        else { return }
        // One that plays nothing any more was told so.
        guard viewers[id]?.hears == true, slot.source != nil else { return }
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
        decisions.append(.notify(.layerSwitched(news), to: [id]))
    }
}
