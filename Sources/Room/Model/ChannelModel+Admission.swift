import Wire

// The channel's own part of admission, and its listeners. The node's part is ``NodeModel``'s.

/// What a channel says about a newcomer. ``NodeModel/admit(_:check:at:)`` decides with it.
public struct AdmissionCheck: Hashable, Sendable {
    /// Whether the participant that the newcomer wants to follow is no publisher of the channel.
    public var isTargetUnknown = false
    /// The limit of the channel that the newcomer would exceed.
    public var exceeded: RoomError?
    public init() {}
}

extension ChannelModel {
    /// Checks a newcomer against the channel's members and limits.
    public func checkAdmission(of request: JoinRequest) -> AdmissionCheck {
        var check = AdmissionCheck()
        if case .participant(let target) = request.following, request.role.watches {
            check.isTargetUnknown = participants[target]?.role.publishes != true
        }
        let membersMax = min(limits.participantsPerChannelMax, request.channelConnectionsMax ?? .max)
        if state.members.count >= membersMax {
            check.exceeded = .channelFull
        } else if request.role.publishes, state.publishers.count >= limits.publishersPerChannelMax {
            check.exceeded = .publishersFull
        }
        return check
    }

    /// Whether the channel has as many listeners as ``RoomLimits/listenersPerChannelMax`` permits.
    public var isFullOfListeners: Bool { state.listeners.count >= limits.listenersPerChannelMax }

    /// A client follows the channel's membership. The channel exists as long as one does.
    public mutating func listenerArrived(_ id: ListenerID) { state.listeners.insert(id) }

    /// Does nothing when the listener is gone already.
    public mutating func listenerLeft(_ id: ListenerID) {
        state.listeners.remove(id)
        resetIfUnused()
    }

    /// Revisions start again with the channel's next life.
    mutating func resetIfUnused() {
        if isUnused { state.revision = 0 }
    }

    /// The channel's listeners have something to read.
    mutating func changed(into effects: inout [Effect]) {
        state.revision += 1
        effects.append(.channelChanged(name))
    }
}
