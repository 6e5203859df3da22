package import ChannelTypes
import MediaTypes

// The one place where commands are permitted and performed, whoever asks for them.

extension ChannelModel {
    /// Performs a command. Parts of it that are about participants of other nodes are effects for those nodes.
    ///
    /// - Throws: ``RoomError/forbidden`` for an initiator that may not ask for it, ``RoomError/channelUnknown`` without
    ///   participants, ``RoomError/participantUnknown`` for unknown participants and those that the command is not for, and what
    ///   the command's own rules refuse. Nothing has changed then.
    package mutating func perform(
        _ command: ChannelCommand,
        by initiator: Initiator
    ) throws(RoomError) -> (reply: ChannelReply, effects: [Effect]) {
        try checkPermission(of: initiator, for: command)
        let kind = initiator.kind(for: command)
        if kind == .moderator, case .member(let id) = initiator { try takeModeration(of: id) }
        let effects: [Effect]
        switch command {
        case .end(let selection, let cause):
            let ids = ownOnly(members(selection), by: initiator)
            if kind == .moderator, ids.isEmpty { throw .participantUnknown }
            return (ChannelReply(participants: ids), leftTogether(ids, reason: cause.reason))
        case .push(let json, let selection): return try push(json, to: selection, by: initiator)
        case .setRole(let role, of: .user(let user)): return reply(try roleRequested(role, ofUser: user, by: kind))
        case .setRole(let role, of: .participant(let id)):
            effects = try roleRequested(role, of: id, by: kind)
        case .setMuted(let isMuted, let kinds, of: .user(let user)):
            return reply(try muteRequested(isMuted, kinds, ofUser: user))
        case .setMuted(let isMuted, let kinds, of: .participant(let id)):
            effects = try muteRequested(isMuted, kinds, of: id, by: kind)
        case .mute(let selection, let kinds): return reply(try mute(selection, kinds, by: initiator))
        case .raiseHand(let isRaised, let id): effects = try handRequested(isRaised, of: id)
        case .subscribe(let isSubscribed, let selection, receiver: .user(let user)):
            return reply(try subscriptionRequested(isSubscribed, selection, ofUser: user))
        case .subscribe(let isSubscribed, let selection, receiver: .participant(let id)):
            effects = try subscriptionRequested(isSubscribed, selection, by: id)
        case .requestLayer(let layer, let receiver, let sender):
            effects = try layerRequested(layer, by: receiver, of: sender)
        case .requestHeight(let height, let receiver, let sender):
            effects = try heightRequested(height, by: receiver, of: sender)
        case .requestSpotlightLayers(let layers, let receiver, let sender):
            effects = try spotlightLayersRequested(layers, by: receiver, of: sender)
        case .limitSending(let id, let bitsPerSecond):
            effects = try sendingLimited(to: id, bitsPerSecond: bitsPerSecond)
        case .requestKeyFrames(let id): effects = try keyFramesRequested(of: id)
        case .setMetadata(let json, let id, let push): effects = try metadataChanged(to: json, of: id, push: push)
        case .extendAccess(let id, let expiry): effects = try accessRefreshed(of: id, until: expiry)
        case .focus(let id, let isFixed):
            effects = try focusRequested(id, isFixed: isFixed, isTold: initiator == .node)
        case .unfocus(let id): effects = try unfocusRequested(id, isTold: initiator == .node)
        case .setSpotlightNumber(let number): effects = try spotlightNumberChanged(to: number)
        case .createFilter(let filter, let scope): effects = try filterCreated(filter, in: scope)
        case .updateFilter(let filter, let scope, let expected):
            effects = try filterUpdated(filter, in: scope, expected: expected)
        case .deleteFilter(let name, let scope, let expected):
            effects = try filterDeleted(name, in: scope, expected: expected)
        }
        return (ChannelReply(participants: command.participant.map { [$0] } ?? []), effects)
    }

    /// Operators may ask for everything, members for what is about themselves, moderators for some that is about others, and other
    /// nodes for their part of an operator's command, which is about participants of this node.
    private func checkPermission(of initiator: Initiator, for command: ChannelCommand) throws(RoomError) {
        switch initiator {
        case .operator: break
        case .member(let id):
            if command.permission.contains(.member), command.participant == id { return }
            guard command.permission.contains(.moderators) else { throw .forbidden }
            guard participants[id]?.moderates == true else { throw .moderatorsOnly }
        case .node:
            guard command.permission.contains(.nodes) else { throw .forbidden }
            if let id = command.participant, participants[id]?.isRemote ?? true { throw .participantUnknown }
        }
    }

    private func reply(
        _ result: (changed: [ParticipantID], effects: [Effect])
    ) -> (reply: ChannelReply, effects: [Effect]) {
        (ChannelReply(participants: result.changed), result.effects)
    }

    // MARK: Selections

    /// The participants of a selection, in the order of joining.
    func members(_ selection: ChannelCommand.Selection) -> [ParticipantID] {
        switch selection {
        case .all: members()
        case .role(let role): members(role: role)
        case .user(let user): members(clientID: user)
        case .participants(let ids): ids.filter { participants[$0] != nil }
        }
    }

    /// The participants of this node when another node asks; it has asked the others itself.
    func ownOnly(_ ids: [ParticipantID], by initiator: Initiator) -> [ParticipantID] {
        initiator == .node ? ids.filter { participants[$0]?.isRemote == false } : ids
    }

    /// - Throws: ``RoomError/channelUnknown``, and ``RoomError/participantUnknown`` when a named participant is not connected.
    private func push(
        _ json: String,
        to selection: ChannelCommand.Selection,
        by initiator: Initiator
    ) throws(RoomError) -> (reply: ChannelReply, effects: [Effect]) {
        guard state.session != nil else { throw .channelUnknown }
        let ids = ownOnly(members(selection), by: initiator).filter { participants[$0]?.isConnected == true }
        if case .participants = selection, ids.isEmpty, initiator != .node { throw .participantUnknown }
        return (ChannelReply(participants: ids), push(json, to: ids))
    }

    func push(_ json: String, to ids: [ParticipantID]) -> [Effect] {
        var own: [ParticipantID] = []
        var ofOthers: [NodeIncarnation: [ParticipantID]] = [:]
        for id in ids {
            guard let participant = participants[id] else { continue }
            if !participant.isRemote {
                own.append(id)
            } else if participant.agent.signaling == .sora {
                ofOthers[participant.location.node, default: []].append(id)
            }
        }
        let requests = ofOthers.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { Effect.request(.push(json: json, to: .participants($0.value)), of: $0.key) }
        return (own.isEmpty ? [] : [.push(json, to: own)]) + requests
    }

    // MARK: Key frames

    /// - Throws: ``RoomError/participantUnknown`` unless it is active.
    private func keyFramesRequested(of id: ParticipantID) throws(RoomError) -> [Effect] {
        guard let participant = participants[id], participant.isActive else { throw .participantUnknown }
        guard !participant.isRemote else {
            return [.request(.requestKeyFrames(of: id), of: participant.location.node)]
        }
        return [.requestKeyFrames(participant.peer, location: participant.location)]
    }
}
