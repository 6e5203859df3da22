package import Admission
package import ChannelTypes

// The channel's part of admission, and its listeners. ``NodeModel`` has the node's part.

extension ChannelModel {
    /// Checks a newcomer against the channel's members and limits.
    package func checkAdmission(of request: JoinRequest) -> AdmissionCheck {
        var check = AdmissionCheck()
        if case .participant(let target) = request.following, request.role.watches {
            check.isTargetUnknown = participants[target]?.role.publishes != true
        }
        check.isProfileMismatched = isProfileMismatched(by: request)
        check.isAppMismatched = isAppMismatched(request.app)
        check.isHeldInAudience = request.role == .sendonly && isHeldInAudience(request)
        let duplicates = duplicates(of: request)
        if !duplicates.isEmpty, duplicatePolicy(of: request) == .refuse {
            check.exceeded = conflictsByPublishingOnly(request, with: duplicates) ? .alreadyPublishing : .userPresent
        }
        guard check.exceeded == nil else { return check }
        check.isAudience = request.role.publishes && !firstRole(of: request).publishes
        check.replaced = duplicatePolicy(of: request) == .replace ? duplicates : []
        let replacedPublishers = check.replaced.count { participants[$0]?.role.publishes == true }
        let membersMax = min(limits.participantsPerChannelMax, request.channelConnectionsMax ?? .max)
        if state.members.count - check.replaced.count >= membersMax {
            check.exceeded = .channelFull
        } else if firstRole(of: request).publishes,
            state.publishers.count - replacedPublishers >= limits.publishersPerChannelMax
        {
            check.exceeded = .publishersFull
        }
        return check
    }

    /// Whether the channel has as many listeners as ``RoomLimits/listenersPerChannelMax`` permits.
    package var isFullOfListeners: Bool { state.listeners.count >= limits.listenersPerChannelMax }

    /// The app whose tokens admit to the channel; `nil` without one.
    package var app: String? { state.app }

    /// Whether the channel is another app's. Clients without an app, such as those with a JWT, fit any channel.
    package func isAppMismatched(_ app: String?) -> Bool {
        guard let app, let owner = state.app else { return false }
        return app != owner
    }

    /// The first client with an app's token makes the channel its app's, until nobody uses the channel.
    mutating func fixApp(_ app: String?) {
        if state.app == nil { state.app = app }
    }

    /// Adds a listener. A channel exists as long as it has one.
    ///
    /// - Parameter app: of its token, which is not another one than the channel's; `nil` without one.
    package mutating func listenerArrived(_ id: ListenerID, app: String? = nil) {
        fixApp(app)
        state.listeners.insert(id)
    }

    /// Does nothing when the listener has left already.
    package mutating func listenerLeft(_ id: ListenerID) {
        state.listeners.remove(id)
        resetIfUnused()
    }

    /// Revisions restart when the channel is used again.
    mutating func resetIfUnused() {
        guard isUnused else { return }
        state.revision = 0
        state.app = nil
    }

    /// The channel's snapshot has changed.
    mutating func changed(into effects: inout [Effect]) {
        state.revision += 1
        effects.append(.channelChanged(name))
    }
}
