import Base
package import ChannelTypes
import MediaTypes

/// The outcome of a newcomer's request.
package struct AdmissionOutcome: Sendable {
    /// Participants that lost their places to the newcomer. Their channels end them with ``EndReason/evicted``.
    package var evicted: [(participant: ParticipantID, channel: ChannelName)] = []
    package var result: Result<ParticipantLocation, RoomError>
}

extension NodeModel {
    /// Checks a newcomer against all limits of the node and reserves its place. ``left(_:reason:at:)`` releases the place.
    ///
    /// A full node evicts a participant that has not connected: the oldest of the network with most of them, if that
    /// network has more than ``crowdMin`` and more than the newcomer's network, or if ``setupGrace`` is over.
    ///
    /// - Parameter check: the channel's check of the newcomer.
    package mutating func admit(
        _ request: JoinRequest,
        id: ParticipantID,
        check: AdmissionCheck = AdmissionCheck(),
        at now: RoomTime
    ) -> AdmissionOutcome {
        precondition(members[id] == nil, "identifiers are unique")
        var check = check
        var evicted: [(participant: ParticipantID, channel: ChannelName)] = []
        // Both limits may be reached: participants and channels.
        for _ in 0..<2 {
            guard let refusal = refusal(of: request, check, at: now), refusal == .nodeFull || refusal == .channelsFull
            else { break }
            let ids = evictable(for: request, freesChannel: refusal == .channelsFull, at: now)
            if ids.isEmpty { break }
            for id in ids {
                if let channel = members[id]?.channel { evicted.append((id, channel)) }
                if request.following == .participant(id), request.role.watches { check.isTargetUnknown = true }
                left(id, reason: .evicted, at: now)
            }
        }
        if let refusal = refusal(of: request, check, at: now) {
            if let counted = JoinRefusal(refusal) { admissions.refused[counted, default: 0] += 1 }
            return AdmissionOutcome(evicted: evicted, result: .failure(refusal))
        }
        let publishes = request.role.publishes && !check.isAudience
        let place = take(request, id: id, publishes: publishes, at: now)
        return AdmissionOutcome(evicted: evicted, result: .success(place))
    }

    private mutating func take(
        _ request: JoinRequest,
        id: ParticipantID,
        publishes: Bool,
        at now: RoomTime
    ) -> ParticipantLocation {
        let name = request.channel
        let place = ParticipantLocation(
            participant: id,
            peer: nextPeer(),
            location: placement.join(near: channels[name]?.locations ?? [:]),
            order: nextOrder()
        )
        let member = Member(
            place: place,
            channel: name,
            network: request.network,
            createdAt: now,
            app: request.app,
            publishes: publishes,
            keepsPlace: request.keepsPlace
        )
        if publishes { publishers.add(1, app: request.app) }
        if channels[name]?.members.isEmpty ?? true { occupiedChannelCount += 1 }
        channels[name, default: Channel()].members.insert(id, order: place.order)
        channels[name]?.locations[place.location, default: 0] += 1
        members[id] = member
        networks.joined(member)
        return place
    }

    private mutating func refusal(
        of request: JoinRequest,
        _ check: AdmissionCheck,
        at now: RoomTime
    ) -> RoomError? {
        let isNew = channels[request.channel]?.members.isEmpty ?? true
        if joinPolicy.isDraining { return .draining }
        if let refusal = blocks.refusal(of: request, at: now) { return refusal }
        if let token = request.resumeToken.flatMap(ResumeToken.init),
            let reason = recentlyEnded.reason(of: token.participant, at: now)
        {
            return .placeEnded(reason)
        }
        if let refusal = joinPolicy.refusal(opensChannel: isNew) { return refusal }
        if check.isAppMismatched { return .appMismatch }
        if check.isHeldInAudience { return .audienceByOperator }
        if check.isTargetUnknown { return .participantUnknown }
        if check.isProfileMismatched { return .profileMismatch }
        if let exceeded = exceededShare(of: request.network, opensChannel: isNew) { return .networkFull(exceeded) }
        if let exceeded = check.exceeded { return exceeded }
        if request.role.publishes, !check.isAudience,
            let exceeded = publishers.exceeded(limits, app: request.app, without: leaving(check.replaced))
        {
            return exceeded
        }
        // Last: participants are evicted only for a newcomer that no other limit refuses.
        if members.count >= limits.participantsMax { return .nodeFull }
        if isNew, occupiedChannelCount >= limits.channelsMax { return .channelsFull }
        return nil
    }

    /// The publishers among some members.
    private func leaving(_ ids: [ParticipantID]) -> PublisherCounts {
        var counts = PublisherCounts()
        for member in ids.compactMap({ members[$0] }) where member.publishes { counts.add(1, app: member.app) }
        return counts
    }

    /// A participant becomes a publisher.
    ///
    /// - Returns: whether it was one before.
    /// - Throws: ``RoomError/nodePublishersFull``, ``RoomError/appPublishersFull``.
    package mutating func publishingBegan(of id: ParticipantID) throws(RoomError) -> Bool {
        guard let member = members[id], !member.publishes else { return true }
        if let exceeded = publishers.exceeded(limits, app: member.app) { throw exceeded }
        members[id]?.publishes = true
        publishers.add(1, app: member.app)
        return false
    }

    /// A participant is no publisher any more. Does nothing when it is none.
    package mutating func publishingEnded(of id: ParticipantID) {
        guard let member = members[id], member.publishes else { return }
        members[id]?.publishes = false
        publishers.add(-1, app: member.app)
    }

    private func exceededShare(of network: ClientNetwork, opensChannel: Bool) -> NetworkShare? {
        guard !network.isShared else { return nil }
        let share = networks[network]
        if share.participants >= limits.participantsPerNetworkMax { return .participants }
        if share.unconnected.count >= limits.unconnectedPerNetworkMax { return .unconnected }
        return opensChannel && share.channels.count >= limits.channelsPerNetworkMax ? .channels : nil
    }

    /// A new connection takes a participant's place. It has a new peer, maybe on another loop.
    ///
    /// - Throws: ``RoomError/draining``, ``RoomError/banned``, ``RoomError/streamBlocked``,
    ///   ``RoomError/participantUnknown``.
    package mutating func resumed(
        _ request: JoinRequest,
        as id: ParticipantID,
        at now: RoomTime
    ) throws(RoomError) -> ParticipantLocation {
        guard !joinPolicy.isDraining else { throw .draining }
        if let refusal = blocks.refusal(of: request, at: now) { throw refusal }
        guard let member = members[id] else { throw .participantUnknown }
        let (name, before) = (member.channel, member.place)
        placement.leave(before.location)
        let others = (channels[name]?.locations[before.location] ?? 1) - 1
        channels[name]?.locations[before.location] = others > 0 ? others : nil
        let place = ParticipantLocation(
            participant: id,
            peer: nextPeer(),
            location: placement.join(near: channels[name]?.locations ?? [:]),
            order: before.order
        )
        channels[name]?.locations[place.location, default: 0] += 1
        members[id]?.place = place
        return place
    }

    /// A participant's transport is up.
    package mutating func connected(_ id: ParticipantID) {
        guard let member = members[id], !member.isConnected else { return }
        members[id]?.isConnected = true
        channels[member.channel]?.connectedCount += 1
        networks.connected(member)
    }

    /// Releases a participant's place. Does nothing when it has left already.
    package mutating func left(_ id: ParticipantID, reason: EndReason, at now: RoomTime) {
        guard let member = members.removeValue(forKey: id) else { return }
        if member.keepsPlace {
            recentlyEnded.insert(id, reason: reason, at: now, seconds: limits.resumeGrace.components.seconds)
        }
        if let abandoned = AbandonedSetup(reason) { admissions.abandoned[abandoned, default: 0] += 1 }
        let (name, location) = (member.channel, member.place.location)
        networks.left(member)
        if member.publishes { publishers.add(-1, app: member.app) }
        placement.leave(location)
        channels[name]?.members.remove(order: member.place.order)
        if member.isConnected { channels[name]?.connectedCount -= 1 }
        let others = (channels[name]?.locations[location] ?? 1) - 1
        channels[name]?.locations[location] = others > 0 ? others : nil
        if channels[name]?.members.isEmpty ?? true { occupiedChannelCount -= 1 }
        removeChannelIfUnused(name)
    }
}

// MARK: - Eviction on a full node

extension NodeModel {
    /// How long a participant that has not connected keeps its place on a full node, unless its network has more than
    /// ``crowdMin`` of them.
    static let setupGrace = Interval.seconds(5)
    /// Clients that may be connecting through one NAT at the same time.
    static let crowdMin = 16

    /// The participants to evict for a newcomer: one, or all of a channel in which nobody has connected.
    private func evictable(for newcomer: JoinRequest, freesChannel: Bool, at now: RoomTime) -> [ParticipantID] {
        let share = max(networks.unconnectedCount(of: newcomer.network) + 1, Self.crowdMin)
        let isEvictable = { (member: Member) in
            !member.isConnected
                && (networks.unconnectedCount(of: member.network) > share
                    || now.instant - member.createdAt.instant >= Self.setupGrace)
        }
        for id in networks.mostUnconnected {
            guard let member = members[id] else { continue }
            // Those after it joined later.
            guard isEvictable(member) else { return [] }
            guard freesChannel else { return [id] }
            guard let channel = channels[member.channel], channel.connectedCount == 0 else { continue }
            if channel.members.compactMap({ members[$0] }).allSatisfy(isEvictable) {
                return Array(channel.members)
            }
        }
        return []
    }
}

// MARK: - Listeners

extension NodeModel {
    /// Reserves a place for a listener of a channel.
    ///
    /// - Parameters:
    ///   - network: where it comes from.
    ///   - isChannelFull: whether the channel has reached its limit of listeners.
    /// - Throws: ``RoomError/draining``, ``RoomError/listenersFull``, ``RoomError/networkListenersFull``.
    package mutating func listenerArrived(
        _ id: ListenerID,
        at name: ChannelName,
        from network: ClientNetwork = .unknown,
        isChannelFull: Bool = false
    ) throws(RoomError) {
        guard !joinPolicy.isDraining else { throw .draining }
        guard listeners.count < limits.listenersMax else { throw .listenersFull }
        let share = network.share(limits.listenersPerNetworkMax, of: limits.listenersMax)
        guard listenerCounts[network] ?? 0 < share else { throw .networkListenersFull }
        guard !isChannelFull else { throw .listenersFull }
        guard listeners.updateValue(Listener(channel: name, network: network), forKey: id) == nil else { return }
        channels[name, default: Channel()].listenerCount += 1
        listenerCounts[network, default: 0] += 1
    }

    /// Does nothing when the listener has left already.
    package mutating func listenerLeft(_ id: ListenerID) {
        guard let listener = listeners.removeValueAndRoom(forKey: id) else { return }
        let rest = (listenerCounts[listener.network] ?? 1) - 1
        listenerCounts[listener.network] = rest > 0 ? rest : nil
        channels[listener.channel]?.listenerCount -= 1
        removeChannelIfUnused(listener.channel)
    }
}

// MARK: - Blocks

extension NodeModel {
    /// Refuses a user or stream from now on, in place of an earlier block of the same subject.
    /// - Throws: ``RoomError/blocksFull``.
    package mutating func blocked(_ block: Block, at now: RoomTime) throws(RoomError) { try blocks.set(block, at: now) }

    /// Takes a block of another node. There may be twice as many as one node sets, because two nodes may each have set the
    /// last one.
    /// - Throws: ``RoomError/blocksFull``.
    package mutating func blockedElsewhere(_ block: Block, at now: RoomTime) throws(RoomError) {
        try blocks.set(block, countMax: 2 * BlockTable.countMax, at: now)
    }

    /// - Returns: whether there was a block.
    package mutating func blockLifted(of subject: Block.Subject, at now: RoomTime) -> Bool {
        blocks.lift(subject, at: now)
    }

    /// The block of a subject; `nil` without one.
    package func block(of subject: Block.Subject, at now: RoomTime) -> Block? { blocks.block(of: subject, at: now) }

    /// Why a newcomer is refused; `nil` when nothing blocks it.
    package func blockRefusal(of request: JoinRequest, at now: RoomTime) -> RoomError? {
        blocks.refusal(of: request, at: now)
    }

    /// All blocks, in no particular order.
    package func allBlocks(at now: RoomTime) -> [Block] { blocks.all(at: now) }
}

// MARK: - Resources

extension NodeModel {
    /// Adds a participant's resource to the index.
    package mutating func resourceCreated(_ id: ResourceID, of participant: ParticipantID) {
        resources[id] = participant
    }
    package mutating func resourceDeleted(_ id: ResourceID) { resources[id] = nil }
}
