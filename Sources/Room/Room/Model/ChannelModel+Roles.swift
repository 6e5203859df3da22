import Admission
package import ChannelTypes
import MediaTypes
package import Wire

// Profiles, roles and mute. A member's ``Member/role`` is what it does in the channel: `recvonly` for a member of the
// audience, whatever its transport negotiated. So a change of the role needs no negotiation with the member itself.

extension ChannelModel {
    /// The channel's profile. Without members that know profiles, everyone is announced, as in a communication.
    package var profile: ChannelProfile { state.session?.profile ?? .communication }

    /// Whether the newcomer requests another profile than the channel has.
    func isProfileMismatched(by request: JoinRequest) -> Bool {
        guard let requested = request.options?.profile, let profile = state.session?.profile else { return false }
        return requested != profile
    }

    /// What a newcomer does in the channel first. Who only sends cannot be audience.
    func firstRole(of request: JoinRequest) -> Role {
        if request.role == .sendrecv, isHeldInAudience(request) { return .recvonly }
        guard request.role == .sendrecv, let options = request.options, options.role == .audience,
            (state.session?.profile ?? options.profile) == .interactive
        else { return request.role }
        return .recvonly
    }

    /// Fixes the profile for as long as the channel has members. Members that do not know profiles fit any.
    mutating func fixProfile(for request: JoinRequest) {
        guard let options = request.options, state.session?.profile == nil else { return }
        state.session?.profile = options.profile ?? .communication
        registerChanged()
    }

    /// Makes an active member host or audience. It does nothing when the member has the role.
    ///
    /// - Throws: ``RoomError/participantUnknown`` unless it is active, ``RoomError/rolesUnused``,
    ///   ``RoomError/roleUnavailable``, ``RoomError/publishingForbidden``, ``RoomError/publishersFull``,
    ///   ``RoomError/changesTooFrequent``, and ``RoomError/audienceByOperator`` when an operator keeps the member's user in
    ///   the audience.
    package mutating func roleRequested(
        _ role: ChannelRole,
        of id: ParticipantID,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> [Effect] {
        guard let participant = participants[id], participant.isActive else { throw .participantUnknown }
        guard profile == .interactive else { throw .rolesUnused }
        guard participant.channelRole != role else { return [] }
        guard participant.terms.negotiatedRole == .sendrecv else { throw .roleUnavailable }
        if initiator == .member, role == .host, hold(of: participant.member.clientID).isAudience {
            throw .audienceByOperator
        }
        return try change(participant, to: role, by: initiator)
    }

    /// The participants of this node that could publish and do not at present.
    func possibleHosts(_ subject: ChannelCommand.Subject) -> [ParticipantID] {
        let ids =
            switch subject {
            case .participant(let id): [id]
            case .user(let user): members(clientID: user)
            }
        return ids.filter { id in
            participants[id].map { !$0.isRemote && !$0.role.publishes && $0.terms.negotiatedRole == .sendrecv } ?? false
        }
    }

    /// Changes the role of a participant that may be setting up or interrupted.
    mutating func change(
        _ participant: Participant,
        to role: ChannelRole,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> [Effect] {
        let id = participant.id
        if participant.isRemote {
            return [.request(.setRole(role, of: .participant(id)), of: participant.location.node)]
        }
        if role == .host {
            guard participant.mayPublish else { throw .publishingForbidden }
            guard state.publishers.count < limits.publishersPerChannelMax else { throw .publishersFull }
        }
        var effects: [Effect] = []
        if initiator == .member { try takeChange(of: id, into: &effects) }
        setHand(false, of: id, into: &effects)
        guard let before = participants[id] else { return effects }
        switch role {
        case .host:
            becameHost(before, into: &effects)
            tellHands(toHost: id, into: &effects)
        case .audience: becameAudience(before, into: &effects)
        }
        if participant.isConnected, participant.receivesNotifications, participant.terms.options != nil {
            effects.append(.notify(.roleChanged(role, by: initiator), to: [id]))
        }
        reportRole(of: id, by: initiator, into: &effects)
        if role == .audience {
            participants[id]?.hasPublished = false
            participants[id]?.isSilent = false
        }
        reportMedia(of: id, into: &effects)
        changed(into: &effects)
        return effects
    }

    mutating func becameHost(_ before: Participant, into effects: inout [Effect]) {
        let id = before.id
        state.publishers.insert(id, order: before.order)
        setRole(.sendrecv, of: before)
        guard let participant = participants[id] else { return }
        if participant.isConnected { wentLive(participant, into: &effects) }
        if let followers = state.followers[id] { updateSlots(of: followers, into: &effects) }
        guard participant.isConnected else { return }
        announce(participant, into: &effects)
        updateFocus(afterComing: id, into: &effects)
        for mid in participant.speaking { speechChanged(of: id, in: mid, isSpeaking: true, into: &effects) }
    }

    mutating func becameAudience(_ before: Participant, into effects: inout [Effect]) {
        let id = before.id
        state.publishers.remove(order: before.order)
        setRole(.recvonly, of: before)
        if let followers = state.followers[id] { updateSlots(of: followers, into: &effects) }
        stopStream(of: before, bundleMembers(of: before), into: &effects)
        announceGone(before, bundleMembers(of: before), .becameAudience, into: &effects)
        participants[id]?.isAnnounced = false
    }

    private mutating func setRole(_ role: Role, of participant: Participant) {
        participants[participant.id]?.member.role = role
        guard participant.isConnected else { return }
        state.counts.add(-1, participant.role)
        state.counts.add(1, role)
    }

    /// Mutes kinds of the media of participants that publish until they unmute themselves. Those that do not know the channel
    /// extension could not, and are left as they are.
    ///
    /// - Parameter user: the moderator's, which is left out of a selection of all.
    /// - Throws: ``RoomError/participantUnknown`` when nobody is selected by name.
    mutating func mute(
        _ selection: ChannelCommand.Selection,
        _ kinds: Set<MediaKind>,
        by initiator: Initiator
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        var ids = ownOnly(members(selection), by: initiator)
        if case .user = selection, ids.isEmpty { throw .participantUnknown }
        if case .member(let moderator) = initiator, selection == .all {
            let user = participants[moderator]?.member.clientID
            ids.removeAll { participants[$0]?.member.clientID == user }
        }
        var (changed, effects) = ([ParticipantID](), [Effect]())
        var ofOthers: [NodeIncarnation: [ParticipantID]] = [:]
        for id in ids {
            guard let participant = participants[id], participant.isActive, participant.role.publishes,
                participant.terms.options != nil, !kinds.isSubset(of: participant.mutedByModerator)
            else { continue }
            changed.append(id)
            if participant.isRemote {
                ofOthers[participant.location.node, default: []].append(id)
                continue
            }
            for kind in MediaKind.allCases where kinds.contains(kind) {
                guard let before = participants[id] else { continue }
                effects += mute(true, kind, of: before, by: .moderator)
            }
        }
        for (node, ids) in ofOthers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            effects.append(.request(.mute(.participants(ids), kinds: kinds), of: node))
        }
        return (changed, effects)
    }

    /// Mutes kinds of an active member's media, or unmutes them. An operator's mute also stops forwarding, and the member
    /// cannot undo it.
    ///
    /// - Throws: ``RoomError/participantUnknown`` unless it is active, ``RoomError/mutedByOperator``.
    package mutating func muteRequested(
        _ isMuted: Bool,
        _ kinds: Set<MediaKind>,
        of id: ParticipantID,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> [Effect] {
        guard let before = participants[id], before.isActive else { throw .participantUnknown }
        guard initiator == .operator || isMuted || before.mutedByOperator.isDisjoint(with: kinds) else {
            throw .mutedByOperator
        }
        var effects: [Effect] = []
        for kind in MediaKind.allCases where kinds.contains(kind) {
            guard let participant = participants[id] else { continue }
            effects += mute(isMuted, kind, of: participant, by: initiator)
        }
        return effects
    }

    /// Mutes a participant that may be setting up or interrupted.
    mutating func mute(
        _ isMuted: Bool,
        _ kind: MediaKind,
        of before: Participant,
        by initiator: Initiator.Kind
    ) -> [Effect] {
        let id = before.id
        if before.isRemote {
            let command = ChannelCommand.setMuted(isMuted, kinds: [kind], of: .participant(id))
            return [.request(command, of: before.location.node)]
        }
        var after = before
        switch initiator {
        case .member:
            if isMuted {
                after.mutedByItself.insert(kind)
            } else {
                after.mutedByItself.remove(kind)
                after.mutedByModerator.remove(kind)
            }
        case .moderator: after.mutedByModerator.insert(kind)
        case .operator:
            if isMuted {
                after.mutedByOperator.insert(kind)
            } else {
                after.mutedByOperator.remove(kind)
                after.mutedByModerator.remove(kind)
            }
        }
        guard
            after.mutedByItself != before.mutedByItself || after.mutedByOperator != before.mutedByOperator
                || after.mutedByModerator != before.mutedByModerator
        else { return [] }
        participants[id] = after
        if initiator == .member { ownStateChanged(since: before) }
        var effects: [Effect] = []
        if after.stopped != before.stopped {
            updateSlots(thatMayPlay: id, into: &effects)
            if kind == .audio { updateSpeech(of: id, into: &effects) }
        }
        if initiator != .member {
            if after.isConnected, after.receivesNotifications, after.terms.options != nil {
                effects.append(.notify(.muted(kind, isMuted: isMuted, by: initiator), to: [id]))
            }
        }
        announceOwnState(since: before, into: &effects)
        return effects
    }

    /// Updates all slots that may play a live sender.
    private mutating func updateSlots(thatMayPlay sender: ParticipantID, into effects: inout [Effect]) {
        guard participants[sender]?.isLive == true else { return }
        updateSlots(of: state.followersOfCurrent, into: &effects)
        if let followers = state.followers[sender] { updateSlots(of: followers, into: &effects) }
        for viewer in state.followersOfEveryone { updateSlots(of: viewer, from: sender, into: &effects) }
    }
}

// MARK: - Metadata

extension ChannelModel {
    /// A member replaces what notifications say of it from now on. Other nodes are told of it, and nobody else.
    ///
    /// - Parameters:
    ///   - json: JSON text.
    ///   - push: a JSON text for all connected members; `nil` to tell nobody.
    /// - Throws: ``RoomError/participantUnknown``, and ``RoomError/changesTooFrequent`` for a change that is pushed. Nothing
    ///   has changed then.
    package mutating func metadataChanged(
        to json: String,
        of id: ParticipantID,
        push: String?
    ) throws(RoomError) -> [Effect] {
        guard let before = participants[id] else { throw .participantUnknown }
        var effects: [Effect] = []
        if push != nil { try takeChange(of: id, into: &effects) }
        if before.member.updatedMetadataJSON != json {
            participants[id]?.member.updatedMetadataJSON = json
            if push == nil {
                ownStateChanged(since: before)
                announceOwnState(since: before, into: &effects)
            }
        }
        if let push { effects += self.push(push, to: members().filter { participants[$0]?.isConnected == true }) }
        return effects
    }
}
