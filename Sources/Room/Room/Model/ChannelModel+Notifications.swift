import Base
import ChannelTypes
import MediaTypes
import Speakers
import Wire

// Notifications. Members of one bundle are not notified of each other.

extension ChannelModel {
    /// The members that get notifications, except those of one bundle.
    private mutating func notified(except bundleMembers: Set<ParticipantID>) -> [ParticipantID] {
        workDone += state.notified.count
        return state.notified.filter { !bundleMembers.contains($0) }
    }

    /// The connected members that a newcomer is notified of.
    mutating func membersAnnounced(to newcomer: Participant) -> [Member] {
        let bundleMembers = state.bundles[newcomer.terms.bundle] ?? []
        workDone += state.connected.count
        return state.connected.compactMap { id in
            guard !bundleMembers.contains(id), let participant = participants[id], participant.isAnnounced
            else { return nil }
            return participant.member
        }
    }

    func bundleMembers(of participant: Participant) -> Set<ParticipantID> {
        state.bundles[participant.terms.bundle] ?? []
    }

    mutating func announceCreated(_ participant: Participant, others: [Member], into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        effects.append(.report(.connectionCreated(report)))
        announceToItself(participant, others: others, into: &effects)
        announce(participant, into: &effects)
    }

    /// Notifies only the participant itself that it is connected.
    func announceToItself(_ participant: Participant, others: [Member], into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        effects.append(.connected(participant.id))
        if participant.notifiesICEState {
            effects.append(.notify(.iceStateChanged(current: .connected, previous: .checking), to: [participant.id]))
        }
        guard participant.receivesNotifications else { return }
        effects.append(.notify(Self.created(report, others: others), to: [participant.id]))
    }

    private static func created(_ report: ConnectionReport, others: [Member]?) -> Notification.Content {
        .created(
            report.connection.member,
            minutes: report.minutes,
            session: report.connection.session,
            counts: report.counts,
            others: others
        )
    }

    /// Notifies others of a connected participant, unless nobody is to know of it: in an interactive channel only hosts
    /// are announced.
    mutating func announce(_ participant: Participant, into effects: inout [Effect]) {
        guard participant.terms.announces, profile == .communication || participant.role.publishes,
            let report = report(on: participant)
        else { return }
        participants[participant.id]?.isAnnounced = true
        let notified = notified(except: bundleMembers(of: participant))
        if !notified.isEmpty { effects.append(.notify(Self.created(report, others: nil), to: notified)) }
        userAppeared(participant, into: &effects)
    }

    /// Reports a connected participant's new role to operators.
    func reportRole(of id: ParticipantID, by initiator: Initiator.Kind, into effects: inout [Effect]) {
        guard let participant = participants[id], participant.isConnected, let report = report(on: participant) else {
            return
        }
        effects.append(.report(.roleChanged(report, by: initiator)))
    }

    /// Reports to operators that a participant lost its connection, or is back.
    func reportInterruption(of participant: Participant, into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        effects.append(.report(participant.isInterrupted ? .connectionInterrupted(report) : .connectionResumed(report)))
    }

    /// - Parameter isPrivate: whether only the participant itself is notified.
    mutating func announceUpdated(_ participant: Participant, isPrivate: Bool, into effects: inout [Effect]) {
        guard let report = report(on: participant) else { return }
        effects.append(.report(.connectionUpdated(report)))
        var notified = participant.receivesNotifications ? [participant.id] : []
        if participant.isAnnounced, !isPrivate {
            notified += self.notified(except: bundleMembers(of: participant))
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
        _ bundleMembers: Set<ParticipantID>,
        _ reason: EndReason,
        into effects: inout [Effect]
    ) {
        guard let report = report(on: participant) else { return }
        guard participant.isConnected else {
            effects.append(.report(.connectionFailed(report, reason)))
            return
        }
        effects.append(.report(.connectionDestroyed(report, reason)))
        announceGone(participant, bundleMembers, Departure(reason), into: &effects)
    }

    /// Notifies others that a participant is gone, if they were notified of it.
    ///
    /// - Parameter participant: as others were notified of it.
    mutating func announceGone(
        _ participant: Participant,
        _ bundleMembers: Set<ParticipantID>,
        _ departure: Departure,
        into effects: inout [Effect]
    ) {
        guard participant.isAnnounced, let report = report(on: participant) else { return }
        let notified = notified(except: bundleMembers)
        if !notified.isEmpty {
            let notification = Notification.Content.destroyed(
                participant.member,
                minutes: report.minutes,
                session: report.connection.session,
                counts: report.counts
            )
            effects.append(.notify(notification, to: notified))
        }
        userDisappeared(participant, departure, into: &effects)
    }

    /// Does nothing for a participant that left: members are notified that it left.
    mutating func announceFocus(
        of id: ParticipantID,
        isFocused: Bool,
        into effects: inout [Effect]
    ) {
        guard let participant = participants[id], participant.terms.announces else { return }
        // The participant itself is notified too.
        let notified = notified(except: bundleMembers(of: participant).subtracting([id]))
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

    /// The set-up of a participant's media has come further. That of a connection that takes its place again is not its first.
    mutating func setupAdvanced(
        of id: ParticipantID,
        to setup: PeerSetup,
        _ peer: PeerID,
        into effects: inout [Effect]
    ) {
        guard let firstPeer = participants[id]?.firstPeer, firstPeer == peer else { return }
        participants[id]?.setup.media = setup
        guard let participant = participants[id], participant.isConnected, let report = report(on: participant) else {
            return
        }
        effects.append(.report(.setupAdvanced(report)))
        reportMedia(of: id, into: &effects)
    }

    /// The quality of a participant's network has another level.
    mutating func qualityChanged(of id: ParticipantID, to quality: LinkQuality, into effects: inout [Effect]) {
        guard participants[id]?.quality != quality else { return }
        participants[id]?.quality = quality
        guard let participant = participants[id], participant.isConnected else { return }
        tellOfQuality(of: participant, into: &effects)
        tellOthersOfQuality(of: participant, into: &effects)
        if let report = report(on: participant) { effects.append(.report(.qualityChanged(report))) }
    }

    /// The most publishers times members that are told of their networks: each may have another level every two seconds.
    static let qualityDeliveriesMax = 2_500

    /// Others are told of the networks of publishers, where that are not too many messages.
    mutating func tellOthersOfQuality(of participant: Participant, into effects: inout [Effect]) {
        guard participant.isAnnounced, participant.isLive else { return }
        let observers = observers(of: participant)
        guard !observers.isEmpty, observers.count * state.live.count <= Self.qualityDeliveriesMax else { return }
        effects.append(.notify(.othersQuality(participant.member, participant.quality), to: observers))
    }

    /// The quality of a connected participant's network; `nil` before it is known.
    func knownQuality(of id: ParticipantID) -> LinkQuality? {
        guard let participant = participants[id], participant.isConnected, participant.quality != .unknown else {
            return nil
        }
        return participant.quality
    }

    /// Only the participant itself is told: a member with the channel extension, or the reader of a session's events.
    func tellOfQuality(of participant: Participant, into effects: inout [Effect]) {
        let readsSession = [.whip, .whep].contains(participant.agent.signaling)
        guard readsSession || participant.receivesNotifications && participant.terms.options != nil else { return }
        effects.append(.notify(.networkQuality(participant.quality), to: [participant.id]))
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

    /// A viewer whose description lists only what it was offered refused these codecs. It counts among those whose codecs are
    /// known from now on, so that the next sender that chooses none gets one that it can decode.
    mutating func codecsRefused(by id: ParticipantID, _ codecs: Set<CodecName>) {
        let refused = codecs.filter { $0.kind == .video }
        guard !refused.isEmpty, let participant = participants[id], participant.isActive, !participant.isRemote else {
            return
        }
        let all = Set(CodecName.allCases.filter { $0.kind == .video })
        let decoded = (participant.decodedVideo ?? all).subtracting(refused)
        if let before = participant.decodedVideo { state.decoders.add(-1, before) }
        state.decoders.add(1, decoded)
        participants[id]?.decodedVideo = decoded
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

    func report(on participant: Participant) -> ConnectionReport? {
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
