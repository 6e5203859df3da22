import HTTPTypes
import Hummingbird
import Room
import Wire

extension PublicResponder {
    /// The longest text that a client says of itself and that is kept.
    private static let agentBytesMax = 255

    /// Asks whoever decides whether a newcomer over WHIP or WHEP may take part, and says how it is to join and what it was
    /// granted.
    /// - Throws: 401 or 403 when it may not, 503 when nobody could decide.
    func admit(
        _ request: Request,
        to channel: ChannelName,
        role: Role,
        signaling: ClientAgent.Signaling,
        from network: ClientNetwork
    ) async throws -> (join: JoinRequest, grants: Grants) {
        let prospect = await rooms.prospect(channel)
        let name = request.headers[.userAgent] ?? ""
        let agent = ClientAgent(
            signaling: signaling,
            name: name.utf8.count <= Self.agentBytesMax ? name : String(name.prefix(Self.agentBytesMax / 4))
        )
        let token = bearerToken(request.headers[.authorization])
        let decision = await authorizer.admit(
            AccessRequest(
                channel: channel,
                role: role,
                participant: prospect.id,
                session: prospect.session,
                agent: agent,
                network: network,
                token: token,
                counts: prospect.counts,
                members: prospect.members
            )
        )
        switch decision {
        case .allowed(let grants):
            var join = JoinRequest(channel: channel, role: role, id: prospect.id, agent: agent, network: network)
            grants.apply(to: &join)
            return (join, grants)
        case .denied(let reason):
            let sentence = reason ?? "You may not take part in this channel."
            guard token != nil else {
                throw HTTPFailure(.unauthorized, sentence, headers: [.wwwAuthenticate: "Bearer"])
            }
            throw HTTPFailure(.forbidden, sentence)
        case .failed:
            throw HTTPFailure.overloaded("The server could not find out whether you may take part; try again.")
        }
    }
}

extension Grants {
    /// Whether media of a kind may be sent or received.
    func permits(_ kind: MediaKind) -> Bool {
        switch kind {
        case .audio: audio.isEnabled != false
        case .video: video.isEnabled != false
        }
    }

    /// The most that may be published, in bit/s.
    var publishBitsPerSecondMax: Int? { publishBitRate.map { $0 * 1_000 } }
    /// What the client's video is told of the granted rate: audio, headers and retransmissions take the rest of it.
    var announcedVideoBitsPerSecond: Int? { publishBitsPerSecondMax.map { $0 / 100 * 85 } }

    /// Puts into a newcomer's request what is the same in every signaling.
    func apply(to request: inout JoinRequest) {
        if let clientID {
            request.clientID = clientID
            request.bundleScope = .client(clientID)
        }
        if let bundleID {
            request.bundleID = bundleID
            request.bundleScope = .granted
        }
        if let eventMetadata { request.eventMetadataJSON = eventMetadata.text }
        if let notifyMetadata { request.authorizedMetadataJSON = notifyMetadata.text }
        if let notifies { request.receivesNotifications = notifies }
        if let requestedRID { request.layer = requestedRID.layer }
        if let forwardingFilters { request.filters = request.role.watches ? forwardingFilters : [] }
        if let connectionLifetime { request.lifetime = connectionLifetime }
        if let publishBitsPerSecondMax { request.publishBitsPerSecondMax = publishBitsPerSecondMax }
        if let channelConnectionsMax { request.channelConnectionsMax = channelConnectionsMax }
    }
}
