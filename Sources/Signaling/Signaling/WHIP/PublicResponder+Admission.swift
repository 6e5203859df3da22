import Access
import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import Room
import Web

extension PublicResponder {
    /// The maximum length of a stored `User-Agent`.
    private static let agentBytesMax = 255

    /// Asks the authorizer to admit a client of WHIP, WHEP or an event stream.
    /// - Parameter receivedAt: As in ``JoinRequest/receivedAt``: before the token was verified, which may wait for its key.
    /// - Returns: The request for ``ChannelDirectory/reserve(_:)``, and the grants.
    /// - Throws: 401 or 403 when the client is denied, 503 when the authorizer failed.
    func admit(
        _ request: Request,
        _ credential: Credential?,
        to channel: ChannelName,
        role: Role,
        signaling: ClientAgent.Signaling,
        from network: ClientNetwork,
        receivedAt: Instant,
        _ trace: JoinTrace? = nil
    ) async throws -> (join: JoinRequest, grants: Grants) {
        let prospect = await directory.joinContext(of: channel)
        let name = request.headers[.userAgent] ?? ""
        let agent = ClientAgent(
            signaling: signaling,
            name: name.utf8.count <= Self.agentBytesMax ? name : String(name.prefix(Self.agentBytesMax / 4))
        )
        let asked = AccessRequest(
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
        let decision = await decide(on: asked, since: receivedAt, trace)
        switch decision {
        case .allowed(let grants):
            var join = JoinRequest(channel: channel, role: role, id: prospect.id, agent: agent, network: network)
            join.receivedAt = receivedAt
            join.authorizedAt = DeadlineTimer.now
            grants.apply(to: &join)
            return (join, grants)
        case .denied(let reason):
            let message = reason ?? "You may not join this channel."
            guard credential != nil else {
                throw HTTPFailure(.unauthorized, message, headers: [.wwwAuthenticate: "Bearer"])
            }
            throw HTTPFailure(.forbidden, message)
        case .failed:
            throw HTTPFailure.overloaded("The server could not decide whether to admit you; try again.")
        }
    }

    private func decide(
        on request: AccessRequest,
        since start: Instant,
        _ trace: JoinTrace?
    ) async -> AccessDecision {
        guard let trace else { return await authorizer.admit(request) }
        return await trace.authorizing(since: start) { await self.authorizer.admit(request) }
    }
}
