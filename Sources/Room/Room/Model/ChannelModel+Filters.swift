package import ChannelTypes

// Forwarding filters. A blocked slot stays negotiated and plays nothing.

extension ChannelModel {
    /// The filters of a scope in the order of evaluation.
    package func filters(of scope: FilterScope) throws(RoomError) -> [ForwardingFilter] {
        try checkScope(scope)
        return list(of: scope).filters
    }

    /// - Throws: ``RoomError/filterExists``, ``RoomError/filtersTooLarge``, and when the scope is unknown.
    package mutating func filterCreated(
        _ filter: ForwardingFilter,
        in scope: FilterScope
    ) throws(RoomError) -> [Effect] {
        try checkScope(scope)
        var list = list(of: scope)
        try list.create(filter)
        return replace(list, of: scope)
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` takes any.
    package mutating func filterUpdated(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Effect] {
        try checkScope(scope)
        var list = list(of: scope)
        try list.update(filter, expected: expected)
        return replace(list, of: scope)
    }

    /// - Parameter expected: refuse unless this is the filter's version; `nil` takes any.
    package mutating func filterDeleted(
        _ name: String,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Effect] {
        try checkScope(scope)
        var list = list(of: scope)
        try list.delete(name, expected: expected)
        return replace(list, of: scope)
    }

    private func checkScope(_ scope: FilterScope) throws(RoomError) {
        guard state.session != nil else { throw .channelUnknown }
        if case .participant(let id) = scope, viewers[id] == nil { throw .participantUnknown }
    }

    /// - Parameter expected: refuse unless this is the channel's session; `nil` takes any.
    func checkSession(_ expected: ChannelSessionID?) throws(RoomError) {
        guard let session = state.session else { throw .channelUnknown }
        guard expected == nil || expected == session.description.id else { throw .sessionUnknown }
    }

    private func list(of scope: FilterScope) -> FilterList {
        switch scope {
        case .channel: state.session?.filters ?? FilterList()
        case .participant(let id): viewers[id]?.filters ?? FilterList()
        }
    }

    private mutating func replace(_ list: FilterList, of scope: FilterScope) -> [Effect] {
        var effects: [Effect] = []
        switch scope {
        case .channel:
            state.session?.filters = list
            registerChanged()
            for id in state.members { updateSlots(of: id, into: &effects) }
        case .participant(let id):
            viewers[id]?.filters = list
            updateSlots(of: id, into: &effects)
        }
        return effects
    }
}
