// Forwarding filters. What a filter keeps from a receiver leaves its slots where they are, playing nothing.

extension RoomModel {
    /// The filters of a scope in the order in which they decide.
    public func filters(of scope: FilterScope) throws(RoomError) -> [ForwardingFilter] {
        try checkScope(scope)
        return list(of: scope).filters
    }

    /// - Parameter session: refuse unless this is the channel's session; `nil` takes any.
    /// - Throws: ``RoomError/filterExists``, ``RoomError/filtersTooLarge``, and when the scope is unknown.
    public mutating func filterCreated(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        session: ChannelSessionID? = nil
    ) throws(RoomError) -> [Decision] {
        try checkSession(session, of: scope.channel)
        try checkScope(scope)
        var list = list(of: scope)
        try list.create(filter)
        return replace(list, of: scope)
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` takes any.
    public mutating func filterUpdated(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Decision] {
        try checkScope(scope)
        var list = list(of: scope)
        try list.update(filter, expected: expected)
        return replace(list, of: scope)
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` takes any.
    public mutating func filterDeleted(
        _ name: String,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Decision] {
        try checkScope(scope)
        var list = list(of: scope)
        try list.delete(name, expected: expected)
        return replace(list, of: scope)
    }

    private func checkScope(_ scope: FilterScope) throws(RoomError) {
        guard channels[scope.channel]?.session != nil else { throw .channelUnknown }
        if case .connection(let name, let id) = scope {
            guard participants[id]?.channel == name, viewers[id] != nil else { throw .participantUnknown }
        }
    }

    func checkSession(_ expected: ChannelSessionID?, of name: ChannelName) throws(RoomError) {
        guard let session = channels[name]?.session else { throw .channelUnknown }
        guard expected == nil || expected == session.description.id else { throw .sessionUnknown }
    }

    private func list(of scope: FilterScope) -> FilterList {
        switch scope {
        case .channel(let name): filters(of: name)
        case .connection(_, let id): viewers[id]?.filters ?? FilterList()
        }
    }

    private mutating func replace(_ list: FilterList, of scope: FilterScope) -> [Decision] {
        var decisions: [Decision] = []
        switch scope {
        case .channel(let name):
            channels[name]?.session?.filters = list
            for id in channels[name]?.members ?? Roster() { subscribe(id, into: &decisions) }
        case .connection(_, let id):
            viewers[id]?.filters = list
            subscribe(id, into: &decisions)
        }
        return decisions
    }
}
