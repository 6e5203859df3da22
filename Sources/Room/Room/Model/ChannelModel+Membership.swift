package import Admission
import Base
package import ChannelTypes
package import MediaTypes
import Speakers
package import Wire

// MARK: - Joining

extension ChannelModel {
    /// Adds a newcomer that the node admitted. It is neither subscribed nor visible before
    /// ``setupCompleted(_:publications:slots:assigned:decodedVideo:hasEventReader:)``.
    ///
    /// - Parameters:
    ///   - session: the identifier of the channel's session if the newcomer starts one.
    ///   - resumeSecret: of its token, if it keeps its place: see ``JoinRequest/keepsPlace``.
    /// - Throws: ``RoomError/filterExists`` and ``RoomError/filtersTooLarge`` for its filters. The model is unchanged
    ///   then.
    package mutating func joined(
        _ request: JoinRequest,
        as place: ParticipantLocation,
        session: ChannelSessionID,
        resumeSecret: String? = nil
    ) throws(RoomError) -> [Effect] {
        precondition(
            participants[place.participant] == nil && participantOfPeer[place.peer] == nil,
            "identifiers are unique"
        )
        let filters = try FilterList(request.filters)
        var effects: [Effect] = []
        replaceUnconnected(before: request, into: &effects)
        sessionBegan(as: session)
        fixApp(request.app)
        fixProfile(for: request)
        var participant = Participant(request, role: firstRole(of: request), as: place, at: now)
        participant.mutedByOperator = hold(of: participant.member.clientID).muted
        participant.resumption = resumeSecret.map(Resumption.init)
        participant.changes = OwnChanges(limits: limits)
        scheduleSetupTimeout(&participant)
        state.add(participant)
        participantOfPeer[participant.peer] = participant.id
        participants[participant.id] = participant
        if request.role.watches {
            viewers[participant.id] = Viewer(request, as: place, filters: filters)
        }
        return effects
    }

    /// Makes a newcomer active: the media plane knows its peer.
    ///
    /// - Parameters:
    ///   - slots: those for the participant that it follows, in the order of its description.
    ///   - assigned: those for single senders' tracks.
    ///   - decodedVideo: the video codecs that it can decode; `nil` where its description does not list them.
    ///   - hasEventReader: whether its signaling reads its events. Without a reader it gets no notifications.
    /// - Throws: ``RoomError/endedDuringSetup`` when the participant has left. The caller then ends the peer.
    package mutating func setupCompleted(
        _ id: ParticipantID,
        publications: [Publication],
        slots: [Slot],
        assigned: [SlotAssignment] = [],
        decodedVideo: Set<CodecName>? = nil,
        hasEventReader: Bool = true
    ) throws(RoomError) -> [Effect] {
        guard var participant = participants[id] else { throw .endedDuringSetup }
        precondition(!participant.isActive, "setup completes once")
        participant.decodedVideo = decodedVideo
        if participant.peer == participant.firstPeer {
            participant.setup.negotiation = max(now.instant - participant.createdAt.instant, .zero)
        }
        if let decodedVideo { state.decoders.add(1, decodedVideo) }
        scheduleSetupTimeout(&participant)
        participants[id] = participant
        participants[id]?.activate(participant.terms.negotiatedRole.publishes ? publications : [])
        if !hasEventReader { participants[id]?.receivesNotifications = false }
        var effects: [Effect] = []
        // A new connection that takes a place may publish other tracks.
        announceFlow(since: participant, into: &effects)
        if participant.role.watches {
            state.activeViewerCount += 1
            viewers[id]?.isActive = true
            viewers[id]?.setFollowedSlots(slots)
            startFollowing(participant)
            if let spotlight = participant.terms.spotlight {
                state.session?.speakers.joined(with: spotlight)
                updateFocus(into: &effects)
            }
            add(assigned, to: id)
            updateSlots(of: id, into: &effects)
        }
        if participant.role.publishes, let followers = state.followers[id] {
            updateSlots(of: followers, into: &effects)
        }
        if participant.isTransportUp { connected(id, into: &effects) }
        changed(into: &effects)
        return effects
    }

    private mutating func startFollowing(_ participant: Participant) {
        let (id, order) = (participant.id, participant.order)
        switch participant.terms.following {
        case .currentPublisher:
            state.followersOfCurrent.insert(id, order: order)
        case .participant(let target):
            // A target that has left gets no entry, because nothing would remove the entry.
            guard participants[target] != nil else { return }
            state.followers[target, default: ParticipantList()].insert(id, order: order)
        case .everyone: break
        }
    }

    /// Makes an active participant connected once its transport is up: others see it and are notified of it.
    private mutating func connected(_ id: ParticipantID, into effects: inout [Effect]) {
        guard !isInterrupted(id) else { return resumed(id, into: &effects) }
        guard var participant = participants[id] else { return }
        participant.connectedAt = now
        cancelSetupTimeout(&participant)
        scheduleDeadlines(&participant)
        participants[id] = participant
        viewers[id]?.receivesNotifications = participant.receivesNotifications
        let order = participant.order
        let others = participant.receivesNotifications ? membersAnnounced(to: participant) : []
        state.connected.insert(id, order: order)
        if participant.receivesNotifications { state.notified.insert(id, order: order) }
        if participant.receivesNotifications, participant.terms.options != nil {
            state.extended.insert(id, order: order)
        }
        state.counts.add(1, participant.role)
        if participant.role.publishes { wentLive(participant, into: &effects) }
        if let session = state.session, !session.isAnnounced {
            state.session?.isAnnounced = true
            effects.append(.report(.sessionCreated(session.description, unixNanoseconds: now.unixNanoseconds)))
        }
        announceCreated(participant, others: others, into: &effects)
        tellOfChannel(participant, into: &effects)
        reportMedia(of: id, into: &effects)
        if participant.quality != .unknown { tellOfQuality(of: participant, into: &effects) }
        notifyBlockedTracks(to: participant, into: &effects)
        notifyRefusedCodecs(to: participant, into: &effects)
        for mid in participant.speaking { speechChanged(of: id, in: mid, isSpeaking: true, into: &effects) }
        replaceDuplicates(of: participant, into: &effects)
    }

    /// Viewers may receive a connected participant from now on.
    mutating func wentLive(_ participant: Participant, into effects: inout [Effect]) {
        insertLive(participant)
        updateSlots(of: state.followersOfCurrent, into: &effects)
        streamStarted(of: participant, into: &effects)
    }
}

// MARK: - Leaving

extension ChannelModel {
    /// Ends a participant, or interrupts it when it lost its connection and keeps its place. Does nothing when it has
    /// left already.
    package mutating func left(_ id: ParticipantID, reason: EndReason) -> [Effect] {
        if let request = requestInstead(id, reason: reason) { return request }
        if let effects = interruptedInstead(id, reason: reason) { return effects }
        guard var participant = participants.removeValue(forKey: id) else { return [] }
        cancelSetupTimeout(&participant)
        participantOfPeer[participant.peer] = nil
        viewers[id] = nil
        cancelDeadlines(participant)
        if participant.terms.user == nil { state.session?.holds.forget(participant.member.clientID) }
        let bundleMembers = state.bundles[participant.terms.bundle] ?? []
        state.remove(participant)
        var effects: [Effect] = []
        if participant.terms.negotiatedRole.publishes { removePublisher(participant, bundleMembers, into: &effects) }
        // During setup the caller of `setupCompleted` ends the peer.
        if participant.isActive, !reason.isOfTransport {
            effects.append(.removePeer(participant.peer, location: participant.location))
        }
        effects.append(.ended(id, reason))
        announceEnded(participant, bundleMembers, reason, into: &effects)
        lowerHand(ofDeparted: participant, into: &effects)
        departed(from: participant.location.node, into: &effects)
        if participant.isActive { changed(into: &effects) }
        resetIfUnused()
        return effects
    }

    mutating func removePublisher(
        _ participant: Participant,
        _ bundleMembers: Set<ParticipantID>,
        into effects: inout [Effect]
    ) {
        let id = participant.id
        if let orphans = state.followers.removeValue(forKey: id) { updateSlots(of: orphans, into: &effects) }
        state.session?.verdicts[id] = nil
        stopStream(of: participant, bundleMembers, into: &effects)
    }

    /// Viewers receive nothing more of a participant.
    ///
    /// - Parameter participant: as it was before.
    mutating func stopStream(
        of participant: Participant,
        _ bundleMembers: Set<ParticipantID>,
        into effects: inout [Effect]
    ) {
        let id = participant.id
        participants[id]?.liveNumber = 0
        if let position = state.live.firstIndex(of: id) {
            state.live.remove(at: position)
            // Viewers see the last one, and the last one sees the one before it. Where members share a bundle, some see
            // an earlier one.
            if position >= state.live.count - 1 || state.bundles.count < state.members.count {
                updateSlots(of: state.followersOfCurrent, into: &effects)
            }
        }
        streamEnded(of: participant, bundleMembers, into: &effects)
        removeSpeaker(participant, into: &effects)
    }

    /// Ends several participants. Bulk removal skips mutual notifications and subscriptions: O(n), not O(n²).
    package mutating func leftTogether(_ ids: [ParticipantID], reason: EndReason) -> [Effect] {
        for id in ids {
            guard let participant = participants[id] else { continue }
            viewers[id]?.isActive = false
            state.stopNotifying(order: participant.order)
        }
        return ids.flatMap { left($0, reason: reason) }
    }
}

// MARK: - Events of the media plane

extension ChannelModel {
    /// Handles a peer's event. Events of unknown peers are ignored.
    package mutating func received(_ event: PeerEvent, from peer: PeerID) -> [Effect] {
        guard let id = participantOfPeer[peer] else { return [] }
        var effects: [Effect] = []
        switch event {
        case .connected(let transport):
            guard let participant = participants[id], !participant.isTransportUp else { return [] }
            participants[id]?.isTransportUp = true
            participants[id]?.member.transport = transport
            guard participant.isActive else { return [] }
            connected(id, into: &effects)
            if participant.role.publishes { changed(into: &effects) }
        case .closed(let reason):
            return left(id, reason: .transport(reason))
        case .trackStarted(let mid, let codec):
            updatePublication(of: id, mid: mid, codec: codec, isActive: true, into: &effects)
        case .trackPaused(let mid):
            updatePublication(of: id, mid: mid, codec: nil, isActive: false, into: &effects)
        case .silenceChanged(let isSilent):
            silenceChanged(of: id, isSilent: isSilent, into: &effects)
        case .speech(let mid, let isSpeaking):
            speechChanged(of: id, in: mid, isSpeaking: isSpeaking, into: &effects)
        case .layerSwitched(let slot, let current, let previous, let isRequested):
            layerSwitched(in: slot, of: id, from: previous, to: current, isRequested: isRequested, into: &effects)
        case .unusedLayers(let mid, let rids):
            guard participants[id]?.publications.contains(where: { $0.mid == mid }) == true else { return [] }
            effects.append(.unusedLayersChanged(id, mid: mid, rids: rids))
        case .transportChanged(let transport):
            participants[id]?.member.transport = transport
        case .networkChanged(let level):
            networkChanged(of: id, to: level, into: &effects)
        case .qualityChanged(let quality):
            qualityChanged(of: id, to: quality, into: &effects)
        case .setupAdvanced(let setup):
            setupAdvanced(of: id, to: setup, peer, into: &effects)
        case .formatUnsupported(let slot, let codec):
            formatUnsupported(codec, in: slot, of: id, into: &effects)
        // The owner of the model handles them.
        case .data, .dataEnded, .sourceLost: break
        }
        return effects
    }

    private mutating func updatePublication(
        of id: ParticipantID,
        mid: MID,
        codec: CodecName?,
        isActive: Bool,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id],
            let index = participant.negotiatedPublications.firstIndex(where: { $0.mid == mid })
        else { return }
        var publication = participant.negotiatedPublications[index]
        publication.isActive = isActive
        publication.codec = codec ?? publication.codec
        guard publication != participant.negotiatedPublications[index] else { return }
        participants[id]?.negotiatedPublications[index] = publication
        if isActive { participants[id]?.begun.insert(publication.kind) }
        guard participant.role.publishes else { return }
        announceFlow(since: participant, into: &effects)
        changed(into: &effects)
    }
}
