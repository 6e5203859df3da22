import Admission
import Base
import ChannelTypes
import MediaTypes
import Wire

extension Channel {
    func resource(_ id: ResourceID) -> ChannelDirectory.Resource? { resources[id] }

    /// ``ChannelDirectory/end(_:)``
    func end(_ id: ResourceID) -> Bool {
        guard let resource = resources[id] else { return false }
        return end(resource.participant, reason: .left)
    }

    /// - Returns: whether the participant was in the channel.
    @discardableResult
    func end(_ id: ParticipantID, reason: EndReason) -> Bool {
        guard model.participants[id] != nil else { return false }
        apply { $0.left(id, reason: reason) }
        return true
    }

    /// ``ChannelDirectory/end(_:reason:)-(Reservation,_)``
    @discardableResult
    func end(_ reservation: ChannelDirectory.Reservation, reason: EndReason) -> Bool {
        guard model.participants[reservation.participant]?.peer == reservation.peer else { return false }
        return end(reservation.participant, reason: reason)
    }

    /// ``ChannelDirectory/replaceOwner(of:by:)``
    func replaceOwner(of id: ParticipantID, by owner: OwnerProof) {
        guard let resource = resourceOf[id], resources[resource]?.owner != nil else { return }
        resources[resource]?.owner = owner
    }

    /// ``ChannelDirectory/restartICE(_:expected:remote:)``
    func restartICE(
        _ id: ResourceID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> ChannelDirectory.Resource {
        guard let resource = resources[id] else { throw .resourceUnknown }
        guard expected == nil || expected == resource.iceVersion else { throw .versionMismatch }
        guard !resource.isRestarting else { throw .restartUnderWay }
        resources[id]?.isRestarting = true
        let local = context.environment.iceCredentials()
        beginCall()
        defer { endCall() }
        do {
            try await context.plane(at: resource.location).restartICE(resource.peer, local: local, remote: remote)
        } catch {
            resources[id]?.isRestarting = false
            throw resources[id] == nil ? .resourceUnknown : .media("\(error)")
        }
        guard var restarted = resources[id] else { throw .resourceUnknown }
        restarted.isRestarting = false
        restarted.local.credentials = local
        restarted.remoteCredentials = remote
        restarted.iceVersion = context.environment.iceVersion()
        resources[id] = restarted
        return restarted
    }

    /// ``ChannelDirectory/events(of:)``
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

    /// ``ChannelDirectory/events(of:)-(ResourceID)``
    func events(of id: ResourceID) -> ParticipantEvents? {
        guard let participant = resources[id]?.participant else { return nil }
        mailboxes.removeValue(forKey: participant)?.finish()
        let mailbox = ParticipantMailbox(capacity: context.limits.eventsWaitingMax)
        mailboxes[participant] = mailbox
        if let quality = model.knownQuality(of: participant) {
            let timestamp = context.environment.clock.now().unixNanoseconds
            _ = mailbox.post(.notification(Notification(.networkQuality(quality), timestamp: timestamp)))
        }
        return ParticipantEvents(mailbox: mailbox, participant: participant)
    }

    /// ``ChannelDirectory/stopReading(_:)``
    func stopReading(_ events: ParticipantEvents) {
        events.mailbox.finish()
        guard let id = events.participant, mailboxes[id] === events.mailbox else { return }
        mailboxes[id] = nil
    }

    /// ``ChannelDirectory/changeSlots(of:add:remove:)``
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

    /// ``ChannelDirectory/codecsRefused(by:_:)``
    func codecsRefused(by id: ParticipantID, _ tracks: [UnsupportedTrack]) {
        guard model.participants[id] != nil, let attendance = attendance(of: id) else { return }
        for track in tracks { context.onEvent(.formatUnsupported(attendance, slot: track.mid, track.codec)) }
        let refused = tracks.compactMap { track in
            ParticipantID(track.streamID).map { Viewer.RefusedCodec(sender: $0, codec: track.codec) }
        }
        apply { model in
            model.codecsRefused(by: id, Set(tracks.map(\.codec)))
            return model.codecsRefused(by: id, refused)
        }
    }

    /// ``ChannelDirectory/joinedChannel(asToldTo:)``
    func joinedChannel(asToldTo id: ParticipantID) throws(RoomError) -> JoinedChannel {
        var joined: JoinedChannel?
        try apply { model throws(RoomError) in
            let (channel, effects) = try model.joinedChannel(asToldTo: id)
            joined = channel
            return effects
        }
        guard let joined else { throw .participantUnknown }
        return joined
    }

    /// `nil` unless the participant is active.
    func statistics(of id: ParticipantID) async -> PeerStatistics? {
        guard let participant = model.participants[id], participant.isActive, !participant.isRemote else { return nil }
        return await context.plane(at: participant.location).statistics(of: participant.peer)
    }
}

// MARK: - Listeners

extension Channel {
    /// `nil` when the actor is retired.
    func listen(
        from network: ClientNetwork,
        app: String?
    ) async throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>)? {
        guard !isRetired else { return nil }
        beginCall()
        defer { endCall() }
        await open()
        guard !model.isAppMismatched(app) else { throw .appMismatch }
        let isFull = model.isFullOfListeners
        let id = try context.node.withModel { node throws(RoomError) in
            let id = node.nextListener()
            try node.listenerArrived(id, at: name, from: network, isChannelFull: isFull)
            return id
        }
        let ownerBefore = model.app
        model.listenerArrived(id, app: app)
        if isOpen, model.app != ownerBefore { context.cluster?.send(.register(model.register), of: name, to: nil) }
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        listeners[id] = continuation
        continuation.yield()
        return (id, changes)
    }

    /// Does nothing when the listener has left already.
    func stopListening(_ id: ListenerID) {
        guard let changes = listeners.removeValue(forKey: id) else { return }
        changes.finish()
        context.node.withModel { $0.listenerLeft(id) }
        model.listenerLeft(id)
        publish()
    }
}

// MARK: - Queries

extension Channel {
    /// The active participants with their order on the node.
    var orderedConnections: [(order: UInt64, connection: Connection)] {
        model.connections.compactMap { connection in
            model.participants[connection.member.id].map { ($0.order, connection) }
        }
    }

    /// Evaluates `query` with the model.
    func read<Value: Sendable, Refusal>(
        _ query: @Sendable (ChannelModel) throws(Refusal) -> Value
    ) throws(Refusal) -> Value { try query(model) }
}
