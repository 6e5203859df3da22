public import MediaTypes
public import Wire

// MARK: - Coming

extension RoomModel {
    /// Takes a place for a newcomer. Until ``setupCompleted(_:publications:slots:assigned:isToldNews:)`` it
    /// subscribes to nothing and nobody sees it. Returns the home loop that its peer has to live on.
    ///
    /// - Parameter session: the channel's session from now on if it has none.
    public mutating func joinRequested(
        _ request: JoinRequest,
        id: ParticipantID,
        peer: PeerID,
        session: ChannelSessionID
    ) throws(RoomError) -> Int {
        precondition(participants[id] == nil && participantOfPeer[peer] == nil, "identifiers are unique")
        do throws(RoomError) {
            try checkAdmission(request)
        } catch {
            if let refusal = JoinRefusal(error) { admissions.refused[refusal, default: 0] += 1 }
            throw error
        }
        let filters = try FilterList(request.filters)
        var channel = channels.removeValue(forKey: request.channel) ?? Channel()
        if channel.session == nil {
            let description = ChannelSession(id: session, channel: request.channel, createdAt: now.unixNanoseconds)
            channel.session = Channel.Session(description: description)
            sessionCount += 1
        }
        let home = placement.join(near: channel.homes)
        var participant = Participant(request, id: id, peer: peer, home: home, order: orderNext, at: now)
        orderNext += 1
        awaitSetup(&participant)
        networks.joined(participant)
        channel.add(participant)
        channels[request.channel] = channel
        participantOfPeer[peer] = id
        participants[id] = participant
        if request.role.watches {
            viewers[id] = Viewer(request, id: id, peer: peer, home: home, filters: filters)
        }
        return home
    }

    /// The media plane knows the newcomer's peer: it takes part from now on.
    ///
    /// Throws ``RoomError/endedDuringSetup`` when the participant is gone already; the peer is then the caller's to
    /// end.
    /// - Parameters:
    ///   - slots: those for whomever it follows, in the order of its description.
    ///   - assigned: those for single senders' tracks.
    ///   - decodedVideo: the video codecs that it can play; `nil` where its description does not say.
    ///   - isToldNews: whether notifications for it reach anybody.
    public mutating func setupCompleted(
        _ id: ParticipantID,
        publications: [Publication],
        slots: [Slot],
        assigned: [SlotAssignment] = [],
        decodedVideo: Set<CodecName>? = nil,
        isToldNews: Bool = true
    ) throws(RoomError) -> [Decision] {
        guard var participant = participants[id] else { throw .endedDuringSetup }
        precondition(!participant.isActive, "setup completes once")
        let name = participant.channel
        participant.decodedVideo = decodedVideo
        if let decodedVideo { channels[name]?.decoders.add(1, decodedVideo) }
        awaitSetup(&participant)
        participants[id] = participant
        participants[id]?.activate(participant.role.publishes ? publications : [])
        if !isToldNews { participants[id]?.receivesNotifications = false }
        var decisions: [Decision] = []
        if participant.role.watches {
            channels[name]?.activeViewerCount += 1
            viewers[id]?.isActive = true
            viewers[id]?.adopt(slots)
            startFollowing(participant)
            if let spotlight = participant.spotlight {
                channels[name]?.session?.stage.joined(with: spotlight)
                settleStage(of: name, into: &decisions)
            }
            add(assigned, to: id)
            subscribe(id, into: &decisions)
        }
        if participant.role.publishes, let followers = channels[name]?.followers[id] {
            subscribeAll(followers, into: &decisions)
        }
        if participant.isTransportUp { connected(id, into: &decisions) }
        changed(name, into: &decisions)
        return decisions
    }

    private mutating func startFollowing(_ participant: Participant) {
        let (id, order) = (participant.id, participant.order)
        switch participant.following {
        case .currentPublisher:
            channels[participant.channel]?.followersOfCurrent.insert(id, order: order)
        case .participant(let target):
            // A target that left meanwhile gets no entry: nothing would ever take it away again.
            guard participants[target] != nil else { return }
            channels[participant.channel]?.followers[target, default: Roster()].insert(id, order: order)
        case .everyone: break
        }
    }

    /// Both its media and its transport are there: others see and hear of it.
    private mutating func connected(_ id: ParticipantID, into decisions: inout [Decision]) {
        guard var participant = participants[id] else { return }
        participant.connectedAt = now
        endSetup(&participant)
        networks.connected(participant)
        enterAgenda(&participant)
        participants[id] = participant
        viewers[id]?.hears = participant.receivesNotifications
        let (name, order) = (participant.channel, participant.order)
        let others = participant.receivesNotifications ? membersAnnounced(to: participant) : []
        channels[name]?.connected.insert(id, order: order)
        if participant.receivesNotifications { channels[name]?.hearers.insert(id, order: order) }
        channels[name]?.counts.add(1, participant.role)
        if participant.role.publishes { wentLive(participant, into: &decisions) }
        if let session = channels[name]?.session, !session.isAnnounced {
            channels[name]?.session?.isAnnounced = true
            decisions.append(.report(.sessionCreated(session.description, unixNanoseconds: now.unixNanoseconds)))
        }
        announceCreated(participant, others: others, into: &decisions)
        tellBlocked(to: participant, into: &decisions)
        tellRefusedCodecs(to: participant, into: &decisions)
        for mid in participant.speaking { spoke(id, into: mid, isSpeaking: true, into: &decisions) }
    }

    private mutating func wentLive(_ participant: Participant, into decisions: inout [Decision]) {
        let id = participant.id
        channels[participant.channel]?.live.append(id)
        if let followers = channels[participant.channel]?.followersOfCurrent {
            subscribeAll(followers, into: &decisions)
        }
        streamChanged(of: participant, into: &decisions)
    }
}

// MARK: - Going

extension RoomModel {
    /// A participant's owner, an operator or the node ends it. Nothing happens when it is gone already.
    public mutating func left(_ id: ParticipantID, reason: EndReason) -> [Decision] {
        guard var participant = participants.removeValue(forKey: id) else { return [] }
        if let abandoned = AbandonedSetup(reason) { admissions.abandoned[abandoned, default: 0] += 1 }
        endSetup(&participant)
        networks.left(participant)
        let name = participant.channel
        participantOfPeer[participant.peer] = nil
        viewers[id] = nil
        placement.leave(participant.home)
        leaveAgenda(participant)
        let companions = channels[name]?.bundles[participant.bundle] ?? []
        channels[name]?.remove(participant)
        var decisions: [Decision] = []
        if participant.role.publishes { forgetPublisher(participant, companions, into: &decisions) }
        // While it is being set up, whoever does that finds it gone and ends the peer.
        if participant.isActive, !reason.isOfTransport {
            decisions.append(.removePeer(participant.peer, home: participant.home))
        }
        decisions.append(.ended(id, reason))
        announceEnded(participant, companions, reason, into: &decisions)
        if channels[name]?.members.isEmpty == true { endSession(of: name, into: &decisions) }
        if participant.isActive { changed(name, into: &decisions) }
        if channels[name]?.isUnused == true { channels[name] = nil }
        return decisions
    }

    private mutating func forgetPublisher(
        _ participant: Participant,
        _ companions: Set<ParticipantID>,
        into decisions: inout [Decision]
    ) {
        let (id, name) = (participant.id, participant.channel)
        if let orphans = channels[name]?.followers.removeValue(forKey: id) { subscribeAll(orphans, into: &decisions) }
        if let position = channels[name]?.live.firstIndex(of: id) {
            channels[name]?.live.remove(at: position)
            // The last one is what viewers see, the one before it what the last one sees if it watches too. Where
            // members share a bundle it may be an earlier one.
            if let channel = channels[name],
                position >= channel.live.count - 1 || channel.bundles.count < channel.members.count
            {
                subscribeAll(channel.followersOfCurrent, into: &decisions)
            }
        }
        channels[name]?.session?.verdicts[id] = nil
        streamGone(participant, companions, into: &decisions)
        leaveStage(participant, into: &decisions)
    }

    private mutating func endSession(of name: ChannelName, into decisions: inout [Decision]) {
        guard let session = channels[name]?.session else { return }
        channels[name]?.session = nil
        sessionCount -= 1
        guard session.isAnnounced else { return }
        decisions.append(.report(.sessionDestroyed(session.description, unixNanoseconds: now.unixNanoseconds)))
    }

    /// Ends all of a channel that fit, in the order of joining.
    public mutating func end(
        in name: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) -> (ended: [ParticipantID], decisions: [Decision]) {
        let ended = members(of: name, role: role, clientID: clientID)
        return (ended, leftTogether(ended, reason: reason))
    }

    /// Ends every participant, in the order of joining.
    public mutating func shutdownRequested() -> [Decision] {
        isDraining = true
        let everybody = participants.values.sorted { $0.order < $1.order }.map(\.id)
        return leftTogether(everybody, reason: .shutdown)
    }

    /// Those who leave together neither hear nor lose anything of each other, which would be the square of their
    /// number.
    mutating func leftTogether(_ ids: [ParticipantID], reason: EndReason) -> [Decision] {
        for id in ids {
            guard let participant = participants[id] else { continue }
            viewers[id]?.isActive = false
            channels[participant.channel]?.stopTelling(order: participant.order)
        }
        return ids.flatMap { left($0, reason: reason) }
    }

    /// The participants of a channel that fit, in the order of joining.
    public func members(of name: ChannelName, role: Role? = nil, clientID: String? = nil) -> [ParticipantID] {
        (channels[name]?.members ?? Roster()).filter { id in
            guard role != nil || clientID != nil, let member = participants[id]?.member else { return true }
            return (role ?? member.role) == member.role && (clientID ?? member.clientID) == member.clientID
        }
    }
}

// MARK: - What the media plane says

extension RoomModel {
    /// What the media plane reports of a peer. Events of peers that are gone are ignored.
    public mutating func received(_ event: PeerEvent, from peer: PeerID) -> [Decision] {
        guard let id = participantOfPeer[peer] else { return [] }
        var decisions: [Decision] = []
        switch event {
        case .connected:
            guard let participant = participants[id], !participant.isTransportUp else { return [] }
            participants[id]?.isTransportUp = true
            guard participant.isActive else { return [] }
            connected(id, into: &decisions)
            if participant.role.publishes { changed(participant.channel, into: &decisions) }
        case .closed(let reason):
            return left(id, reason: .transport(reason))
        case .trackStarted(let mid, let codec):
            updatePublication(of: id, mid: mid, codec: codec, isActive: true, into: &decisions)
        case .trackPaused(let mid):
            updatePublication(of: id, mid: mid, codec: nil, isActive: false, into: &decisions)
        case .speech(let mid, let isSpeaking):
            spoke(id, into: mid, isSpeaking: isSpeaking, into: &decisions)
        case .layerSwitched(let slot, let current, let previous, let isWished):
            layerSwitched(in: slot, of: id, from: previous, to: current, isWished: isWished, into: &decisions)
        case .networkChanged(let level):
            networkChanged(of: id, to: level, into: &decisions)
        case .formatUnsupported(let slot, let codec):
            formatUnsupported(codec, in: slot, of: id, into: &decisions)
        }
        return decisions
    }

    private mutating func updatePublication(
        of id: ParticipantID,
        mid: MID,
        codec: CodecName?,
        isActive: Bool,
        into decisions: inout [Decision]
    ) {
        guard let participant = participants[id],
            let index = participant.publications.firstIndex(where: { $0.mid == mid })
        else { return }
        var publication = participant.publications[index]
        publication.isActive = isActive
        publication.codec = codec ?? publication.codec
        guard publication != participant.publications[index] else { return }
        participants[id]?.publications[index] = publication
        changed(participant.channel, into: &decisions)
    }
}
