import MediaTypes
import Wire

extension ChannelActor {
    /// ``Rooms/joinContext(of:)`` of a channel that exists.
    func joinContext() -> (session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders) {
        (nextSession, model.counts, model.memberCount, model.decoders)
    }

    /// The identifier of the session that a newcomer will be in.
    private var nextSession: ChannelSessionID {
        model.session?.id
            ?? context.node.pendingSession(of: name) { context.environment.channelSessionID() }
    }

    /// Reserves a place for a newcomer, in the channel and on the node in one step. `nil` when the actor is retired.
    func reserve(_ request: JoinRequest) async throws(RoomError) -> Rooms.Reservation? {
        guard !isRetired else { return nil }
        // An eviction may empty the channel before the newcomer joins it.
        beginCall()
        defer { endCall() }
        let environment = context.environment
        model.now = environment.clock.now()
        let id = request.id ?? environment.participantID()
        let resource = environment.resourceID()
        let place = try admit(request, id: id)
        let channelSession = nextSession
        do throws(RoomError) {
            try model.joined(request, as: place, session: channelSession)
        } catch {
            context.node.withModel { $0.left(id, reason: .setupFailed) }
            throw error
        }
        context.node.forgetPendingSession(of: name)
        publish()
        let transport = await context.plane(at: place.location).transport()
        return Rooms.Reservation(
            participant: id,
            resource: resource,
            channelSession: channelSession,
            peer: place.peer,
            local: LocalTransport(
                credentials: environment.iceCredentials(),
                fingerprint: transport.fingerprint,
                candidates: transport.candidates
            ),
            location: place.location,
            publishBitsPerSecondMax: request.publishBitsPerSecondMax ?? context.limits.publishBitsPerSecondMax,
            receiveBitsPerSecondMax: request.receiveBitsPerSecondMax,
            share: number
        )
    }

    private func admit(_ request: JoinRequest, id: ParticipantID) throws(RoomError) -> ParticipantPlace {
        let (check, now) = (model.checkAdmission(of: request), model.now)
        let outcome = context.node.withModel { $0.admit(request, id: id, check: check, at: now) }
        let own = outcome.evicted.filter { $0.channel == name }.map(\.participant)
        if !own.isEmpty { perform(model.leftTogether(own, reason: .crowdedOut)) }
        for (participant, channel) in outcome.evicted where channel != name {
            context.node.actor(of: channel)?.evict(participant)
        }
        return try outcome.result.get()
    }

    /// ``Rooms/activate(_:remote:receive:send:slots:firstMediaKind:mids:owner:)``
    func activate(
        _ reservation: Rooms.Reservation,
        _ media: Rooms.NegotiatedMedia,
        owner: OwnerProof?
    ) async throws(RoomError) -> Rooms.Resource {
        let id = reservation.participant
        guard model.participants[id] != nil else { throw .endedDuringSetup }
        let parameters = PeerParameters(
            id: reservation.peer,
            localCredentials: reservation.local.credentials,
            remote: media.remote,
            receive: media.receive,
            send: media.send + media.slots.map(\.parameters),
            publishBitsPerSecondMax: reservation.publishBitsPerSecondMax,
            receiveBitsPerSecondMax: reservation.receiveBitsPerSecondMax,
            share: reservation.share
        )
        beginCall()
        defer { endCall() }
        do {
            try await context.plane(at: reservation.location).addPeer(parameters)
        } catch {
            apply { $0.left(id, reason: .setupFailed) }
            throw .media("\(error)")
        }
        guard let participant = model.participants[id] else {
            enqueue(.remove(reservation.peer), at: reservation.location)
            throw .endedDuringSetup
        }
        return try createResource(reservation, of: participant, media, owner: owner)
    }

    /// Creates the newcomer's resource once the media plane knows its peer.
    private func createResource(
        _ reservation: Rooms.Reservation,
        of participant: Participant,
        _ media: Rooms.NegotiatedMedia,
        owner: OwnerProof?
    ) throws(RoomError) -> Rooms.Resource {
        let id = participant.id
        let resource = Rooms.Resource(
            participant: id,
            peer: reservation.peer,
            channel: name,
            role: participant.role,
            mids: media.mids,
            firstMediaKind: media.firstMediaKind,
            owner: owner,
            local: reservation.local,
            remoteCredentials: media.remote.credentials,
            iceVersion: context.environment.iceVersion(),
            location: reservation.location
        )
        resources[reservation.resource] = resource
        resourceOf[id] = reservation.resource
        context.node.withModel { $0.resourceCreated(reservation.resource, of: id) }
        context.onEvent(.joined(id, reservation.peer, name, participant.role))
        let hasEventReader = mailboxes[id] != nil
        let video = media.send.filter { $0.kind == .video }
        let decodedVideo = video.isEmpty ? nil : Set(video.flatMap(\.codecs).map(\.name))
        try apply { model throws(RoomError) in
            try model.setupCompleted(
                id,
                publications: media.receive.map {
                    Publication(mid: $0.mid, kind: $0.kind, rids: $0.rids, formats: $0.codecs)
                },
                slots: media.send.map { Slot(mid: $0.mid, kind: $0.kind) },
                assigned: media.slots,
                decodedVideo: decodedVideo,
                hasEventReader: hasEventReader
            )
        }
        return resource
    }
}
