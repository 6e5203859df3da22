import MediaTypes
import Wire

// Who is told what. Members of one bundle are told nothing of each other.

extension RoomModel {
    /// Those of a channel that get notifications, but for the members of one bundle.
    private mutating func hearers(of name: ChannelName, except companions: Set<ParticipantID>) -> [ParticipantID] {
        let hearers = channels[name]?.hearers ?? Roster()
        workDone += hearers.count
        return hearers.filter { !companions.contains($0) }
    }

    /// The connected members that a newcomer is told of.
    mutating func membersAnnounced(to newcomer: Participant) -> [Member] {
        guard let channel = channels[newcomer.channel] else { return [] }
        let companions = channel.bundles[newcomer.bundle] ?? []
        workDone += channel.connected.count
        return channel.connected.compactMap { id in
            guard !companions.contains(id), let participant = participants[id], participant.announces
            else { return nil }
            return participant.member
        }
    }

    private func companions(of participant: Participant) -> Set<ParticipantID> {
        channels[participant.channel]?.bundles[participant.bundle] ?? []
    }

    mutating func announceCreated(_ participant: Participant, others: [Member], into decisions: inout [Decision]) {
        guard let report = report(on: participant) else { return }
        let news = { (others: [Member]?) in
            Notification.Content.created(
                participant.member,
                minutes: report.minutes,
                session: report.connection.session,
                counts: report.counts,
                others: others
            )
        }
        decisions.append(.report(.connectionCreated(report)))
        decisions.append(.connected(participant.id))
        if participant.hearsOfICE {
            decisions.append(.notify(.iceStateChanged(current: .connected, previous: .checking), to: [participant.id]))
        }
        if participant.receivesNotifications { decisions.append(.notify(news(others), to: [participant.id])) }
        guard participant.announces else { return }
        let hearers = hearers(of: participant.channel, except: companions(of: participant))
        if !hearers.isEmpty { decisions.append(.notify(news(nil), to: hearers)) }
    }

    /// - Parameter isPrivate: whether it alone is told.
    mutating func announceUpdated(_ participant: Participant, isPrivate: Bool, into decisions: inout [Decision]) {
        guard let report = report(on: participant) else { return }
        decisions.append(.report(.connectionUpdated(report)))
        var hearers = participant.receivesNotifications ? [participant.id] : []
        if participant.announces, !isPrivate {
            hearers += self.hearers(of: participant.channel, except: companions(of: participant))
        }
        guard !hearers.isEmpty else { return }
        let news = Notification.Content.updated(
            participant.member,
            minutes: report.minutes,
            session: report.connection.session,
            counts: report.counts
        )
        decisions.append(.notify(news, to: hearers))
    }

    /// A participant is gone from the channel's lists; its session is still there.
    mutating func announceEnded(
        _ participant: Participant,
        _ companions: Set<ParticipantID>,
        _ reason: EndReason,
        into decisions: inout [Decision]
    ) {
        guard let report = report(on: participant) else { return }
        guard participant.isConnected else {
            decisions.append(.report(.connectionFailed(report, reason)))
            return
        }
        decisions.append(.report(.connectionDestroyed(report, reason)))
        guard participant.announces else { return }
        let hearers = hearers(of: participant.channel, except: companions)
        guard !hearers.isEmpty else { return }
        let news = Notification.Content.destroyed(
            participant.member,
            minutes: report.minutes,
            session: report.connection.session,
            counts: report.counts
        )
        decisions.append(.notify(news, to: hearers))
    }

    /// Nothing is said of one that is leaving: that it left says more.
    mutating func announceFocus(
        of id: ParticipantID,
        in name: ChannelName,
        isFocused: Bool,
        into decisions: inout [Decision]
    ) {
        guard let participant = participants[id], participant.announces else { return }
        // It is told of itself.
        let hearers = hearers(of: name, except: companions(of: participant).subtracting([id]))
        guard !hearers.isEmpty else { return }
        let isFixed = channels[name]?.session?.stage.isFixed(id) ?? false
        let news: Notification.Content =
            isFocused
            ? .spotlightFocused(participant.member, isFixed: isFixed)
            : .spotlightUnfocused(participant.member, isFixed: isFixed)
        decisions.append(.notify(news, to: hearers))
    }

    /// It alone is told how its network is.
    func networkChanged(of id: ParticipantID, to level: Int, into decisions: inout [Decision]) {
        guard let participant = participants[id], participant.isConnected, participant.receivesNotifications else {
            return
        }
        decisions.append(.notify(.networkStatus(unstableLevel: level), to: [id]))
    }

    /// A slot's source sends what the receiver did not negotiate.
    func formatUnsupported(
        _ codec: CodecName,
        in mid: MID,
        of id: ParticipantID,
        into decisions: inout [Decision]
    ) {
        guard let participant = participants[id], participant.isConnected, participant.receivesNotifications,
            let source = viewers[id]?.slot(mid)?.source, let sender = participantOfPeer[source.peer]
        else { return }
        decisions.append(.notify(.codecUnsupported(codec, source: sender, destination: id), to: [id]))
    }

    /// A receiver's description has no codec of what these senders send. It alone is told, once its transport is up.
    mutating func codecsRefused(
        by id: ParticipantID,
        _ refused: [(sender: ParticipantID, codec: CodecName)]
    ) -> [Decision] {
        guard let participant = participants[id], participant.receivesNotifications else { return [] }
        let known = refused.filter { participants[$0.sender]?.channel == participant.channel }
        guard participant.isConnected else {
            viewers[id]?.refusedCodecs += known
            return []
        }
        return known.map { .notify(.codecUnsupported($0.codec, source: $0.sender, destination: id), to: [id]) }
    }

    /// Of codecs that a newcomer refused before it was told anything.
    mutating func tellRefusedCodecs(to newcomer: Participant, into decisions: inout [Decision]) {
        guard let refused = viewers[newcomer.id]?.refusedCodecs, !refused.isEmpty else { return }
        viewers[newcomer.id]?.refusedCodecs = []
        for (sender, codec) in refused where participants[sender] != nil {
            let news = Notification.Content.codecUnsupported(codec, source: sender, destination: newcomer.id)
            decisions.append(.notify(news, to: [newcomer.id]))
        }
    }

    /// Of what filters kept from a newcomer before it was told anything.
    mutating func tellBlocked(to newcomer: Participant, into decisions: inout [Decision]) {
        guard newcomer.receivesNotifications, let blocked = viewers[newcomer.id]?.blocked else { return }
        workDone += blocked.count
        for (sender, kind) in blocked {
            let news = Notification.Content.forwarding(
                isBlocked: true,
                kind: kind,
                source: sender,
                destination: newcomer.id
            )
            decisions.append(.notify(news, to: [newcomer.id]))
        }
    }

    private func report(on participant: Participant) -> ConnectionReport? {
        connection(participant).map { connection in
            ConnectionReport(
                connection: connection,
                duration: participant.duration(at: now),
                counts: counts(of: participant.channel),
                unixNanoseconds: now.unixNanoseconds
            )
        }
    }

    /// What the client says of itself to others changes.
    ///
    /// - Parameter json: JSON text; `nil` for nothing.
    public mutating func notifyMetadataChanged(of id: ParticipantID, to json: String?) throws(RoomError) -> [Decision] {
        guard participants[id] != nil else { throw .participantUnknown }
        participants[id]?.member.notifyMetadataJSON = json
        var decisions: [Decision] = []
        if let participant = participants[id], participant.isConnected {
            announceUpdated(participant, isPrivate: false, into: &decisions)
        }
        return decisions
    }
}
