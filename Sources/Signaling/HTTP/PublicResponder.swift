import Access
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Room
import Wire

/// Answers everything that arrives at the public listener.
///
/// Routing is done here and not by a router: names are percent-decoded before they are compared, every path answers
/// with the CORS headers, and an unknown method is told from an unknown path.
final class PublicResponder: HTTPResponder {
    typealias Context = PublicContext

    let rooms: Rooms
    let authorizer: any Authorizer
    let configuration: SignalingConfiguration
    let statistics: SignalingStatistics
    let outbound: OutboundBudget
    private let limiter: AddressLimiter
    private let clients: ClientAddresses

    init(
        rooms: Rooms,
        authorizer: any Authorizer,
        configuration: SignalingConfiguration,
        statistics: SignalingStatistics,
        outbound: OutboundBudget,
        limiter: AddressLimiter,
        clients: ClientAddresses
    ) {
        self.rooms = rooms
        self.authorizer = authorizer
        self.configuration = configuration
        self.statistics = statistics
        self.outbound = outbound
        self.limiter = limiter
        self.clients = clients
    }

    func respond(to request: Request, context: PublicContext) async throws -> Response {
        var context = context
        if clients.isProxy(context.channel) {
            let address = clients.address(
                of: context.channel,
                forwardedFor: request.headers[values: .xForwardedFor]
            )
            context.network = address.map { ClientNetwork($0) } ?? .unknown
        }
        var response: Response
        var closes = hasUnwantedBody(request)
        do {
            response = try await route(request, context)
        } catch {
            let failure = HTTPFailure(error)
            if failure.status.kind == .serverError {
                context.logger.debug("request failed", metadata: ["error": "\(failure.sentence.printable)"])
            }
            response = failure.response
            // A refused body of no declared length has no end to read it to.
            closes = closes || failure.closesConnection || request.headers[.transferEncoding] != nil
            if request.method == .head { response = response.createHeadResponse() }
        }
        addCORS(to: &response)
        return closes ? response.closingConnection() : response
    }

    private func route(_ request: Request, _ context: PublicContext) async throws -> Response {
        let target = RequestTarget(request.head.path ?? "/")
        let route = try Route(target: target)
        let methods = route.methods
        guard methods.contains(request.method) else { throw HTTPFailure.methodNotAllowed(methods) }
        // A preflight request carries no token, and never may need one.
        if request.method == .options { return options(for: route) }
        if case .asset(let asset) = route { return asset.response(isHead: request.method == .head) }
        // Every other request may present a token, and to check one costs more than to answer.
        try checkRate(request.method == .delete ? .ending : .request, context)
        switch route {
        case .asset(let asset):
            return asset.response(isHead: request.method == .head)
        case .whip(let channel):
            let credential = credential(of: request)
            try await authorize(.publish(channel), credential)
            return try await publish(
                request,
                credential,
                to: channel,
                displayName: displayName(of: target),
                from: context.network
            )
        case .whep(let channel):
            let credential = credential(of: request)
            try await authorize(.watch(channel), credential)
            return try await watch(
                request,
                credential,
                in: channel,
                following: .currentPublisher,
                from: context.network
            )
        case .whepParticipant(let channel, let participant):
            let credential = credential(of: request)
            try await authorize(.watch(channel), credential)
            return try await watch(
                request,
                credential,
                in: channel,
                following: .participant(participant),
                from: context.network
            )
        case .session(let id):
            return try await session(request, id)
        case .channel(let channel):
            try await authorizeReader(of: channel, request, context)
            return await self.channel(channel, isHead: request.method == .head)
        case .channelEvents(let channel):
            try await authorizeReader(of: channel, request, context)
            return try await events(of: channel, request, context)
        case .signaling:
            // A WebSocket that is granted never comes here.
            throw HTTPFailure(
                .upgradeRequired,
                "This path takes WebSockets: the first request on a connection, with Upgrade: websocket.",
                headers: [.upgrade: "websocket", .secWebSocketVersion: "13"],
                closesConnection: true
            )
        }
    }

    /// The token of a request, verified; `nil` when it has none.
    func credential(of request: Request) -> Credential? {
        bearerToken(request.headers[.authorization]).map { authorizer.verify($0) }
    }

    /// Decides about a reader of a channel.
    private func authorizeReader(
        of channel: ChannelName,
        _ request: Request,
        _ context: PublicContext
    ) async throws {
        let credential = credential(of: request)
        guard case .asViewer = await authorizer.authorize(.observe(channel), credential) else {
            return try await authorize(.observe(channel), credential)
        }
        _ = try await admit(request, credential, to: channel, role: .recvonly, signaling: .other, from: context.network)
    }

    /// - Parameter owner: what the session was opened with that the request is about.
    /// - Throws: 401 or 403.
    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        owner: OwnerProof? = nil
    ) async throws(HTTPFailure) {
        var authorization = await authorizer.authorize(action, credential)
        if authorization == .asOwner {
            let isOwner = owner == nil || owner == credential?.ownerProof
            authorization = isOwner ? .allowed : credential == nil ? .unauthenticated : .forbidden
        }
        switch authorization {
        case .allowed: return
        case .unauthenticated where credential == nil:
            throw HTTPFailure(
                .unauthorized,
                "This server wants a token: send Authorization: Bearer with it.",
                headers: [.wwwAuthenticate: "Bearer"]
            )
        case .unauthenticated:
            throw HTTPFailure(
                .unauthorized,
                "The token is not valid.",
                headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\""]
            )
        case .forbidden, .asViewer, .asOwner: throw HTTPFailure(.forbidden, "The token does not permit this.")
        }
    }

    private func checkRate(_ kind: AddressLimiter.Kind, _ context: PublicContext) throws(HTTPFailure) {
        guard let wait = limiter.take(kind, for: context.network) else { return }
        throw HTTPFailure.overRate(wait)
    }

    /// - Throws: 400 for a name that is too long to be shown.
    private func displayName(of target: RequestTarget) throws(HTTPFailure) -> String? {
        guard let name = target.queryValue("name"), !name.isEmpty else { return nil }
        guard name.unicodeScalars.count <= 64, !name.unicodeScalars.contains(where: \.isControl) else {
            throw HTTPFailure(.badRequest, "A name has at most 64 characters, none of them a control character.")
        }
        return name
    }
}

// MARK: - Methods, OPTIONS and CORS

extension Route {
    /// What may be done with it, as in `Allow`.
    var methods: [HTTPRequest.Method] {
        switch self {
        case .asset, .channel, .channelEvents, .signaling: [.get, .head, .options]
        case .whip, .whep, .whepParticipant: [.post, .get, .head, .options]
        case .session: [.patch, .delete, .get, .head, .options]
        }
    }
}

extension PublicResponder {
    private func options(for route: Route) -> Response {
        var headers: HTTPFields = [
            .allow: route.methods.map(\.rawValue).joined(separator: ", "),
            .accessControlMaxAge: "86400",
        ]
        switch route {
        case .whip, .whep, .whepParticipant: headers[.acceptPost] = ContentType.sdp.rawValue
        case .session: headers[.acceptPatch] = ContentType.fragment.rawValue
        case .asset, .channel, .channelEvents, .signaling: break
        }
        return Response(status: .ok, headers: headers)
    }

    private func addCORS(to response: inout Response) {
        response.headers[.accessControlAllowOrigin] = "*"
        response.headers[.accessControlAllowMethods] = "POST, GET, HEAD, OPTIONS, PATCH, DELETE"
        response.headers[.accessControlAllowHeaders] = "Authorization, Content-Type, If-Match, Link"
        response.headers[.accessControlExposeHeaders] =
            "Location, Link, ETag, Retry-After, Accept-Post, WWW-Authenticate, Nagare-Participant"
    }
}

// MARK: - Bodies

/// The media types of WHIP and WHEP.
enum ContentType: String {
    case sdp = "application/sdp"
    case fragment = "application/trickle-ice-sdpfrag"
}

extension PublicResponder {
    /// Reads a request's body as text.
    ///
    /// - Throws: 415 for another media type, 413 when it is too long, 408 when it takes too long, 400 when it is not
    ///   UTF-8.
    func text(of request: Request, as type: ContentType) async throws -> String {
        let given = request.headers[.contentType]?.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
        guard given == type.rawValue else {
            throw HTTPFailure(.unsupportedMediaType, "This request takes Content-Type: \(type.rawValue).")
        }
        if let encoding = request.headers[.contentEncoding], encoding.lowercased() != "identity" {
            throw HTTPFailure(.unsupportedMediaType, "Send the body without Content-Encoding.")
        }
        let bytes = try await body(of: request)
        guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else {
            throw HTTPFailure(.badRequest, "The body is not UTF-8.")
        }
        return text
    }

    private func body(of request: Request) async throws -> ByteBuffer {
        let limits = configuration.limits
        let tooLong = HTTPFailure(.contentTooLarge, "The body may have at most \(limits.bodyBytesMax) bytes.")
        // One of declared length is read to its end by the HTTP server while that is affordable, so that the client
        // finishes sending before it reads why it was refused.
        if let declared = request.headers[.contentLength].flatMap({ Int($0) }), declared > limits.bodyBytesMax {
            throw tooLong
        }
        let body = try await request.body.read(
            upTo: limits.bodyBytesMax,
            draining: limits.drainBytesMax,
            within: limits.bodyTimeout
        )
        switch body {
        case .whole(let bytes): return bytes
        case .tooLong: throw tooLong
        case .unreadable:
            var failure = tooLong
            failure.closesConnection = true
            throw failure
        case .late:
            throw HTTPFailure(.requestTimeout, "The body took too long to arrive.", closesConnection: true)
        }
    }

    /// Whether a request announces a body that nobody reads and that is too long to be skipped.
    private func hasUnwantedBody(_ request: Request) -> Bool {
        if let declared = request.headers[.contentLength] {
            return Int(declared).map { $0 > configuration.limits.drainBytesMax } ?? true
        }
        let isRead = request.method == .post || request.method == .patch
        return !isRead && request.headers[.transferEncoding] != nil
    }
}

extension Response {
    /// The response, after which the connection is closed whatever else the client has sent.
    func closingConnection() -> Response {
        struct ConnectionClosed: Error {}
        var response = self
        let body = self.body
        response.headers[.connection] = "close"
        let length = body.contentLength
        response.body = ResponseBody(contentLength: length) { writer in
            let parent = writer
            try await body.write(parent)
            // The HTTP server closes a connection whose response ends in an error; this one is complete.
            throw ConnectionClosed()
        }
        return response
    }
}

extension Credential {
    /// Proves that a later request comes from the client that opened a session.
    var ownerProof: OwnerProof { OwnerProof(token: token) }
}
