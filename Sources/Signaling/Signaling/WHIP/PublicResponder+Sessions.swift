import Access
import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import MediaTypes
import Negotiation
import Room
import Sora
import Web
import Wire

// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep).

extension PublicResponder {
    /// Answers a request at a WHIP or WHEP endpoint. A WHEP session without a publisher waits for one.
    func endpoint(
        _ endpoint: EndpointRequest,
        _ request: Request,
        _ credential: Credential?,
        channel: ChannelName,
        path: String,
        from network: ClientNetwork,
        receivedAt: Instant,
        _ trace: JoinTrace? = nil
    ) async throws -> Response {
        guard request.method == .post else { return endpointProbe(request) }
        let offer = try MediaOffer(parsing: try await text(of: request, as: .sdp), for: endpoint)
        // How long a client takes to send its offer is not the node's time.
        let offeredAt = DeadlineTimer.now
        var (join, grants) = try await admit(
            request,
            credential,
            to: channel,
            role: endpoint.role,
            signaling: endpoint.signaling,
            from: network,
            receivedAt: receivedAt,
            trace
        )
        try offer.check(grants.permissions)
        try await limitJoins(to: channel)
        endpoint.apply(to: &join)
        if endpoint.role.publishes {
            // A signed URL is for one stream. Without a user, another publisher at it is the same publisher.
            if join.user == nil, credential?.isOfURL == true { join.user = UserIdentity(path, .stream) }
            join.keepsPlace = join.user != nil
        }
        join.usesTURN = configuration.sora.embeddedTURN == .on
        let reservation = try await directory.reserve(join)
        trace?.reserved(reservation.participant, session: reservation.channelSession)
        let answered = offer.answer(reservation, grants, acceptsData: configuration.sora.offersDataChannels)
        await joins?.began()
        do throws(RoomError) {
            let session = try await directory.activate(
                reservation,
                remote: answered.remote,
                receive: answered.receive,
                send: answered.send,
                data: answered.data,
                firstMediaKind: answered.kinds.first ?? .audio,
                mids: answered.mids,
                owner: credential?.ownerProof,
                endpointPath: path
            )
            await joins?.ended()
            statistics.answered(after: DeadlineTimer.now - offeredAt)
            return created(reservation, session, grants, answer: answered.answer)
        } catch {
            await directory.cancel(reservation)
            await joins?.ended()
            throw error
        }
    }

    /// GET answers 2xx without content. HEAD shows a client that this is an endpoint.
    private func endpointProbe(_ request: Request) -> Response {
        request.method == .head
            ? Response(status: .ok, headers: [.contentType: ContentType.sdp.rawValue])
            : Response(status: .noContent)
    }

    private func created(
        _ reservation: ChannelDirectory.Reservation,
        _ session: ChannelDirectory.Resource,
        _ grants: Grants,
        answer: String
    ) -> Response {
        let path = "/sessions/\(reservation.resource.value)"
        let relation = "urn:ietf:params:\(session.role.publishes ? "whip" : "whep"):ext:nagare:events"
        var response = Response(
            status: .created,
            headers: [
                .contentType: ContentType.sdp.rawValue,
                .location: path,
                .link: "<\(path)/events>; rel=\"\(relation)\"; events=\"\(SessionEventStream.names)\"",
                .eTag: EntityTag(session.iceVersion).text,
                .participant: session.participant.value,
                .cacheControl: "no-store",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
        let servers = [reservation.turn.map { SoraConfiguration.TURN($0) }, configuration.sora.turn]
        for link in servers.compactMap({ $0?.permitted(by: grants) }).flatMap(\.links) {
            response.headers.append(HTTPField(name: .link, value: link))
        }
        return response
    }
}

extension SoraConfiguration.TURN {
    /// The `Link` field values of a session's response (RFC 9725 §4.6), one for each URL.
    var links: [String] {
        let credentials = "username=\(Self.quoted(username)); credential=\(Self.quoted(credential))"
        return urls.map { "<\($0)>; rel=\"ice-server\"; \(credentials); credential-type=\"password\"" }
    }

    /// A quoted string (RFC 9110 §5.6.4).
    private static func quoted(_ text: String) -> String {
        let escaped = text.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }
        return "\"\(escaped.joined())\""
    }
}

// MARK: - The session resource

extension PublicResponder {
    func session(
        _ request: Request,
        _ target: RequestTarget,
        _ id: ResourceID?,
        from network: ClientNetwork
    ) async throws -> Response {
        let (id, session) = try await authorizedSession(request, id, from: network)
        switch request.method {
        case .patch where request.isRefresh: return try await refresh(session, request, target, from: network)
        case .patch: return try await patch(request, id)
        case .delete:
            guard await directory.end(id) else { throw HTTPFailure.sessionUnknown }
            return Response(status: .ok)
        default: return Response(status: .noContent)
        }
    }

    /// `GET /sessions/{id}/statistics`.
    func sessionStatistics(
        _ request: Request,
        _ id: ResourceID?,
        from network: ClientNetwork
    ) async throws -> Response {
        let (_, session) = try await authorizedSession(request, id, from: network)
        guard let statistics = await directory.statistics(of: session.participant) else {
            throw HTTPFailure.sessionUnknown
        }
        let response = Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: statistics.sendingDocument.bytes))
        )
        return request.method == .head ? response.createHeadResponse() : response
    }

    func authorizedSession(
        _ request: Request,
        _ id: ResourceID?,
        from network: ClientNetwork
    ) async throws -> (id: ResourceID, session: ChannelDirectory.Resource) {
        guard let id, let session = await directory.resource(id) else {
            // A client without a valid token does not learn which sessions exist.
            try await authorize(.probe, await credential(of: request), from: network)
            throw HTTPFailure.sessionUnknown
        }
        try await authorize(
            .control(session.channel),
            await credential(of: request),
            owner: session.owner,
            from: network
        )
        return (id, session)
    }

    /// Trickle and ICE restart (RFC 9725 §4.3).
    private func patch(_ request: Request, _ id: ResourceID) async throws -> Response {
        let condition = IfMatch(request.headers[values: .ifMatch])
        guard condition != .missing else {
            throw HTTPFailure(
                .preconditionRequired,
                "Send If-Match with the session's ETag, or * for an ICE restart."
            )
        }
        let fragment = try TrickleFragment(parsing: try await text(of: request, as: .fragment))
        guard let session = await directory.resource(id) else { throw HTTPFailure.sessionUnknown }
        guard condition.matches(session.iceVersion) else { throw HTTPFailure.preconditionFailed }
        guard let credentials = fragment.credentials, credentials != session.remoteCredentials else {
            // The client's candidates are ignored: the server is ICE lite and learns the address from connectivity checks.
            return Response(status: .noContent)
        }
        let expected = condition == .any ? nil : session.iceVersion
        let restarted = try await directory.restartICE(id, expected: expected, remote: credentials)
        let body = restartFragment(local: restarted.local, mids: restarted.mids, kind: restarted.firstMediaKind)
        return Response(
            status: .ok,
            headers: [
                .contentType: ContentType.fragment.rawValue,
                .eTag: EntityTag(restarted.iceVersion).text,
                .cacheControl: "no-store",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: body))
        )
    }
}

/// A strong entity tag (RFC 9110 §8.8.3).
struct EntityTag: Hashable, Sendable {
    let text: String
    init(_ version: ICEVersion) { text = "\"\(version.value)\"" }
}

/// The `If-Match` condition of a request (RFC 9110 §13.1.1).
enum IfMatch: Hashable, Sendable {
    case missing
    /// `*`, also quoted as in some published examples.
    case any
    /// The tags of the request; weak ones never match.
    case tags([String])

    init(_ fields: [String]) {
        // The server's tags have no comma, so a split inside another tag cannot produce a match.
        let tags = fields.joined(separator: ",").split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        guard !fields.isEmpty, tags.contains(where: { !$0.isEmpty }) else {
            self = .missing
            return
        }
        self = tags.contains("*") || tags.contains("\"*\"") ? .any : .tags(tags)
    }

    func matches(_ version: ICEVersion) -> Bool {
        switch self {
        case .missing: false
        case .any: true
        case .tags(let tags): tags.contains(EntityTag(version).text)
        }
    }
}
