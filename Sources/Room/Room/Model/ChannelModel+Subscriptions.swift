import Admission
package import ChannelTypes
package import MediaTypes
import Speakers
package import Wire

// MARK: - Slots of single senders' tracks

extension ChannelModel {
    /// Removes slots of a viewer, then adds slots.
    ///
    /// - Throws: ``RoomError/participantUnknown`` for a participant that is not active or does not watch.
    package mutating func slotsChanged(
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
            updateSlots(of: id, from: sender, into: &effects)
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
    /// `nil` unless the participant is active.
    mutating func source(_ id: ParticipantID) -> Source? {
        guard let participant = participants[id], participant.isActive else { return nil }
        var source = participant.source(
            isFocused: state.session?.speakers.isFocused(id) ?? false,
            isSpeaker: state.session?.recentSpeakers.contains(id) ?? false
        )
        source.channelVerdict = channelVerdict(on: source)
        if participant.stopped.contains(.audio) { source.channelVerdict.audio = true }
        if participant.stopped.contains(.video) { source.channelVerdict.video = true }
        return source
    }

    /// The verdict of the channel's filters on a publisher, evaluated once.
    private mutating func channelVerdict(on source: Source) -> FilterDecision {
        if let known = state.session?.verdicts[source.id] { return known }
        guard let filters = state.session?.filters, !filters.isEmpty else { return FilterDecision() }
        let verdict = filters.verdict(on: source.id.value, source.clientID, visited: &workDone)
        state.session?.verdicts[source.id] = verdict
        return verdict
    }

    /// `nil` unless the participant is live, as viewers that follow everyone need it.
    private mutating func liveSource(_ id: ParticipantID) -> Source? {
        participants[id]?.isLive == true ? source(id) : nil
    }

    mutating func updateSlots(of viewers: ParticipantList, into effects: inout [Effect]) {
        for viewer in viewers { updateSlots(of: viewer, into: &effects) }
    }

    /// Updates the sources of all slots of a viewer.
    mutating func updateSlots(of id: ParticipantID, layerWasRequested: Bool = false, into effects: inout [Effect]) {
        guard let viewer = viewers[id], viewer.isActive else { return }
        let followed: ParticipantID? =
            switch viewer.following {
            case .currentPublisher: state.live.last { !isCompanion($0, of: id) && !isInterrupted($0) }
            case .participant(let target): target
            case .everyone: nil
            }
        var source: Source?
        if let followed { source = self.source(followed) }
        let visited = viewers[id]?.updateFollowedSlots(source, layerWasRequested: layerWasRequested, into: &effects)
        workDone += 1 + (visited ?? 0)
        for sender in viewer.slotSenders.sorted(by: { $0.precedes($1) }) {
            updateSlots(of: id, from: sender, layerWasRequested: layerWasRequested, into: &effects)
        }
    }

    /// Updates the sources of a viewer's slots of one sender.
    mutating func updateSlots(
        of id: ParticipantID,
        from sender: ParticipantID,
        layerWasRequested: Bool = false,
        into effects: inout [Effect]
    ) {
        let isVisible = participants[sender] != nil && !isCompanion(sender, of: id)
        let source = isVisible ? liveSource(sender) : nil
        let visited = viewers[id]?.updateSlots(
            of: sender,
            source,
            layerWasRequested: layerWasRequested,
            into: &effects
        )
        workDone += 1 + (visited ?? 0)
    }

    /// Updates the sources of a viewer's slots that play, or may play, one sender.
    mutating func updateSlots(
        of id: ParticipantID,
        thatMayPlay sender: ParticipantID,
        into effects: inout [Effect]
    ) {
        switch viewers[id]?.following {
        case .everyone: updateSlots(of: id, from: sender, into: &effects)
        case .currentPublisher, .participant: updateSlots(of: id, into: &effects)
        case nil: break
        }
    }

    /// Whether two participants are in one bundle, or are the same.
    private func isCompanion(_ one: ParticipantID, of other: ParticipantID) -> Bool {
        guard one != other else { return true }
        guard let participant = participants[one] else { return false }
        return state.bundles[participant.terms.bundle]?.contains(other) == true
    }
}

// MARK: - Connections that failed

extension ChannelModel {
    /// The connections of slots to what they are to play, once more. Slots that are to play nothing or are gone have none.
    package func connections(of slots: Set<TrackID>) -> [Effect] {
        slots.compactMap { slot in
            guard let viewer = participantOfPeer[slot.peer].flatMap({ viewers[$0] }), viewer.peer == slot.peer,
                let state = viewer.slot(slot.mid), let track = state.source,
                let sender = participantOfPeer[track.peer].flatMap({ participants[$0] })
            else { return nil }
            let source = PlacedTrack(track: track, location: sender.location)
            return .connect(slot: slot, to: source, preference: state.preference, location: viewer.location)
        }
    }
}

// MARK: - Streams that start and end

extension ChannelModel {
    /// A sender went live: viewers that follow everyone may receive it.
    mutating func streamStarted(of participant: Participant, into effects: inout [Effect]) {
        let bundleMembers = state.bundles[participant.terms.bundle] ?? []
        let source = source(participant.id)
        for viewer in state.followersOfEveryone where !bundleMembers.contains(viewer) {
            let visited = viewers[viewer]?.updateSlots(of: participant.id, source, into: &effects) ?? 0
            workDone += 1 + visited
            effects.append(.streamsChanged(viewer))
        }
    }

    /// A sender left. Nobody received one that was never live.
    mutating func streamEnded(
        of participant: Participant,
        _ bundleMembers: Set<ParticipantID>,
        into effects: inout [Effect]
    ) {
        guard participant.isLive else { return }
        for viewer in state.followersOfEveryone {
            let visited = viewers[viewer]?.updateSlots(of: participant.id, nil, into: &effects) ?? 0
            viewers[viewer]?.forget(participant.id)
            workDone += 1 + visited
            if !bundleMembers.contains(viewer) { effects.append(.streamsChanged(viewer)) }
        }
    }
}

// MARK: - Requested subscriptions

extension ChannelModel {
    /// A receiver subscribes to tracks of others or unsubscribes from them. The slots stay negotiated.
    ///
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch; ``RoomError/subscriptionsFull``.
    package mutating func subscriptionRequested(
        _ isSubscribed: Bool,
        _ selection: SubscriptionSelection,
        by id: ParticipantID
    ) throws(RoomError) -> [Effect] {
        let command = ChannelCommand.subscribe(isSubscribed, to: selection, receiver: .participant(id))
        if let effects = try requestInstead(command, ofReceiver: id) { return effects }
        guard viewers[id] != nil else { throw .participantUnknown }
        try viewers[id]?.requestSubscription(isSubscribed, selection)
        var effects: [Effect] = []
        updateSlots(of: id, into: &effects)
        return effects
    }
}

// MARK: - Layers

extension ChannelModel {
    /// A receiver, or an operator for it, requests another layer.
    ///
    /// - Parameter sender: the sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: ``RoomError/participantUnknown`` when `id` does not watch, or `sender` is not a live sender of its
    ///   channel, or `id` does not follow everyone.
    package mutating func layerRequested(
        _ layer: LayerChoice,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        let command = ChannelCommand.requestLayer(layer, receiver: id, sender: sender)
        if let effects = try requestInstead(command, ofReceiver: id, sender) { return effects }
        try checkReceiver(id, of: sender)
        viewers[id]?.requestLayer(layer, of: sender)
        return updateSlots(afterRequestBy: id, of: sender)
    }

    /// A receiver, or an operator for it, requests video of another height.
    ///
    /// - Parameters:
    ///   - height: in pixels; `nil` for as high as there is, or of one sender as of all.
    ///   - sender: the sender of the video; `nil` for all senders without a request of their own.
    /// - Throws: as ``layerRequested(_:by:of:)`` does.
    package mutating func heightRequested(
        _ height: Int?,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        let command = ChannelCommand.requestHeight(height, receiver: id, sender: sender)
        if let effects = try requestInstead(command, ofReceiver: id, sender) { return effects }
        try checkReceiver(id, of: sender)
        viewers[id]?.requestHeight(height, of: sender)
        var effects: [Effect] = []
        if let sender {
            updateSlots(of: id, from: sender, into: &effects)
        } else {
            updateSlots(of: id, into: &effects)
        }
        return effects
    }

    /// An operator limits the rate at which a participant is sent media.
    ///
    /// - Parameter bitsPerSecond: in place of its grant's limit; `nil` for that again.
    /// - Throws: ``RoomError/participantUnknown`` when `id` is not active or does not watch.
    package mutating func sendingLimited(
        to id: ParticipantID,
        bitsPerSecond: Int?
    ) throws(RoomError) -> [Effect] {
        guard let participant = participants[id], participant.isActive, participant.role.watches else {
            throw .participantUnknown
        }
        if participant.isRemote {
            let command = ChannelCommand.limitSending(to: id, bitsPerSecond: bitsPerSecond)
            return [.request(command, of: participant.location.node)]
        }
        let limit = bitsPerSecond ?? participant.terms.grantedReceiveBitsPerSecondMax
        guard limit != participant.receiveBitsPerSecondMax else { return [] }
        participants[id]?.receiveBitsPerSecondMax = limit
        return [.limitSending(participant.peer, bitsPerSecond: limit, location: participant.location)]
    }

    func checkReceiver(_ id: ParticipantID, of sender: ParticipantID?) throws(RoomError) {
        guard viewers[id] != nil else { throw .participantUnknown }
        guard let sender else { return }
        guard let participant = participants[sender], participant.isLive,
            viewers[id]?.following == .everyone
        else { throw .participantUnknown }
    }

    /// Updates the slots whose layer was requested.
    mutating func updateSlots(afterRequestBy id: ParticipantID, of sender: ParticipantID?) -> [Effect] {
        var effects: [Effect] = []
        if let sender {
            updateSlots(of: id, from: sender, layerWasRequested: true, into: &effects)
        } else {
            updateSlots(of: id, layerWasRequested: true, into: &effects)
        }
        return effects
    }

    mutating func layerSwitched(
        in mid: MID,
        of id: ParticipantID,
        from previous: RID?,
        to current: RID?,
        isRequested: Bool,
        into effects: inout [Effect]
    ) {
        guard current != previous,
            let (slot, wasRequested) = viewers[id]?.layerSwitched(in: mid, to: current, isRequested: isRequested)
        else { return }
        // A slot that plays nothing notified its viewer of that before.
        guard viewers[id]?.receivesNotifications == true, slot.source != nil else { return }
        let sender = slot.source.flatMap { participantOfPeer[$0.peer] }
        let publication = sender.flatMap { participants[$0] }?.publications.first { $0.mid == slot.source?.mid }
        let rank = { (rid: RID?) in rid.map { publication?.rids.firstIndex(of: $0) ?? 0 } ?? -1 }
        let layers = publication?.rids ?? []
        let layerSwitch = Notification.LayerSwitch(
            sender: sender,
            requested: slot.requestedLayer,
            layers: layers,
            permitted: slot.requestedLayer.permitted(of: layers),
            current: current,
            previous: previous,
            isHigher: rank(current) > rank(previous),
            trigger: wasRequested ? .receiver : .sender
        )
        effects.append(.notify(.layerSwitched(layerSwitch), to: [id]))
    }
}

extension LayerChoice {
    /// The layers that may play instead of the chosen one or as it, of those of a sender, the lowest first.
    fileprivate func permitted(of layers: [RID]) -> [RID] {
        switch self {
        case .nothing: []
        case .richest: layers
        case .level(let rank): Array(layers.prefix(max(rank, 0) &+ 1))
        }
    }
}
