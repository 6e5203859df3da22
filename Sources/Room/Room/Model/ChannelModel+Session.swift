package import ChannelTypes
import MediaTypes

// The channel's session: from its first member to its last, over all nodes.
//
// The node whose member connects first reports its creation, and the node whose member leaves last its end. Members of several
// nodes may leave before these nodes know of each other's departures. So every departure has a time, and all nodes order
// departures in the same way. A node without members waits for departures that were under way when its last member left.

extension ChannelState {
    /// The departure of the last member of this node, while it may be the last one of all.
    struct LastDeparture: Hashable, Sendable, Codable {
        let time: Int64
        let node: NodeIncarnation
        /// When all earlier departures are known, in seconds of the monotonic clock.
        let endSecond: Int64
    }
}

extension ChannelModel {
    /// How long a node waits for other nodes' departures before its own. It is up to a second less, because ticks are a
    /// second apart.
    private static let departureWaitSeconds: Int64 = 2

    // MARK: Begin

    /// The session begins with its first member, perhaps under an identifier that another node gave it.
    mutating func sessionBegan(as id: ChannelSessionID) {
        state.session?.lastDeparture = nil
        guard state.members.isEmpty else { return }
        let description = ChannelSession(
            id: state.session?.description.id ?? id,
            channel: name,
            createdAt: now.unixNanoseconds
        )
        take(description)
    }

    private mutating func take(_ description: ChannelSession) {
        let endSecond = sessionEnd(createdAt: description.createdAt)
        var session = state.session ?? ChannelState.Session(description: description)
        session.description = description
        session.endSecond = endSecond
        state.session = session
    }

    /// The session that the nodes of the channel have. Of two the older one stays, and of equally old ones the one with the
    /// lower identifier.
    package mutating func sessionFound(_ session: ChannelSession) -> [Effect] {
        guard session.channel == name else { return [] }
        let own = state.session
        // Without members the own one is what the directory listed, which may have ended.
        guard own.map({ state.members.isEmpty || session.precedes($0.description) }) ?? true else { return [] }
        take(session)
        guard let own, own.isAnnounced, own.description.id != session.id else { return [] }
        return [.report(.sessionDestroyed(own.description, unixNanoseconds: now.unixNanoseconds))]
    }

    /// When a session ends, in seconds of the monotonic clock; `nil` without a limit.
    ///
    /// - Parameter createdAt: in nanoseconds since 1970 UTC, by the clock of whichever node began it.
    private func sessionEnd(createdAt: Int64) -> Int64? {
        let seconds = limits.channelLifetime.components.seconds
        guard seconds > 0 else { return nil }
        let (end, overflows) = now.second.addingReportingOverflow(seconds)
        guard !overflows else { return nil }
        let (age, isUnknown) = now.unixNanoseconds.subtractingReportingOverflow(createdAt)
        return end - (isUnknown ? 0 : max(age, 0) / 1_000_000_000)
    }

    // MARK: End

    /// The session that ended last, unless another one has begun.
    package var endedSession: ChannelSession? { state.session == nil ? state.endedSession : nil }

    /// When the channel waits for other nodes' departures no longer, in seconds of the monotonic clock.
    var departureWaitEnd: Int64? { state.session?.lastDeparture?.endSecond }

    /// The time of the last departure, for ``ChannelUpdate/Departed/time``.
    package var departedAt: Int64 { state.departedAt }

    /// A member of this node left.
    mutating func departed(from node: NodeIncarnation, into effects: inout [Effect]) {
        state.departedAt = max(now.unixNanoseconds, state.departedAt &+ 1)
        guard !state.hasOwnMembers, let session = state.session else { return }
        guard !state.members.isEmpty else { return sessionEnded(isLast: true, into: &effects) }
        guard session.isAnnounced else { return }
        state.session?.lastDeparture = ChannelState.LastDeparture(
            time: state.departedAt,
            node: node,
            endSecond: now.second &+ Self.departureWaitSeconds
        )
    }

    /// A member of another node left. Its node reports the session's end, or a later one does, if that was after the last
    /// departure here.
    mutating func departureFound(at time: Int64, from node: NodeIncarnation) {
        state.departedAt = max(state.departedAt, time)
        guard let own = state.session?.lastDeparture, (own.time, own.node.rawValue) < (time, node.rawValue) else {
            return
        }
        state.session?.lastDeparture = nil
    }

    /// Ends the session when the departed member of another node was its last one.
    mutating func othersLeft() -> [Effect] {
        guard state.members.isEmpty else { return [] }
        var effects: [Effect] = []
        sessionEnded(isLast: state.session?.lastDeparture != nil, into: &effects)
        return effects
    }

    /// Stops waiting for other nodes' departures when it is time.
    mutating func endDepartureWait() {
        if let end = departureWaitEnd, end <= now.second { state.session?.lastDeparture = nil }
    }

    private mutating func sessionEnded(isLast: Bool, into effects: inout [Effect]) {
        guard let session = state.session else { return }
        state.session = nil
        state.endedSession = session.description
        guard session.isAnnounced, isLast else { return }
        effects.append(.report(.sessionDestroyed(session.description, unixNanoseconds: now.unixNanoseconds)))
    }
}
