package import ChannelTypes
import MediaTypes
package import Wire

// What operators decide about a user: about all its connections, and those that it makes later.

extension ChannelModel {
    /// What operators decided about a user.
    func hold(of user: String) -> OperatorOverrides.Hold { state.session?.holds[user] ?? OperatorOverrides.Hold() }

    /// Whether an operator keeps the newcomer's user in the audience.
    func isHeldInAudience(_ request: JoinRequest) -> Bool {
        request.clientID.map { hold(of: $0).isAudience } ?? false
    }

    private mutating func changeHold(of user: String, _ change: (inout OperatorOverrides.Hold) -> Void) {
        let users = Set(participants.values.lazy.map(\.member.clientID))
        state.session?.holds.change(user, isPresent: users.contains, change)
        registerChanged()
    }

    /// An operator or moderator makes a user of an interactive channel host or audience. Audience stays so until one makes it
    /// host: a connection that only sends ends, and the user's own requests and later connections do not make it host.
    ///
    /// - Returns: the connections that changed or ended, and the effects.
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/rolesUnused``. For host also
    ///   ``RoomError/roleUnavailable``, ``RoomError/publishingForbidden`` and ``RoomError/publishersFull`` when none of the
    ///   user's connections can be host. Nothing has changed then.
    package mutating func roleRequested(
        _ role: ChannelRole,
        ofUser user: String,
        by initiator: Initiator.Kind = .operator
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        let ids = members(clientID: user)
        guard !ids.isEmpty else { throw .participantUnknown }
        guard profile == .interactive else { throw .rolesUnused }
        switch role {
        case .host: return try madeHost(ids, user, by: initiator)
        case .audience: return try madeAudience(ids, user, by: initiator)
        }
    }

    private mutating func madeHost(
        _ ids: [ParticipantID],
        _ user: String,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        var refusal: RoomError? = .roleUnavailable
        var (changed, effects) = ([ParticipantID](), [Effect]())
        for id in ids {
            guard let participant = participants[id] else { continue }
            guard participant.role.publishes || participant.terms.negotiatedRole == .sendrecv else { continue }
            // One that is interrupted or setting up may become host by itself once it is connected.
            guard !participant.role.publishes, participant.isActive else {
                refusal = nil
                continue
            }
            do throws(RoomError) {
                effects += try roleRequested(.host, of: id, by: initiator)
                changed.append(id)
                refusal = nil
            } catch {
                if refusal != nil { refusal = error }
            }
        }
        if let refusal { throw refusal }
        changeHold(of: user) { $0.isAudience = false }
        return (changed, effects)
    }

    private mutating func madeAudience(
        _ ids: [ParticipantID],
        _ user: String,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        changeHold(of: user) { $0.isAudience = true }
        var (changed, effects) = ([ParticipantID](), [Effect]())
        // First those that end, so that the user goes offline as one that became audience.
        for id in ids where participants[id]?.terms.negotiatedRole == .sendonly {
            effects += left(id, reason: .madeAudience)
            changed.append(id)
        }
        for id in ids {
            guard let participant = participants[id], participant.role.publishes else { continue }
            effects += try change(participant, to: .audience, by: initiator)
            changed.append(id)
        }
        return (changed, effects)
    }

    /// An operator mutes kinds of a user's media or unmutes them, also of connections that it makes later.
    ///
    /// - Returns: the connections that changed, and the effects.
    /// - Throws: ``RoomError/participantUnknown``.
    package mutating func muteRequested(
        _ isMuted: Bool,
        _ kinds: Set<MediaKind>,
        ofUser user: String
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        let ids = members(clientID: user)
        guard !ids.isEmpty else { throw .participantUnknown }
        changeHold(of: user) { hold in
            if isMuted { hold.muted.formUnion(kinds) } else { hold.muted.subtract(kinds) }
        }
        var (changed, effects) = ([ParticipantID](), [Effect]())
        for id in ids {
            let before = participants[id]?.stopped
            for kind in MediaKind.allCases where kinds.contains(kind) {
                guard let participant = participants[id] else { continue }
                effects += mute(isMuted, kind, of: participant, by: .operator)
            }
            if participants[id]?.stopped != before { changed.append(id) }
        }
        return (changed, effects)
    }

    /// What the connections of a user to this node that receive are subscribed to, in the order of joining.
    ///
    /// - Throws: ``RoomError/participantUnknown``.
    package func subscriptions(ofUser user: String) throws(RoomError) -> [ConnectionSubscription] {
        let ids = members(clientID: user)
        guard !ids.isEmpty else { throw .participantUnknown }
        return ids.compactMap { id in
            viewers[id].map { ConnectionSubscription(connection: id, subscription: $0.subscription) }
        }
    }

    /// An operator subscribes the connections of a user to tracks, or unsubscribes them. It is as a request of the user: a
    /// later one of either decides.
    ///
    /// - Returns: the connections that changed, with those of other nodes that receive, and the effects.
    /// - Throws: ``RoomError/participantUnknown``, ``RoomError/subscriptionsFull``. Nothing has changed then.
    package mutating func subscriptionRequested(
        _ isSubscribed: Bool,
        _ selection: SubscriptionSelection,
        ofUser user: String
    ) throws(RoomError) -> (changed: [ParticipantID], effects: [Effect]) {
        var changes: [(id: ParticipantID, subscription: Subscription)] = []
        for before in try subscriptions(ofUser: user) {
            var subscription = before.subscription
            try subscription.request(isSubscribed, selection)
            if subscription != before.subscription { changes.append((before.connection, subscription)) }
        }
        var effects: [Effect] = []
        for (id, subscription) in changes {
            viewers[id]?.subscription = subscription
            updateSlots(of: id, into: &effects)
        }
        // The nodes of the others know what these are subscribed to.
        let others = members(clientID: user).filter { id in
            participants[id].map { $0.isRemote && $0.isActive && $0.role.watches } ?? false
        }
        for id in others {
            guard let node = participants[id]?.location.node else { continue }
            effects.append(.request(.subscribe(isSubscribed, to: selection, receiver: .participant(id)), of: node))
        }
        return (changes.map(\.id) + others, effects)
    }
}
