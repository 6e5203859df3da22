import Wire

// Whom the node and a channel take in, and listeners.

extension RoomModel {
    func checkAdmission(_ request: JoinRequest) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard mode != .blockNewConnections else { throw .connectionsBlocked }
        let channel = channels[request.channel]
        let isNew = channel?.session == nil
        guard mode == .normal || !isNew else { throw .sessionsBlocked }
        if case .participant(let target) = request.following, request.role.watches {
            guard let publisher = participants[target], publisher.channel == request.channel, publisher.role.publishes
            else { throw .participantUnknown }
        }
        try checkShare(of: request.network, opensChannel: isNew)
        let membersMax = min(limits.participantsPerChannelMax, request.channelConnectionsMax ?? .max)
        guard channel?.members.count ?? 0 < membersMax else { throw .channelFull }
        guard !request.role.publishes || channel?.publishers.count ?? 0 < limits.publishersPerChannelMax
        else { throw .publishersFull }
        // Last, because room is made for a newcomer that nothing else keeps out.
        guard participants.count < limits.participantsMax else { throw .nodeFull }
        guard !isNew || sessionCount < limits.channelsMax else { throw .channelsFull }
    }

    private func checkShare(of network: ClientNetwork, opensChannel: Bool) throws(RoomError) {
        guard !network.isShared else { return }
        let share = networks[network]
        guard share.participants < limits.participantsPerNetworkMax else { throw .networkFull(.participants) }
        guard share.unconnected.count < limits.unconnectedPerNetworkMax else { throw .networkFull(.unconnected) }
        guard !opensChannel || share.channels.count < limits.channelsPerNetworkMax
        else { throw .networkFull(.channels) }
    }

    /// Somebody wants to follow a channel's membership. The channel exists as long as one does.
    /// - Parameter network: where it comes from.
    public mutating func listenerArrived(
        _ id: ListenerID,
        at name: ChannelName,
        from network: ClientNetwork = .unknown
    ) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard listenerCount < limits.listenersMax else { throw .listenersFull }
        let share = network.share(limits.listenersPerNetworkMax, of: limits.listenersMax)
        guard listenerCounts[network] ?? 0 < share else { throw .networkListenersFull }
        if let count = channels[name]?.listeners.count {
            guard count < limits.listenersPerChannelMax else { throw .listenersFull }
        }
        guard channels[name, default: Channel()].listeners.insert(id).inserted else { return }
        listenerCount += 1
        listenerCounts[network, default: 0] += 1
        listenerNetworks[id] = network
    }

    /// Nothing happens when the listener is gone already.
    public mutating func listenerLeft(_ id: ListenerID, from name: ChannelName) {
        guard channels[name]?.listeners.remove(id) != nil else { return }
        listenerCount -= 1
        if let network = listenerNetworks.removeValue(forKey: id) {
            let rest = (listenerCounts[network] ?? 1) - 1
            listenerCounts[network] = rest > 0 ? rest : nil
        }
        if channels[name]?.isUnused == true { channels[name] = nil }
    }

    /// From now on newcomers are refused.
    public mutating func drainingStarted() { isDraining = true }

    /// The channel's listeners have something to read.
    mutating func changed(_ name: ChannelName, into decisions: inout [Decision]) {
        channels[name]?.revision += 1
        decisions.append(.channelChanged(name))
    }
}

// MARK: - Room for newcomers on a full node

extension RoomModel {
    /// How long a participant that has not connected keeps its place on a full node, whoever else wants one, unless its
    /// network has more than ``crowdMin`` of them.
    static let setupGrace = Interval.seconds(5)
    /// So many may be connecting from behind one NAT at the same time.
    static let crowdMin = 16

    /// Where the node is full, ends who has not connected in favour of the newcomer: the oldest of the network with most
    /// of them, if that has more than ``crowdMin`` and than the newcomer's network, or its time of grace is over. To be called right before
    /// ``joinRequested(_:id:peer:session:)``.
    public mutating func makeRoom(for newcomer: JoinRequest) -> [Decision] {
        var decisions: [Decision] = []
        // A node may be full of participants and of channels.
        for _ in 0..<2 {
            do throws(RoomError) {
                try checkAdmission(newcomer)
                return decisions
            } catch {
                guard error == .nodeFull || error == .channelsFull else { return decisions }
                let ended = replaceable(by: newcomer, freesChannel: error == .channelsFull)
                guard !ended.isEmpty else { return decisions }
                decisions += leftTogether(ended, reason: .crowdedOut)
            }
        }
        return decisions
    }

    /// Whom a newcomer takes the place of: one participant, or a whole channel in which nobody has connected.
    private func replaceable(by newcomer: JoinRequest, freesChannel: Bool) -> [ParticipantID] {
        let share = max(networks.unconnectedCount(of: newcomer.network) + 1, Self.crowdMin)
        let isReplaceable = { (participant: Participant) in
            !participant.isConnected
                && (networks.unconnectedCount(of: participant.network) > share
                    || now.instant - participant.createdAt.instant >= Self.setupGrace)
        }
        for id in networks.mostUnconnected {
            guard let participant = participants[id] else { continue }
            // Those behind it came later.
            guard isReplaceable(participant) else { return [] }
            guard freesChannel else { return [id] }
            guard let channel = channels[participant.channel], channel.connected.isEmpty else { continue }
            if channel.members.compactMap({ participants[$0] }).allSatisfy(isReplaceable) {
                return Array(channel.members)
            }
        }
        return []
    }
}
