import Access
import HTTPTypes
import Hummingbird
import Room

extension PublicResponder {
    /// The longest text that a client says of itself and that is kept.
    private static let agentBytesMax = 255

    /// Asks whoever decides whether a newcomer over WHIP or WHEP may take part, and says how it is to join and what it was
    /// granted.
    /// - Throws: 401 or 403 when it may not, 503 when nobody could decide.
    func admit(
        _ request: Request,
        _ credential: Credential?,
        to channel: ChannelName,
        role: Role,
        signaling: ClientAgent.Signaling,
        from network: ClientNetwork
    ) async throws -> (join: JoinRequest, grants: Grants) {
        let prospect = await rooms.joinContext(of: channel)
        let name = request.headers[.userAgent] ?? ""
        let agent = ClientAgent(
            signaling: signaling,
            name: name.utf8.count <= Self.agentBytesMax ? name : String(name.prefix(Self.agentBytesMax / 4))
        )
        let decision = await authorizer.admit(
            AccessRequest(
                channel: channel,
                role: role,
                participant: prospect.id,
                session: prospect.session,
                agent: agent,
                network: network,
                credential: credential,
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
            guard credential != nil else {
                throw HTTPFailure(.unauthorized, sentence, headers: [.wwwAuthenticate: "Bearer"])
            }
            throw HTTPFailure(.forbidden, sentence)
        case .failed:
            throw HTTPFailure.overloaded("The server could not find out whether you may take part; try again.")
        }
    }
}
