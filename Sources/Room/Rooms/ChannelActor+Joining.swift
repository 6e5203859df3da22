import MediaTypes
import Wire

extension ChannelActor {
    /// ``Rooms/prospect(_:)`` of a channel that exists.
    func prospect() -> (session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders) {
        (nextSession, model.counts, model.memberCount, model.decoders)
    }

    /// The session that a newcomer will be in.
    private var nextSession: ChannelSessionID {
        model.session?.id
            ?? context.node.pendingSession(of: name) { context.environment.channelSessionID() }
    }

    /// Reserves a place for a newcomer, in the channel and on the node at once. `nil` when the actor is retired.
    func reserve(_ request: JoinRequest) async throws(RoomError) -> Rooms.Reservation? {
        guard !isRetired else { return nil }
        // An eviction may empty the channel before the newcomer is in it.
        beginCall()
        defer { endCall() }
        let environment = context.environment
        model.now = environment.clock.now()
        let id = request.id ?? environment.participantID()
        let session = environment.sessionID()
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
            session: session,
            channelSession: channelSession,
            peer: place.peer,
            local: LocalTransport(
                credentials: environment.iceCredentials(),
                fingerprint: transport.fingerprint,
                candidates: transport.candidates
            ),
            location: place.location,
            publishBitsPerSecondMax: request.publishBitsPerSecondMax ?? context.limits.publishBitsPerSecondMax,
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

    /// ``Rooms/activate(_:remote:receive:send:slots:headKind:mids:owner:)``
    func activate(
        _ reservation: Rooms.Reservation,
        _ media: Rooms.NegotiatedMedia,
        owner: OwnerProof?
    ) async throws(RoomError) -> Rooms.Session {
        let id = reservation.participant
        guard model.participants[id] != nil else { throw .endedDuringSetup }
        let parameters = PeerParameters(
            id: reservation.peer,
            localCredentials: reservation.local.credentials,
            remote: media.remote,
            receive: media.receive,
            send: media.send + media.slots.map(\.parameters),
            publishBitsPerSecondMax: reservation.publishBitsPerSecondMax,
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
        return try open(reservation, of: participant, media, owner: owner)
    }

    /// The media plane knows the newcomer's peer: opens its session.
    private func open(
        _ reservation: Rooms.Reservation,
        of participant: Participant,
        _ media: Rooms.NegotiatedMedia,
        owner: OwnerProof?
    ) throws(RoomError) -> Rooms.Session {
        let id = participant.id
        let session = Rooms.Session(
            participant: id,
            peer: reservation.peer,
            channel: name,
            role: participant.role,
            mids: media.mids,
            headKind: media.headKind,
            owner: owner,
            local: reservation.local,
            remoteCredentials: media.remote.credentials,
            iceVersion: context.environment.iceVersion(),
            location: reservation.location
        )
        sessions[reservation.session] = session
        sessionOf[id] = reservation.session
        context.node.withModel { $0.sessionOpened(reservation.session, of: id) }
        context.notice(.joined(id, reservation.peer, name, participant.role))
        let isToldNews = mailboxes[id] != nil
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
                isToldNews: isToldNews
            )
        }
        return session
    }
}
