import Access
import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Pages
import Room
import Web

/// Answers all HTTP requests of the public listener.
///
/// It routes requests itself, without Hummingbird's router: it percent-decodes names before comparing them, adds CORS
/// headers to every response, and answers 405 for an unknown method of a known path.
final class PublicResponder: HTTPResponder {
    typealias Context = ClientContext

    let directory: ChannelDirectory
    let authorizer: any Authorizer
    let configuration: SignalingConfiguration
    let statistics: SignalingStatistics
    let outbound: WaitingBudget
    /// The other nodes; `nil` outside of a cluster.
    let cluster: (any OtherNodes)?
    /// Limits newcomers; `nil` outside of a cluster.
    let joins: JoinGate?
    /// `nil` for a node without traces.
    let traces: JoinTracer?
    private let refusals: RefusalLog
    private let limiter: AddressLimiter
    private let clients: ClientAddresses
    private let logger: Logger

    init(
        directory: ChannelDirectory,
        authorizer: any Authorizer,
        configuration: SignalingConfiguration,
        statistics: SignalingStatistics,
        outbound: WaitingBudget,
        cluster: (any OtherNodes)?,
        joins: JoinGate?,
        traces: JoinTracer?,
        refusals: RefusalLog,
        limiter: AddressLimiter,
        clients: ClientAddresses,
        logger: Logger
    ) {
        self.directory = directory
        self.authorizer = authorizer
        self.configuration = configuration
        self.statistics = statistics
        self.outbound = outbound
        self.cluster = cluster
        self.joins = joins
        self.traces = traces
        self.refusals = refusals
        self.limiter = limiter
        self.clients = clients
        self.logger = logger
    }

    func respond(to request: Request, context: ClientContext) async throws -> Response {
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
            if failure.status == .internalServerError, !Task.isCancelled {
                refusals.write(
                    "request failed",
                    of: context.network,
                    level: .error,
                    ["error": "\(String(describing: error).printable)", "address": "\(context.network)"]
                )
            }
            logRefusal(failure, request, context)
            response = failure.response
            // A refused body without a declared length cannot be skipped.
            closes = closes || failure.closesConnection || request.headers[.transferEncoding] != nil
            if request.method == .head { response = response.createHeadResponse() }
        }
        addCORS(to: &response)
        return closes ? response.closingConnection() : response
    }

    /// Logs who was refused, where and why. The path of a session is a secret, so it is not logged.
    private func logRefusal(_ failure: HTTPFailure, _ request: Request, _ context: ClientContext) {
        let route = try? Route(target: RequestTarget(request.head.path ?? "/"))
        refusals.write(
            "request refused",
            of: context.network,
            level: Self.logLevel(of: failure, on: route),
            [
                "channel": "\(route?.channel?.value.printable ?? "-")", "protocol": "\(route?.protocolName ?? "http")",
                "method": "\(request.method.rawValue.printable)", "status": "\(failure.status.code)",
                "address": "\(context.network)", "reason": "\(failure.message.printable)",
            ]
        )
    }

    /// Working clients, scanners and what exceeds a rate cause refusals at level debug. All others are somebody's mistake, or an
    /// attempt.
    private static func logLevel(of failure: HTTPFailure, on route: Route?) -> Logger.Level {
        // Scanners look for paths that are not there.
        if route == nil, failure.message == HTTPFailure.unknownPath.message { return .debug }
        return switch (failure.status, route) {
        case (_, .asset), (.tooManyRequests, _): .debug
        // A session or a channel ended meanwhile, or another ICE restart came first.
        case (.notFound, .session), (.notFound, .sessionStatistics), (.notFound, .sessionEvents),
            (.notFound, .channel), (.notFound, .channelEvents), (.preconditionFailed, .session):
            .debug
        default: .notice
        }
    }

    private func route(_ request: Request, _ context: ClientContext) async throws -> Response {
        let target = RequestTarget(request.head.path ?? "/")
        let route = try Route(target: target)
        let methods = route.methods
        guard methods.contains(request.method) else { throw HTTPFailure.methodNotAllowed(methods) }
        // A preflight request has no token and must not need one.
        if request.method == .options { return options(for: route) }
        if case .asset(let asset) = route { return page(asset, request) }
        // All other requests may present a token, and verifying it is the expensive part.
        try checkRate(request.method == .delete ? .ending : .request, context)
        if let response = try await forwarded(request, target, route, from: context.network) {
            if [.unauthorized, .forbidden].contains(response.status) {
                logRefusal(HTTPFailure(response.status, "The node of the session refused it."), request, context)
            }
            return response
        }
        switch route {
        case .asset(let asset):
            return page(asset, request)
        case .whip(let channel):
            let endpoint = EndpointRequest.publish(displayName: try displayName(of: target))
            return try await tracedEndpoint(endpoint, request, target, channel, context)
        case .whep(let channel):
            let endpoint = EndpointRequest.watch(.currentPublisher, height: try videoHeight(of: target))
            return try await tracedEndpoint(endpoint, request, target, channel, context)
        case .whepParticipant(let channel, let participant):
            let endpoint = EndpointRequest.watch(.participant(participant), height: try videoHeight(of: target))
            return try await tracedEndpoint(endpoint, request, target, channel, context)
        case .session(let id):
            return try await session(request, target, id, from: context.network)
        case .sessionStatistics(let id):
            return try await sessionStatistics(request, id, from: context.network)
        case .sessionEvents(let id):
            return try await sessionEvents(request, id, context)
        case .channel(let channel):
            let reader = try await authorizeReader(of: channel, request, context)
            try await directory.checkApp(reader.app, of: channel)
            return await self.channel(channel, isHead: request.method == .head)
        case .channelEvents(let channel):
            let reader = try await authorizeReader(of: channel, request, context)
            return try await events(of: channel, reader, request, context)
        case .signaling, .relay:
            // A granted WebSocket handshake never reaches the responder.
            throw HTTPFailure(
                .upgradeRequired,
                "This path accepts WebSockets only: send Upgrade: websocket in the first request of a connection.",
                headers: [.upgrade: "websocket", .secWebSocketVersion: "13"],
                closesConnection: true
            )
        }
    }

    private func page(_ asset: PageAsset, _ request: Request) -> Response {
        let nodes = cluster?.status.others.compactMap(\.address) ?? []
        return asset.response(isHead: request.method == .head, nodes: nodes)
    }

    /// Verifies the request's token, or without one the signature of its URL, once for both decisions of the authorizer.
    func authorizedEndpoint(
        _ endpoint: EndpointRequest,
        _ request: Request,
        _ target: RequestTarget,
        _ channel: ChannelName,
        _ context: ClientContext,
        receivedAt: Instant,
        _ trace: JoinTrace?
    ) async throws -> Response {
        let action: AuthorizedAction = endpoint.role == .sendonly ? .publish(channel) : .watch(channel)
        var credential = await credential(of: request)
        if credential == nil, let signature = target.queryValue(URLSignature.parameter) {
            credential = authorizer.verify(signature: signature, ofPath: String(target.path), for: action)
        }
        try await authorize(action, credential, from: context.network)
        if request.method == .post, let response = await redirected(target, to: channel) { return response }
        return try await self.endpoint(
            endpoint,
            request,
            credential,
            channel: channel,
            path: String(target.path),
            from: context.network,
            receivedAt: receivedAt,
            trace
        )
    }

    /// The verified Bearer token of a request; `nil` without one.
    func credential(of request: Request) async -> Credential? {
        guard let token = bearerToken(request.headers[.authorization]) else { return nil }
        return await authorizer.verify(token)
    }

    /// What authorizes a request that reads a channel's participants.
    struct Reader {
        /// The expiry of the permission; `nil` without one.
        var expiry: AccessExpiry?
        /// The app of its token; `nil` for others.
        var app: String?
    }

    /// Authorizes a request that reads the channel's participants.
    private func authorizeReader(
        of channel: ChannelName,
        _ request: Request,
        _ context: ClientContext
    ) async throws -> Reader {
        let receivedAt = DeadlineTimer.now
        let credential = await credential(of: request)
        guard case .asViewer = await authorizer.authorize(.observe(channel), credential, from: context.network) else {
            try await authorize(.observe(channel), credential, from: context.network)
            return Reader(expiry: credential?.expiry, app: credential?.app)
        }
        let (_, grants) = try await admit(
            request,
            credential,
            to: channel,
            role: .recvonly,
            signaling: .other,
            from: context.network,
            receivedAt: receivedAt
        )
        return Reader(expiry: grants.permissions.expiry, app: grants.app)
    }

    /// - Parameters:
    ///   - owner: The owner of the WHIP or WHEP session of the request; `nil` for one that was opened without a token.
    ///   - network: The client's, for the log.
    /// - Throws: 401 or 403.
    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        owner: OwnerProof? = nil,
        from network: ClientNetwork
    ) async throws(HTTPFailure) {
        var authorization = await authorizer.authorize(action, credential, from: network)
        if authorization == .asOwner {
            let isOwner = owner == nil || owner == credential?.ownerProof
            authorization = isOwner ? .allowed : credential == nil ? .unauthenticated : .notOwner
        }
        switch authorization {
        case .allowed: return
        case .unauthenticated where credential == nil:
            throw HTTPFailure(
                .unauthorized,
                "This server requires a token: send it as Authorization: Bearer.",
                headers: [.wwwAuthenticate: "Bearer"]
            )
        case .unauthenticated:
            throw HTTPFailure(
                .unauthorized,
                "The token is not valid.",
                headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\""]
            )
        case .refused(let reason, isForbidden: true, let kind): throw HTTPFailure(.forbidden, reason, kind: kind)
        case .refused(let reason, isForbidden: false, let kind):
            throw HTTPFailure(
                .unauthorized,
                reason,
                kind: kind,
                headers: [.wwwAuthenticate: credential == nil ? "Bearer" : "Bearer error=\"invalid_token\""]
            )
        case .forbidden, .asViewer, .asOwner: throw HTTPFailure(.forbidden, "The token does not permit this.")
        }
    }

    private func checkRate(_ kind: AddressLimiter.Kind, _ context: ClientContext) throws(HTTPFailure) {
        guard let wait = limiter.take(kind, for: context.network) else { return }
        throw HTTPFailure.overRate(wait)
    }

    /// - Throws: 400 for a name that is too long or has control characters.
    private func displayName(of target: RequestTarget) throws(HTTPFailure) -> String? {
        guard let name = target.queryValue("name"), !name.isEmpty else { return nil }
        guard name.unicodeScalars.count <= 64, !name.unicodeScalars.contains(where: \.isControl) else {
            throw HTTPFailure(.badRequest, "A name has at most 64 characters, none of them a control character.")
        }
        return name
    }

    /// - Throws: 400 for an invalid height.
    private func videoHeight(of target: RequestTarget) throws(HTTPFailure) -> Int? {
        guard let text = target.queryValue("height") else { return nil }
        guard let height = Int(text), JoinRequest.videoHeights.contains(height) else {
            let bounds = "\(JoinRequest.videoHeights.lowerBound) to \(JoinRequest.videoHeights.upperBound)"
            throw HTTPFailure(.badRequest, "The height has to be a whole number of pixels from \(bounds).")
        }
        return height
    }
}

// MARK: - Methods, OPTIONS and CORS

extension Route {
    /// The permitted methods, for `Allow`.
    var methods: [HTTPRequest.Method] {
        switch self {
        case .asset, .sessionStatistics, .sessionEvents, .channel, .channelEvents, .signaling, .relay:
            [.get, .head, .options]
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
        case .session:
            headers[.acceptPatch] = "\(ContentType.fragment.rawValue), \(ContentType.json.rawValue)"
        case .asset, .sessionStatistics, .sessionEvents, .channel, .channelEvents, .signaling, .relay: break
        }
        return Response(status: .ok, headers: headers)
    }

    private func addCORS(to response: inout Response) {
        response.headers[.accessControlAllowOrigin] = "*"
        response.headers[.accessControlAllowMethods] = "POST, GET, HEAD, OPTIONS, PATCH, DELETE"
        response.headers[.accessControlAllowHeaders] = "Authorization, Content-Type, If-Match, Link, traceparent"
        response.headers[.accessControlExposeHeaders] =
            "Location, Link, ETag, Retry-After, Accept-Post, WWW-Authenticate, Nagare-Participant"
    }
}

// MARK: - Bodies

/// The media types of requests of WHIP and WHEP.
enum ContentType: String {
    case sdp = "application/sdp"
    case fragment = "application/trickle-ice-sdpfrag"
    case json = "application/json"
}

extension Request {
    /// The media type of the body in lower case, without parameters; `nil` without a `Content-Type`.
    var mediaType: String? {
        headers[.contentType]?.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
    }

    /// Whether the header declares no body.
    var hasNoBody: Bool {
        headers[.transferEncoding] == nil && (headers[.contentLength].flatMap { Int($0) } ?? 0) == 0
    }
}

extension PublicResponder {
    /// Reads a request's body as text.
    ///
    /// - Throws: 415 for another media type, 413 when it is too long, 408 when it takes too long, 400 when it is not
    ///   UTF-8.
    func text(of request: Request, as type: ContentType) async throws -> String {
        guard request.mediaType == type.rawValue else {
            throw HTTPFailure(.unsupportedMediaType, "This request requires Content-Type: \(type.rawValue).")
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

    func body(of request: Request) async throws -> ByteBuffer {
        let limits = configuration.limits
        let tooLong = HTTPFailure(.contentTooLarge, "The body may have at most \(limits.bodyBytesMax) bytes.")
        // The HTTP server skips a body of moderate declared length, so that the client finishes sending and reads the
        // response.
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

    /// Whether a request has a body that is not read and too long to skip.
    private func hasUnwantedBody(_ request: Request) -> Bool {
        if let declared = request.headers[.contentLength] {
            return Int(declared).map { $0 > configuration.limits.drainBytesMax } ?? true
        }
        let isRead = request.method == .post || request.method == .patch
        return !isRead && request.headers[.transferEncoding] != nil
    }
}

extension Authorization {
    /// The refusal of a valid token that is not the owner's.
    fileprivate static let notOwner = Self.refused(
        reason: "This session belongs to another token: send that one, or one of the same user and the same app.",
        isForbidden: true,
        kind: .tokenInvalid
    )
}
