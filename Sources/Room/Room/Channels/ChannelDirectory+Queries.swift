package import Admission
package import ChannelTypes
package import MediaTypes

extension ChannelDirectory {
    // MARK: - The node

    /// What the node holds.
    package var counts: RoomCounts {
        get async { node.withModel { $0.counts } }
    }
    /// The share of the media loops' time that is in use, 0…1.
    package var load: Double { node.withModel { $0.load } }
    /// Newcomers that were refused, or lost their place before they connected.
    package var admissions: AdmissionCounts {
        get async { node.withModel { $0.admissions } }
    }
    /// Changes that participants made of themselves beyond their budgets.
    package var limitedChanges: [ChangeLimit: UInt64] {
        get async { node.withModel { $0.limitedChanges } }
    }
    package var isDraining: Bool {
        get async { node.withModel { $0.joinPolicy.isDraining } }
    }
    /// Who may join, as an operator set it.
    package var mode: NodeMode {
        get async { node.withModel { $0.joinPolicy.mode } }
    }
    /// Who may join: of the set mode and that of a drain the one that admits less.
    package var modeInForce: NodeMode {
        get async { node.withModel { $0.joinPolicy.modeInForce } }
    }

    /// Sets who may join.
    /// - Returns: `false` for a mode that admits more than the node's drain does: it would not be in force. It is not set then.
    @discardableResult
    package func setMode(_ mode: NodeMode) async -> Bool {
        node.withModel { node in
            guard mode >= node.joinPolicy.drainMode else { return false }
            node.joinPolicy.mode = mode
            return true
        }
    }

    /// Sets whom the node refuses because it drains. It never takes back a shutdown.
    package func setDrainStage(_ stage: DrainStage) { node.withModel { $0.joinPolicy.drainStage = stage } }

    /// Sets whether newcomers of channels that no participant of this node is in are refused because another process has this
    /// node's name in the cluster: other nodes would not find these channels here.
    package func setReplaced(_ isReplaced: Bool) { node.withModel { $0.joinPolicy.isReplaced = isReplaced } }
    /// Whether another process has this node's name in the cluster, and takes its place.
    package var isReplaced: Bool { node.withModel { $0.joinPolicy.isReplaced } }

    /// Whether everyone who joins a channel is refused, because the node drains, shuts down, or has a mode that says so.
    package func refusesJoins(to channel: ChannelName) -> Bool {
        node.withModel { $0.refusesJoins(to: channel) }
    }

    /// Whether a resume token names a participant of this node. The token may still be refused.
    package func hasPlace(forResumeToken token: String) -> Bool {
        guard let token = ResumeToken(token) else { return false }
        return node.withModel { $0.hasMember(token.participant) }
    }

    /// All sessions of channels, the oldest first.
    package var channelSessions: [ChannelSession] {
        get async { node.withModel { $0.channelSessions } }
    }

    // MARK: - Channels and participants

    /// `nil` when the channel does not exist.
    package func snapshot(of channel: ChannelName) async -> ChannelSnapshot? {
        await node.actor(of: channel)?.read(\.snapshot)
    }

    /// The session of a channel; `nil` without participants.
    package func channelSession(of channel: ChannelName) async -> ChannelSession? {
        await node.actor(of: channel)?.read(\.session)
    }

    /// The connected members of a channel by role.
    package func counts(of channel: ChannelName) async -> ChannelCounts {
        await node.actor(of: channel)?.read(\.counts) ?? ChannelCounts()
    }

    /// The participants with negotiated media, in the order of joining.
    /// - Parameter channel: `nil` for all channels.
    package func connections(in channel: ChannelName? = nil) async -> [Connection] {
        if let channel { return await node.actor(of: channel)?.read(\.connections) ?? [] }
        let channels = node.actors
        let connections = await withTaskGroup(of: [(order: UInt64, connection: Connection)].self) { group in
            for channel in channels { group.addTask { await channel.orderedConnections } }
            var all: [(order: UInt64, connection: Connection)] = []
            for await some in group { all += some }
            return all
        }
        return connections.sorted { $0.order < $1.order }.map(\.connection)
    }

    /// The participants of a channel with negotiated media, and those whose connection is lost and whose place is kept, in
    /// the order of joining.
    package func places(in channel: ChannelName) async -> [Connection] {
        await node.actor(of: channel)?.read(\.places) ?? []
    }

    /// `nil` for an unknown participant and one without negotiated media.
    package func connection(of id: ParticipantID) async -> Connection? {
        await node.actor(of: id)?.read { $0.connection(of: id) }
    }

    /// The streams that a participant that follows everyone may receive now, in the order of going live; none for any
    /// other participant.
    package func visibleStreams(to id: ParticipantID) async -> [VisibleStream] {
        await node.actor(of: id)?.read { $0.visibleStreams(to: id) } ?? []
    }

    /// The profile of a channel; `nil` without participants.
    package func profile(of channel: ChannelName) async -> ChannelProfile? {
        await node.actor(of: channel)?.read { $0.session == nil ? nil : $0.profile }
    }

    /// The app whose tokens admit to a channel; `nil` for none.
    package func app(of channel: ChannelName) async -> String? {
        await node.actor(of: channel)?.read(\.app)
    }

    /// - Throws: ``RoomError/appMismatch`` when the channel is another app's.
    package func checkApp(_ app: String?, of channel: ChannelName) async throws(RoomError) {
        guard app != nil else { return }
        let isMismatched = await withRemoteParticipants(of: channel) {
            await node.actor(of: channel)?.read { $0.isAppMismatched(app) } ?? false
        }
        if isMismatched { throw .appMismatch }
    }

    /// The filters of a scope in the order of evaluation.
    ///
    /// - Throws: ``RoomError/channelUnknown``, ``RoomError/participantUnknown``.
    package func filters(of scope: FilterScope, in channel: ChannelName) async throws(RoomError) -> [ForwardingFilter] {
        guard let actor = node.actor(of: channel) else { throw .channelUnknown }
        return try await actor.read { model throws(RoomError) in try model.filters(of: scope) }
    }

    /// What the connections of a user that receive are subscribed to, in the order of joining.
    ///
    /// - Throws: ``RoomError/channelUnknown``, ``RoomError/participantUnknown``.
    package func subscriptions(
        of user: String,
        in channel: ChannelName
    ) async throws(RoomError) -> [ConnectionSubscription] {
        guard let actor = node.actor(of: channel) else { throw .channelUnknown }
        return try await actor.read { model throws(RoomError) in try model.subscriptions(ofUser: user) }
    }

    /// The users of a participant's channel, as the participant is told of them.
    ///
    /// - Throws: ``RoomError/participantUnknown``, and ``RoomError/changesTooFrequent`` for a participant that asks too often.
    package func joinedChannel(asToldTo id: ParticipantID) async throws(RoomError) -> JoinedChannel {
        guard let actor = node.actor(of: id) else { throw .participantUnknown }
        return try await actor.joinedChannel(asToldTo: id)
    }

    /// A participant's media as it is now; `nil` for an unknown participant and one without negotiated media.
    package func statistics(of id: ParticipantID) async -> PeerStatistics? {
        await node.actor(of: id)?.statistics(of: id)
    }

    // MARK: - Listeners

    /// Adds a listener to a channel, which exists until ``stopListening(_:)`` at least.
    ///
    /// The stream yields at the start and after changes of ``snapshot(of:)``; several changes may be one element. It
    /// ends at ``shutdown()``.
    /// - Parameters:
    ///   - network: the listener's network.
    ///   - app: the app whose token admitted it; `nil` without such a token.
    package func listen(
        to channel: ChannelName,
        from network: ClientNetwork = .unknown,
        app: String? = nil
    ) async throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>) {
        while true {
            if let listener = try await actor(of: channel).listen(from: network, app: app) { return listener }
        }
    }

    /// Removes a listener. Does nothing when it has left already.
    package func stopListening(_ id: ListenerID) async { await node.actor(of: id)?.stopListening(id) }
}
