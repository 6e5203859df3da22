import Admission
import Base
import ChannelData
import ChannelTypes
import MediaTypes
import Wire

extension Channel {
    /// ``ChannelDirectory/joinContext(of:)`` of a channel that exists.
    func joinContext() async -> (
        session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders
    )? {
        guard !isRetired else { return nil }
        beginCall()
        defer { endCall() }
        await open()
        return (nextSession, model.counts, model.memberCount, model.decoders)
    }

    /// Waits in the channel's queue once for each step of a join: what authorization needs, the place, its transport, the media,
    /// and the answer of the media plane.
    /// - Parameter waited: Called after each.
    func waitAsJoin(_ waited: @Sendable () -> Void) async {
        for step in 1...5 {
            // A change of the actor's state: the optimiser lets nobody wait for an executor that nothing needs.
            probesTaken &+= 1
            waited()
            if step < 5 { await Task.yield() }
        }
    }

    /// The identifier of the session that a newcomer will be in.
    var nextSession: ChannelSessionID {
        model.session?.id
            ?? context.node.pendingSession(of: name) { context.environment.channelSessionID() }
    }

    /// Reserves a place for a newcomer, in the channel and on the node in one step. `nil` when the actor is retired.
    func reserve(_ request: JoinRequest) async throws(RoomError) -> ChannelDirectory.Reservation? {
        guard !isRetired else { return nil }
        // An eviction may empty the channel before the newcomer joins it.
        beginCall()
        defer { endCall() }
        await open()
        let environment = context.environment
        model.now = environment.clock.now()
        if let id = model.resumable(by: request) { return try await resume(id, request) }
        let id = request.id ?? environment.participantID()
        let resource = environment.resourceID(of: context.cluster == nil ? nil : context.incarnation)
        let place = try admit(request, id: id)
        let channelSession = nextSession
        do throws(RoomError) {
            let secret = request.keepsPlace ? environment.resumeSecret() : nil
            let effects = try model.joined(request, as: place, session: channelSession, resumeSecret: secret)
            if let participant = model.participants[id] {
                noteAttendance(of: participant, as: place.peer, hasJoined: false)
            }
            perform(effects)
        } catch {
            let now = model.now
            context.node.withModel { $0.left(id, reason: .setupFailed, at: now) }
            throw error
        }
        context.node.forgetPendingSession(of: name)
        publish()
        return await reservation(of: place, resource, request, channelSession)
    }

    /// A newcomer takes the place of a participant.
    private func resume(_ id: ParticipantID, _ request: JoinRequest) async throws(RoomError)
        -> ChannelDirectory.Reservation
    {
        let environment = context.environment
        let resource = environment.resourceID(of: context.cluster == nil ? nil : context.incarnation)
        var named = request
        // A client that does not choose a name again keeps it.
        named.clientID = model.participants[id]?.member.clientID
        let (admitted, now) = (named, model.now)
        let place = try context.node.withModel { node throws(RoomError) in try node.resumed(admitted, as: id, at: now) }
        perform(model.resumed(request, at: place, secret: environment.resumeSecret()))
        return await reservation(of: place, resource, named, nextSession, resumed: named.clientID)
    }

    private func reservation(
        of place: ParticipantLocation,
        _ resource: ResourceID,
        _ request: JoinRequest,
        _ session: ChannelSessionID,
        resumed clientID: String? = nil
    ) async -> ChannelDirectory.Reservation {
        let transport = context.plane(at: place.location).transport
        let turn = request.usesTURN ? await openTURN(place) : nil
        return ChannelDirectory.Reservation(
            participant: place.participant,
            resource: resource,
            resumedClientID: clientID,
            channelSession: session,
            peer: place.peer,
            local: LocalTransport(
                credentials: context.environment.iceCredentials(),
                fingerprint: transport.fingerprint,
                candidates: transport.candidates,
                tcpCandidates: transport.tcpCandidates
            ),
            turn: turn,
            location: place.location,
            publishBitsPerSecondMax: request.publishBitsPerSecondMax ?? context.limits.publishBitsPerSecondMax,
            receiveBitsPerSecondMax: request.receiveBitsPerSecondMax,
            data: request.data,
            share: number
        )
    }

    /// Gets TURN credentials for a newcomer's peer. They end with the participant, whether or not the peer is ever added.
    private func openTURN(_ place: ParticipantLocation) async -> TURNAccess? {
        let access = await context.plane(at: place.location).openTURN(for: place.peer)
        guard access != nil else { return nil }
        guard model.participants[place.participant]?.peer == place.peer else {
            enqueue(.remove(place.peer), at: place.location)
            return nil
        }
        turnPeers[place.participant] = (place.peer, place.location)
        return access
    }

    /// Ends the TURN credentials of a participant whose peer was not added.
    func closeTURN(of id: ParticipantID) {
        guard let open = turnPeers.removeValue(forKey: id) else { return }
        enqueue(.remove(open.peer), at: open.location)
    }

    private func admit(_ request: JoinRequest, id: ParticipantID) throws(RoomError) -> ParticipantLocation {
        let (check, now) = (model.checkAdmission(of: request), model.now)
        let outcome = context.node.withModel { $0.admit(request, id: id, check: check, at: now) }
        let own = outcome.evicted.filter { $0.channel == name }.map(\.participant)
        if !own.isEmpty { perform(model.leftTogether(own, reason: .evicted)) }
        for (channel, evicted) in Dictionary(grouping: outcome.evicted, by: { $0.channel }) where channel != name {
            context.node.actor(of: channel)?.evict(evicted.map { $0.participant })
        }
        return try outcome.result.get()
    }

    /// ``ChannelDirectory/activate(_:remote:receive:send:slots:data:firstMediaKind:mids:owner:endpointPath:)``
    func activate(
        _ reservation: ChannelDirectory.Reservation,
        _ media: ChannelDirectory.NegotiatedMedia
    ) async throws(RoomError) -> ChannelDirectory.Resource {
        let id = reservation.participant
        guard model.participants[id]?.peer == reservation.peer else { throw .endedDuringSetup }
        let parameters = PeerParameters(
            id: reservation.peer,
            localCredentials: reservation.local.credentials,
            remote: media.remote,
            receive: media.receive,
            send: media.send + media.slots.map(\.parameters),
            publishBitsPerSecondMax: reservation.publishBitsPerSecondMax,
            receiveBitsPerSecondMax: reservation.receiveBitsPerSecondMax,
            data: media.data,
            share: reservation.share,
            events: self
        )
        beginCall()
        defer { endCall() }
        do {
            try await context.plane(at: reservation.location).addPeer(parameters)
        } catch {
            end(reservation, reason: .setupFailed)
            throw .media("\(error)")
        }
        guard let participant = model.participants[id], participant.peer == reservation.peer else {
            enqueue(.remove(reservation.peer), at: reservation.location)
            throw .endedDuringSetup
        }
        // From now on the credentials end with the peer.
        turnPeers[id] = nil
        return try createResource(reservation, of: participant, media)
    }

    /// Creates the newcomer's resource once the media plane knows its peer.
    private func createResource(
        _ reservation: ChannelDirectory.Reservation,
        of participant: Participant,
        _ media: ChannelDirectory.NegotiatedMedia
    ) throws(RoomError) -> ChannelDirectory.Resource {
        let id = participant.id
        let resource = ChannelDirectory.Resource(
            participant: id,
            peer: reservation.peer,
            channel: name,
            role: participant.role,
            mids: media.mids,
            firstMediaKind: media.firstMediaKind,
            owner: media.owner,
            endpointPath: media.endpointPath,
            local: reservation.local,
            remoteCredentials: media.remote.credentials,
            iceVersion: context.environment.iceVersion(),
            location: reservation.location
        )
        resources[reservation.resource] = resource
        resourceOf[id] = reservation.resource
        context.node.withModel { $0.resourceCreated(reservation.resource, of: id) }
        context.onEvent(.joined(noteAttendance(of: participant, as: reservation.peer, hasJoined: true)))
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
        if media.data != nil, let participant = model.participants[id], participant.peer == reservation.peer {
            perform(
                data.joined(participant.forData, plan: reservation.data, at: context.environment.clock.now().instant)
            )
        }
        return resource
    }

    /// A participant that takes its place again has attended from its first join on.
    @discardableResult
    private func noteAttendance(
        of participant: Participant,
        as peer: PeerID,
        hasJoined: Bool
    ) -> ChannelDirectory.ParticipantInfo {
        let earlier = attendances[participant.id].flatMap { $0.hasJoined ? $0.start : nil }
        let attendance = ChannelDirectory.ParticipantInfo(
            participant: participant.id,
            peer: peer,
            channel: name,
            role: participant.role,
            network: participant.terms.network,
            agent: participant.agent,
            hasJoined: hasJoined,
            start: earlier ?? context.environment.clock.now().instant
        )
        attendances[participant.id] = attendance
        return attendance
    }
}
