import MediaTypes
import Wire

// Notifications. Members of one bundle are not notified of each other.

extension ChannelModel {
    /// The members that get notifications, except those of one bundle.
    private mutating func notified(except companions: Set<ParticipantID>) -> [ParticipantID] {
        workDone += state.notified.count
        return state.notified.filter { !companions.contains($0) }
    }

    /// The connected members that a newcomer is notified of.
    mutating func membersAnnounced(to newcomer: Participant) -> [Member] {
        let companions = state.bundles[newcomer.bundle] ?? []
        workDone += state.connected.count
        return state.connected.compactMap { id in
            guard !companions.contains(id), let participant = participants[id], participant.announces
            else { return nil }
            return participant.member
        }
    }

    private func companions(of participant: Participant) -> Set<ParticipantID> {
        state.bundles[participant.bundle] ?? []
    }

    mutating func announceCreated(_ participant: Participant, others: [Member], into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        let notification = { (others: [Member]?) in
            Notification.Content.created(
                participant.member,
                minutes: report.minutes,
                session: report.connection.session,
                counts: report.counts,
                others: others
            )
        }
        effects.append(.report(.connectionCreated(report)))
        effects.append(.connected(participant.id))
        if participant.notifiesICEState {
            effects.append(.notify(.iceStateChanged(current: .connected, previous: .checking), to: [participant.id]))
        }
        if participant.receivesNotifications {
            effects.append(.notify(notification(others), to: [participant.id]))
        }
        guard participant.announces else { return }
        let notified = notified(except: companions(of: participant))
        if !notified.isEmpty { effects.append(.notify(notification(nil), to: notified)) }
    }

    /// - Parameter isPrivate: whether only the participant itself is notified.
    mutating func announceUpdated(_ participant: Participant, isPrivate: Bool, into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        effects.append(.report(.connectionUpdated(report)))
        var notified = participant.receivesNotifications ? [participant.id] : []
        if participant.announces, !isPrivate {
            notified += self.notified(except: companions(of: participant))
        }
        guard !notified.isEmpty else { return }
        let notification = Notification.Content.updated(
            participant.member,
            minutes: report.minutes,
            session: report.connection.session,
            counts: report.counts
        )
        effects.append(.notify(notification, to: notified))
    }

    /// The participant is already removed from the channel's lists; the session still exists.
    mutating func announceEnded(
        _ participant: Participant,
        _ companions: Set<ParticipantID>,
        _ reason: EndReason,
        into effects: inout [Effect]
    ) {
        guard let report = report(on: participant) else { return }
        guard participant.isConnected else {
            effects.append(.report(.connectionFailed(report, reason)))
            return
        }
        effects.append(.report(.connectionDestroyed(report, reason)))
        guard participant.announces else { return }
        let notified = notified(except: companions)
        guard !notified.isEmpty else { return }
        let notification = Notification.Content.destroyed(
            participant.member,
            minutes: report.minutes,
            session: report.connection.session,
            counts: report.counts
        )
        effects.append(.notify(notification, to: notified))
    }

    /// Does nothing for a participant that left: members are notified that it left.
    mutating func announceFocus(
        of id: ParticipantID,
        isFocused: Bool,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id], participant.announces else { return }
        // The participant itself is notified too.
        let notified = notified(except: companions(of: participant).subtracting([id]))
        guard !notified.isEmpty else { return }
        let isFixed = state.session?.speakers.isFixed(id) ?? false
        let notification: Notification.Content =
            isFocused
            ? .spotlightFocused(participant.member, isFixed: isFixed)
            : .spotlightUnfocused(participant.member, isFixed: isFixed)
        effects.append(.notify(notification, to: notified))
    }

    /// Notifies only the participant of its own network.
    func networkChanged(of id: ParticipantID, to level: Int, into effects: inout [Effect]) {
        guard let participant = participants[id], participant.isConnected, participant.receivesNotifications else {
            return
        }
        effects.append(.notify(.networkStatus(unstableLevel: level), to: [id]))
    }

    /// A slot's source sends a codec that the receiver did not negotiate.
    func formatUnsupported(
        _ codec: CodecName,
        in mid: MID,
        of id: ParticipantID,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id], participant.isConnected, participant.receivesNotifications,
            let source = viewers[id]?.slot(mid)?.source, let sender = participantOfPeer[source.peer]
        else { return }
        effects.append(.notify(.codecUnsupported(codec, source: sender, destination: id), to: [id]))
    }

    /// A receiver's description has no codec of these senders. Only the receiver is notified, once it is connected.
    mutating func codecsRefused(
        by id: ParticipantID,
        _ refused: [Viewer.RefusedCodec]
    ) -> [Effect] {
        guard let participant = participants[id], participant.receivesNotifications else { return [] }
        let known = refused.filter { participants[$0.sender] != nil }
        guard participant.isConnected else {
            viewers[id]?.refusedCodecs += known
            return []
        }
        return known.map { .notify(.codecUnsupported($0.codec, source: $0.sender, destination: id), to: [id]) }
    }

    /// Notifies a newcomer of codecs that it refused before it was connected.
    mutating func notifyRefusedCodecs(to newcomer: Participant, into effects: inout [Effect]) {
        guard let refused = viewers[newcomer.id]?.refusedCodecs, !refused.isEmpty else { return }
        viewers[newcomer.id]?.refusedCodecs = []
        for refusal in refused where participants[refusal.sender] != nil {
            let notification = Notification.Content.codecUnsupported(
                refusal.codec,
                source: refusal.sender,
                destination: newcomer.id
            )
            effects.append(.notify(notification, to: [newcomer.id]))
        }
    }

    /// Notifies a newcomer of tracks that filters blocked before it was connected.
    mutating func notifyBlockedTracks(to newcomer: Participant, into effects: inout [Effect]) {
        guard newcomer.receivesNotifications, let blocked = viewers[newcomer.id]?.blocked else { return }
        workDone += blocked.count
        for (sender, kind) in blocked {
            let notification = Notification.Content.forwarding(
                isBlocked: true,
                kind: kind,
                source: sender,
                destination: newcomer.id
            )
            effects.append(.notify(notification, to: [newcomer.id]))
        }
    }

    private func report(on participant: Participant) -> ConnectionReport? {
        connection(participant).map { connection in
            ConnectionReport(
                connection: connection,
                duration: participant.duration(at: now),
                counts: state.counts,
                unixNanoseconds: now.unixNanoseconds
            )
        }
    }
}
