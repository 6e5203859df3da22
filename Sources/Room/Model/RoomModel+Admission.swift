// Whom the node and a channel take in, and listeners.

extension RoomModel {
    func checkAdmission(_ request: JoinRequest) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard mode != .blockNewConnections else { throw .connectionsBlocked }
        guard participants.count < limits.participantsMax else { throw .nodeFull }
        let channel = channels[request.channel]
        guard mode == .normal || channel?.session != nil else { throw .sessionsBlocked }
        guard channel != nil || channels.count < limits.channelsMax else { throw .channelsFull }
        let membersMax = min(limits.participantsPerChannelMax, request.channelConnectionsMax ?? .max)
        guard channel?.members.count ?? 0 < membersMax else { throw .channelFull }
        guard !request.role.publishes || channel?.publishers.count ?? 0 < limits.publishersPerChannelMax
        else { throw .publishersFull }
    }

    /// Somebody wants to follow a channel's membership. The channel exists as long as one does.
    public mutating func listenerArrived(_ id: ListenerID, at name: ChannelName) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard listenerCount < limits.listenersMax else { throw .listenersFull }
        if let count = channels[name]?.listeners.count {
            guard count < limits.listenersPerChannelMax else { throw .listenersFull }
        } else {
            guard channels.count < limits.channelsMax else { throw .channelsFull }
        }
        guard channels[name, default: Channel()].listeners.insert(id).inserted else { return }
        listenerCount += 1
    }

    /// Nothing happens when the listener is gone already.
    public mutating func listenerLeft(_ id: ListenerID, from name: ChannelName) {
        guard channels[name]?.listeners.remove(id) != nil else { return }
        listenerCount -= 1
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
