import Wire

// The channel's part of admission, and its listeners. ``NodeModel`` has the node's part.

/// The channel's check of a newcomer, for ``NodeModel/admit(_:id:check:at:)``.
package struct AdmissionCheck: Hashable, Sendable {
    /// Whether the participant that the newcomer follows is not a publisher of the channel.
    package var isTargetUnknown = false
    /// The limit of the channel that the newcomer would exceed.
    package var exceeded: RoomError?
    package init() {}
}

extension ChannelModel {
    /// Checks a newcomer against the channel's members and limits.
    package func checkAdmission(of request: JoinRequest) -> AdmissionCheck {
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
    package var isFullOfListeners: Bool { state.listeners.count >= limits.listenersPerChannelMax }

    /// Adds a listener. A channel exists as long as it has one.
    package mutating func listenerArrived(_ id: ListenerID) { state.listeners.insert(id) }

    /// Does nothing when the listener has left already.
    package mutating func listenerLeft(_ id: ListenerID) {
        state.listeners.remove(id)
        resetIfUnused()
    }

    /// Revisions restart when the channel is used again.
    mutating func resetIfUnused() {
        if isUnused { state.revision = 0 }
    }

    /// The channel's snapshot has changed.
    mutating func changed(into effects: inout [Effect]) {
        state.revision += 1
        effects.append(.channelChanged(name))
    }
}
