package import Admission
import Base
package import ChannelTypes
import MediaTypes

// Lost connections. A member that can resume keeps its place for a grace time: it stays in all lists, and viewers' slots
// of its tracks wait. A new connection that takes the place is a new peer of the same participant.

extension ChannelModel {
    /// How long a lost member keeps its place.
    var graceSeconds: Int64 { max(limits.resumeGrace.components.seconds, 0) }

    /// The token with which a member can take its place again; `nil` for a member that does not keep its place.
    func resumeToken(of id: ParticipantID) -> String? {
        guard graceSeconds > 0, let secret = participants[id]?.resumption?.secret else { return nil }
        return ResumeToken.text(id, secret: secret)
    }

    func isInterrupted(_ id: ParticipantID) -> Bool { participants[id]?.resumption?.interruption != nil }

    // MARK: Losing a connection

    /// Whether a participant that loses its connection keeps its place.
    private func keepsPlace(_ participant: Participant, _ reason: EndReason) -> Resumption.Loss? {
        guard let resumption = participant.resumption else { return nil }
        // A new connection that fails leaves the place as it was.
        if let interruption = resumption.interruption {
            switch reason {
            case .setupFailed, .unanswered, .unreachable, .signalingLost, .pongTimedOut, .transport:
                return interruption.loss
            default: return nil
            }
        }
        guard participant.isConnected, graceSeconds > 0 else { return nil }
        switch reason {
        case .signalingLost: return .signaling
        case .pongTimedOut: return .pongs
        case .transport(.consentExpired): return .transport
        // Clients of WHIP and WHEP close DTLS before their DELETE.
        case .transport(.closedByPeer) where participant.agent.signaling == .sora: return .transport
        default: return nil
        }
    }

    /// Nothing comes of a publisher any more, or something comes again. Its connection ends later, when its consent expires.
    mutating func silenceChanged(of id: ParticipantID, isSilent: Bool, into effects: inout [Effect]) {
        guard let before = participants[id], before.isLive, before.isSilent != isSilent, !isInterrupted(id) else {
            return
        }
        participants[id]?.isSilent = isSilent
        guard let participant = participants[id] else { return }
        reportInterruption(of: participant, into: &effects)
        announceInterruption(of: participant, into: &effects)
        changed(into: &effects)
    }

    /// Interrupts a participant instead of ending it, if it keeps its place.
    mutating func interruptedInstead(_ id: ParticipantID, reason: EndReason) -> [Effect]? {
        guard let participant = participants[id], let loss = keepsPlace(participant, reason) else { return nil }
        return interrupt(participant, loss, reason: reason)
    }

    /// Takes a participant's peer from it. Does nothing when it has none.
    private mutating func interrupt(
        _ participant: Participant,
        _ loss: Resumption.Loss,
        reason: EndReason
    ) -> [Effect] {
        let id = participant.id
        guard participantOfPeer[participant.peer] == id else { return [] }
        var effects: [Effect] = []
        for mid in participant.speaking { speechChanged(of: id, in: mid, isSpeaking: false, into: &effects) }
        participantOfPeer[participant.peer] = nil
        if participant.isActive {
            if !reason.isOfTransport {
                effects.append(.removePeer(participant.peer, location: participant.location))
            }
            if participant.role.watches { state.activeViewerCount -= 1 }
            if let decoded = participant.decodedVideo { state.decoders.add(-1, decoded) }
        }
        effects.append(.interrupted(id, reason))
        var after = participant
        cancelSetupTimeout(&after)
        after.speaking = []
        after.decodedVideo = nil
        after.isActive = false
        after.isTransportUp = false
        after.isSilent = false
        after.quality = .disconnected
        let isNew = participant.resumption?.interruption == nil
        if isNew {
            let (end, overflows) = now.second.addingReportingOverflow(graceSeconds)
            let endSecond = overflows ? Int64.max : end
            after.resumption?.interruption = Resumption.Interruption(
                loss: loss,
                endSecond: endSecond,
                deadlineSecond: graceDeadlines.insert(id, order: after.order, at: endSecond)
            )
        }
        participants[id] = after
        viewers[id]?.interrupted()
        if isNew, !participant.isSilent {
            reportInterruption(of: after, into: &effects)
            announceInterruption(of: after, into: &effects)
        }
        updateSlots(thatPlay: after, into: &effects)
        changed(into: &effects)
        return effects
    }

    /// The grace time of a participant is over.
    mutating func graceEnded(_ id: ParticipantID, into effects: inout [Effect]) {
        guard let participant = participants[id], let interruption = participant.resumption?.interruption else {
            return
        }
        // A new connection that is being set up may still take the place, until its own setup timeout.
        guard participantOfPeer[participant.peer] == nil else {
            let deadline = graceDeadlines.insert(id, order: participant.order, at: now.second + 1)
            participants[id]?.resumption?.interruption?.deadlineSecond = deadline
            return
        }
        participants[id]?.resumption = nil
        effects += left(id, reason: interruption.loss.reason)
    }

    // MARK: Taking the place again

    /// The participant whose place a newcomer takes: the one that its token names, or for WHIP the one that publishes as
    /// the same user. `nil` for an ordinary newcomer.
    package func resumable(by request: JoinRequest) -> ParticipantID? {
        guard !isAppMismatched(request.app) else { return nil }
        if let token = request.resumeToken.flatMap(ResumeToken.init) {
            guard let participant = participants[token.participant], let resumption = participant.resumption,
                resumption.matches(token.secret), isUser(of: participant, request), canResume(participant, request)
            else { return nil }
            return participant.id
        }
        guard request.agent.signaling == .whip, request.keepsPlace else { return nil }
        return duplicates(of: request).last { id in
            guard let participant = participants[id], participant.agent.signaling == .whip,
                participant.resumption != nil, canResume(participant, request)
            else { return false }
            return isInterrupted(id) || duplicatePolicy(of: request) == .replace
        }
    }

    /// Whether a newcomer is a participant's user. A client that does not choose a name again keeps it.
    private func isUser(of participant: Participant, _ request: JoinRequest) -> Bool {
        participant.terms.user == request.user || request.user == nil && participant.terms.user?.origin == .chosen
    }

    private func canResume(_ participant: Participant, _ request: JoinRequest) -> Bool {
        let end = participant.resumption?.interruption?.endSecond ?? .max
        return !participant.isRemote && participant.isConnected && now.second < end
            && participant.terms.negotiatedRole == request.role && participant.terms.following == request.following
            && (request.mayPublish || !participant.role.publishes)
    }

    /// A newcomer takes a participant's place, with a new peer. Its earlier connection ends, if it was not lost before.
    ///
    /// - Parameters:
    ///   - place: has the participant's identifier and order.
    ///   - secret: of the next token.
    package mutating func resumed(
        _ request: JoinRequest,
        at place: ParticipantLocation,
        secret: String
    ) -> [Effect] {
        guard let before = participants[place.participant] else { return [] }
        let effects = interrupt(before, .signaling, reason: .replaced)
        guard var participant = participants[place.participant] else { return effects }
        participant.peer = place.peer
        participant.location = place.location
        participant.receivesNotifications = request.receivesNotifications
        participant.notifiesICEState = request.notifiesICEState
        participant.agent = request.agent
        participant.mayPublish = request.mayPublish
        participant.mayModerate = request.mayModerate
        participant.member.notifyMetadataJSON = request.notifyMetadataJSON ?? participant.member.notifyMetadataJSON
        participant.quality = .unknown
        participant.resumption?.renew(secret)
        participantOfPeer[place.peer] = participant.id
        replaceExpiry(of: &participant, by: request.expiry)
        scheduleSetupTimeout(&participant)
        participants[participant.id] = participant
        viewers[participant.id]?.resumed(at: place)
        return effects
    }

    /// The transport of an interrupted participant's new connection is up.
    mutating func resumed(_ id: ParticipantID, into effects: inout [Effect]) {
        guard var participant = participants[id], let interruption = participant.resumption?.interruption else {
            return
        }
        graceDeadlines.cancel(order: participant.order, at: interruption.deadlineSecond)
        participant.resumption?.interruption = nil
        cancelSetupTimeout(&participant)
        participants[id] = participant
        viewers[id]?.receivesNotifications = participant.receivesNotifications
        announceToItself(participant, others: membersAnnounced(to: participant), into: &effects)
        tellOfChannel(participant, into: &effects)
        reportInterruption(of: participant, into: &effects)
        announceInterruption(of: participant, into: &effects)
        updateSlots(thatPlay: participant, into: &effects)
        notifyBlockedTracks(to: participant, into: &effects)
        notifyRefusedCodecs(to: participant, into: &effects)
        for mid in participant.speaking { speechChanged(of: id, in: mid, isSpeaking: true, into: &effects) }
    }

    /// Updates the slots that play, or would play, a participant's tracks.
    mutating func updateSlots(thatPlay participant: Participant, into effects: inout [Effect]) {
        guard participant.role.publishes else { return }
        if let followers = state.followers[participant.id] { updateSlots(of: followers, into: &effects) }
        updateSlots(of: state.followersOfCurrent, into: &effects)
        for viewer in state.followersOfEveryone { updateSlots(of: viewer, from: participant.id, into: &effects) }
    }

    /// Tells that a participant is interrupted, or is back: all members that get notifications, and viewers that follow it.
    mutating func announceInterruption(of participant: Participant, into effects: inout [Effect]) {
        guard participant.isAnnounced else { return }
        let content: Notification.Content =
            participant.isInterrupted ? .interrupted(participant.member) : .resumed(participant.member)
        let receivers = (observers(of: participant) + plainMembers(besides: participant) + followers(of: participant))
            .filter { !isInterrupted($0) }
        if !receivers.isEmpty { effects.append(.notify(content, to: receivers)) }
    }
}
