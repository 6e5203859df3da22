import Access
import HTTPTypes
import Hummingbird
import MediaTypes
import Negotiation
import Room
import Wire

// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep).

extension PublicResponder {
    /// WHIP's endpoint.
    func publish(
        _ request: Request,
        _ credential: Credential?,
        to channel: ChannelName,
        displayName: String?,
        from network: ClientNetwork
    ) async throws -> Response {
        guard request.method == .post else { return endpointProbe(request) }
        let offer = try await text(of: request, as: .sdp)
        var (join, grants) = try await admit(
            request,
            credential,
            to: channel,
            role: .sendonly,
            signaling: .whip,
            from: network
        )
        join.displayName = displayName
        let reservation = try await rooms.reserve(join)
        do {
            let negotiation = try negotiatePublish(
                offer: offer,
                local: reservation.local,
                sessionID: Self.descriptionID(reservation),
                videoBitsPerSecondMax: grants.announcedVideoBitsPerSecond
            )
            try check(negotiation.receive.map(\.kind), grants.permissions, "send")
            let session = try await rooms.activate(
                reservation,
                remote: negotiation.remote,
                receive: negotiation.receive,
                firstMediaKind: negotiation.receive.first?.kind ?? .audio,
                mids: negotiation.receive.map(\.mid),
                owner: credential?.ownerProof
            )
            return created(reservation, session, answer: negotiation.answer)
        } catch {
            await rooms.cancel(reservation)
            throw error
        }
    }

    /// WHEP's endpoints. Without a publisher the session waits for one.
    func watch(
        _ request: Request,
        _ credential: Credential?,
        in channel: ChannelName,
        following: Following,
        from network: ClientNetwork
    ) async throws -> Response {
        guard request.method == .post else { return endpointProbe(request) }
        let offer = try await text(of: request, as: .sdp)
        var (join, grants) = try await admit(
            request,
            credential,
            to: channel,
            role: .recvonly,
            signaling: .whep,
            from: network
        )
        join.following = following
        let reservation = try await rooms.reserve(join)
        do {
            var generator = SystemRandomNumberGenerator()
            let negotiation = try negotiateWatch(
                offer: offer,
                local: reservation.local,
                streamID: reservation.participant.value,
                sessionID: Self.descriptionID(reservation),
                using: &generator
            )
            try check(negotiation.send.map(\.kind), grants.permissions, "receive")
            let session = try await rooms.activate(
                reservation,
                remote: negotiation.remote,
                send: negotiation.send,
                firstMediaKind: negotiation.send.first?.kind ?? .audio,
                mids: negotiation.send.map(\.mid),
                owner: credential?.ownerProof
            )
            return created(reservation, session, answer: negotiation.answer)
        } catch {
            await rooms.cancel(reservation)
            throw error
        }
    }

    /// - Throws: 403 when the offer has a kind of media that was not granted.
    private func check(_ kinds: [MediaKind], _ permissions: Permissions, _ verb: String) throws(HTTPFailure) {
        guard let kind = kinds.first(where: { !permissions.permits($0) }) else { return }
        throw HTTPFailure(.forbidden, "You may not \(verb) \(kind.rawValue); leave it out of the offer.")
    }

    /// GET is a 2xx without content. HEAD tells a client that it found an endpoint.
    private func endpointProbe(_ request: Request) -> Response {
        request.method == .head
            ? Response(status: .ok, headers: [.contentType: ContentType.sdp.rawValue])
            : Response(status: .noContent)
    }

    /// The `o=` line's session identifier, of which 62 bits are usable with every parser (RFC 9429 §5.2.1).
    private static func descriptionID(_ reservation: Rooms.Reservation) -> UInt64 {
        UInt64.random(in: 1..<(1 << 62))
    }

    private func created(_ reservation: Rooms.Reservation, _ session: Rooms.Resource, answer: String) -> Response {
        Response(
            status: .created,
            headers: [
                .contentType: ContentType.sdp.rawValue,
                .location: "/sessions/\(reservation.resource.value)",
                .eTag: EntityTag(session.iceVersion).text,
                .participant: session.participant.value,
                .cacheControl: "no-store",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }
}

// MARK: - The session resource

extension PublicResponder {
    func session(_ request: Request, _ id: ResourceID?) async throws -> Response {
        guard let id, let session = await rooms.resource(id) else {
            // Strangers without a token do not even learn which sessions there are.
            try await authorize(.probe, credential(of: request))
            throw HTTPFailure.sessionUnknown
        }
        try await authorize(.control(session.channel), credential(of: request), owner: session.owner)
        switch request.method {
        case .patch: return try await patch(request, id)
        case .delete:
            guard await rooms.end(id) else { throw HTTPFailure.sessionUnknown }
            return Response(status: .ok)
        default: return Response(status: .noContent)
        }
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
        let fragment = try parse(fragment: try await text(of: request, as: .fragment))
        guard let session = await rooms.resource(id) else { throw HTTPFailure.sessionUnknown }
        guard condition.matches(session.iceVersion) else { throw HTTPFailure.preconditionFailed }
        guard let credentials = fragment.credentials, credentials != session.remoteCredentials else {
            // Candidates of the client are not used: it sends the checks, and its address is learned from them.
            return Response(status: .noContent)
        }
        let expected = condition == .any ? nil : session.iceVersion
        let restarted = try await rooms.restartICE(id, expected: expected, remote: credentials)
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
    /// `*`, also quoted as some published examples show it.
    case any
    /// Tags as they were sent; weak ones match nothing.
    case tags([String])

    init(_ fields: [String]) {
        // Our tags hold no comma, so that splitting inside a foreign one cannot make it match.
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
