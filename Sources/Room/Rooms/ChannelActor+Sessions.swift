import MediaTypes
import Wire

extension ChannelActor {
    func session(_ id: SessionID) -> Rooms.Session? { sessions[id] }

    /// Ends a session for its owner. Returns whether there was one.
    func end(_ id: SessionID) -> Bool {
        guard let session = sessions[id] else { return false }
        return end(session.participant, reason: .left)
    }

    /// Ends a participant. Returns whether it was there.
    @discardableResult
    func end(_ id: ParticipantID, reason: EndReason) -> Bool {
        guard model.participants[id] != nil else { return false }
        apply { $0.left(id, reason: reason) }
        return true
    }

    /// ``Rooms/restartICE(_:expected:remote:)``
    func restartICE(
        _ id: SessionID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> Rooms.Session {
        guard let session = sessions[id] else { throw .sessionUnknown }
        guard expected == nil || expected == session.iceVersion else { throw .versionMismatch }
        guard !session.isRestarting else { throw .restartUnderWay }
        sessions[id]?.isRestarting = true
        let local = context.environment.iceCredentials()
        beginCall()
        defer { endCall() }
        do {
            try await context.plane(at: session.location).restartICE(session.peer, local: local, remote: remote)
        } catch {
            sessions[id]?.isRestarting = false
            throw sessions[id] == nil ? .sessionUnknown : .media("\(error)")
        }
        guard var restarted = sessions[id] else { throw .sessionUnknown }
        restarted.isRestarting = false
        restarted.local.credentials = local
        restarted.remoteCredentials = remote
        restarted.iceVersion = context.environment.iceVersion()
        sessions[id] = restarted
        return restarted
    }

    /// ``Rooms/events(of:)``
    func events(of id: ParticipantID) -> ParticipantEvents {
        precondition(mailboxes[id] == nil, "a participant's events have one reader")
        let mailbox = ParticipantMailbox(capacity: context.limits.eventsWaitingMax)
        if model.participants[id] != nil {
            mailboxes[id] = mailbox
        } else {
            mailbox.close(.setupFailed)
        }
        return ParticipantEvents(mailbox: mailbox)
    }

    /// ``Rooms/changeSlots(of:add:remove:)``
    func changeSlots(
        of id: ParticipantID,
        add assigned: [SlotAssignment],
        remove mids: [MID]
    ) async throws(RoomError) {
        try apply { model throws(RoomError) in try model.slotsChanged(of: id, add: [], remove: mids) }
        guard let participant = model.participants[id] else { throw .participantUnknown }
        for mid in mids {
            _ = commands[participant.location]?.takeTarget(for: TrackID(peer: participant.peer, mid: mid))
        }
        beginCall()
        defer { endCall() }
        do {
            try await context.plane(at: participant.location).changeSlots(
                of: participant.peer,
                add: assigned.map(\.parameters),
                remove: mids
            )
        } catch {
            throw model.participants[id] == nil ? .participantUnknown : .media("\(error)")
        }
        try apply { model throws(RoomError) in try model.slotsChanged(of: id, add: assigned, remove: []) }
    }

    /// ``Rooms/codecsRefused(by:_:)``
    func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) {
        guard let peer = model.participants[id]?.peer else { return }
        for track in tracks { context.notice(.formatUnsupported(peer, slot: track.mid, track.codec)) }
        let refused = tracks.compactMap { track in
            ParticipantID(track.streamID).map { Viewer.RefusedCodec(sender: $0, codec: track.codec) }
        }
        apply { $0.codecsRefused(by: id, refused) }
    }

    /// Asks an active participant for a key frame of everything that it sends.
    func requestKeyFrame(of id: ParticipantID) async throws(RoomError) {
        guard let participant = model.participants[id], participant.isActive else { throw .participantUnknown }
        await context.plane(at: participant.location).requestKeyFrame(of: participant.peer)
    }

    /// `nil` unless the participant is active.
    func statistics(of id: ParticipantID) async -> PeerStatistics? {
        guard let participant = model.participants[id], participant.isActive else { return nil }
        return await context.plane(at: participant.location).statistics(of: participant.peer)
    }
}

// MARK: - Listeners

extension ChannelActor {
    /// `nil` when the actor is retired.
    func listen(from network: ClientNetwork) throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>)? {
        guard !isRetired else { return nil }
        defer { publish() }
        let isFull = model.isFullOfListeners
        let id = try context.node.withModel { node throws(RoomError) in
            let id = node.nextListener()
            try node.listenerArrived(id, at: name, from: network, isChannelFull: isFull)
            return id
        }
        model.listenerArrived(id)
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        listeners[id] = continuation
        continuation.yield()
        return (id, changes)
    }

    /// Does nothing when the listener is gone already.
    func stopListening(_ id: ListenerID) {
        guard let changes = listeners.removeValue(forKey: id) else { return }
        changes.finish()
        context.node.withModel { $0.listenerLeft(id) }
        model.listenerLeft(id)
        publish()
    }
}

// MARK: - Operators

extension ChannelActor {
    /// Ends all participants that fit, in the order of joining, and returns them.
    func end(role: Role?, clientID: String?, reason: EndReason) -> [ParticipantID] {
        var ended: [ParticipantID] = []
        apply { model in
            let result = model.end(role: role, clientID: clientID, reason: reason)
            ended = result.ended
            return result.effects
        }
        return ended
    }

    /// ``Rooms/terminate(session:of:)``
    func terminate(session: ChannelSessionID) throws(RoomError) -> [ParticipantID] {
        try model.checkSession(session)
        return end(role: nil, clientID: nil, reason: .sessionTerminated)
    }

    /// ``Rooms/push(_:to:)``
    func push(_ json: String, to audience: Audience) throws(RoomError) -> Int {
        let receivers = try model.receivers(audience)
        var slowConsumers: [ParticipantID] = []
        let count = receivers.count { post(.push(json), to: $0, &slowConsumers) }
        for slowConsumer in slowConsumers { end(slowConsumer, reason: .tooSlow) }
        return count
    }

    /// ``Rooms/filters(of:)``
    func filters(of scope: FilterScope) throws(RoomError) -> [ForwardingFilter] { try model.filters(of: scope) }

    /// The active participants with their order on the node.
    var orderedConnections: [(order: UInt64, connection: Connection)] {
        model.connections.compactMap { connection in
            model.participants[connection.member.id].map { ($0.order, connection) }
        }
    }

    /// Answers a question about the channel.
    func ask<Answer: Sendable>(_ question: @Sendable (ChannelModel) -> Answer) -> Answer { question(model) }
}
