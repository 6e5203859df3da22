import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import HummingbirdCore
import JSON
package import Logging
import NIOCore
import ServiceLifecycle
package import Web
import Wire

/// The admin listener: `/metrics`, `/healthz`, `/livez`, `/readyz`, `/clusterz`, the ``AdminAPI`` and the operators' API below
/// `/v1`.
///
/// With a token both APIs require it. Metrics and probes never do, so the listener belongs on loopback or a private network.
package struct AdminServer: Service {
    private let application: Application<AdminResponder>
    private let host: String
    private let port: Int

    /// - Parameters:
    ///   - certificate: For HTTPS; `nil` for HTTP.
    ///   - api: The admin API; `nil` for metrics and probes only.
    ///   - token: The Bearer token that both APIs require; evaluated at each request, because a reload changes it. Without one
    ///     `/v1` is served on loopback only.
    ///   - readToken: The one that permits reading only; evaluated at each request. Without one there is no such role.
    ///   - hostNames: The `Host` values that a loopback listener accepts besides `localhost` and IP addresses. This prevents
    ///     DNS rebinding by web pages.
    ///   - origins: The web origins that may use the API; `*` for all.
    ///   - metrics: Makes the Prometheus text of one scrape.
    ///   - whyNotReady: Why the node accepts no new clients, in one line for operators; `nil` while it does.
    ///   - stalledLoops: The names of the loops that serve nobody; with any the node is neither alive nor ready.
    ///   - onRunning: Called with the bound port when the listener accepts connections.
    package init(
        host: String,
        port: Int,
        certificate: HTTPSCertificate? = nil,
        api: AdminAPI? = nil,
        token: @escaping @autoclosure @Sendable () -> String? = nil,
        readToken: @escaping @autoclosure @Sendable () -> String? = nil,
        hostNames: [String] = [],
        origins: [String] = [],
        logger: Logger,
        metrics: @escaping @Sendable () async -> String,
        whyNotReady: @escaping @Sendable () async -> String?,
        stalledLoops: @escaping @Sendable () -> [String] = { [] },
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.host = host
        self.port = port
        let limits = HTTPLimits(connectionsMax: 200)
        let isLoopback = IPAddress(host)?.isLoopback ?? (host == "localhost")
        application = Application(
            responder: AdminResponder(
                api: api,
                access: AdminAccess(token: token(), readToken: readToken(), isLoopback: isLoopback),
                hosts: isLoopback ? HostNames(hostNames) : nil,
                origins: Set(origins),
                refusals: RefusalLog(logger, now: { DeadlineTimer.now }),
                metrics: metrics,
                whyNotReady: whyNotReady,
                stalledLoops: stalledLoops
            ),
            server: .http1(limits: limits, certificate: certificate),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port),
                serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(limits.connectionsMax)
            ),
            onServerRunning: { await onRunning(listenerStarted($0) ?? port) },
            logger: logger
        )
    }

    /// The application, for tests without a bound port.
    var testable: Application<AdminResponder> { application }

    package func run() async throws {
        do {
            try await application.run()
        } catch let error as IOError {
            throw ServerStartError(binding: host, port, error)
        }
    }
}

/// Answers the requests of the admin listener.
struct AdminResponder: HTTPResponder {
    typealias Context = ClientContext

    /// The maximum length of a body, in bytes: enough for the longest `push` message.
    static let bodyBytesMax = 1 << 20
    /// The maximum length of a refused body that is read to its end.
    static let drainBytesMax = 4 << 20
    let api: AdminAPI?
    let access: AdminAccess
    /// The accepted `Host` values; `nil` for all.
    var hosts: HostNames?
    let origins: Set<String>
    let refusals: RefusalLog
    let metrics: @Sendable () async -> String
    let whyNotReady: @Sendable () async -> String?
    var stalledLoops: @Sendable () -> [String] = { [] }
    /// The time limit for receiving a body.
    var bodyTimeout = Duration.seconds(10)

    func respond(to request: Request, context: ClientContext) async throws -> Response {
        let target = RequestTarget(request.head.path ?? "/")
        var audit = AuditDetails()
        let response = await answer(request, target, context, &audit)
        if response.status.code >= 400 { logRefusal(request, target, audit, response, context) }
        return response
    }

    private func answer(
        _ request: Request,
        _ target: RequestTarget,
        _ context: ClientContext,
        _ audit: inout AuditDetails
    ) async -> Response {
        if let hosts, !hosts.permit(request.head.authority) {
            api?.statistics.refused(.host)
            let reason = "This listener accepts an IP address, localhost or a name of --admin-host-name as Host."
            audit.refusal = reason
            return Self.text(.misdirectedRequest, "\(reason)\n")
        }
        let path = target.segments
        if let api, path.first == "v1" {
            let response = await operate(request, target, api, &audit)
            if ![.get, .head, .options].contains(request.method) {
                logChange("\(request.method.rawValue) \(target.path)", audit, request, response, context)
            }
            return response
        }
        if api != nil, path.isEmpty, Self.isForPage(request) {
            return Response(status: .found, headers: [.location: "/ui/", .vary: "Accept"])
        }
        if api != nil, path == ["ui"] { return Response(status: .found, headers: [.location: "/ui/"]) }
        if api != nil, path.count == 2, path[0] == "ui" { return page(path[1], request) }
        if let api, path.isEmpty {
            let response = await command(request, api, &audit)
            let operation = request.headers[.soraTarget]
            if request.method == .post, AdminAPI.role(of: operation) == .operate {
                logChange(operation ?? "", audit, request, response, context)
            }
            return addingCORS(to: response, request)
        }
        if let api, path.count == 3, path[0] == "api", path[1] == "connections" {
            return await connection(path[2], request, api, &audit)
        }
        guard path.count == 1, ["metrics", "healthz", "livez", "readyz", "clusterz"].contains(path[0]) else {
            return HTTPFailure.unknownPath.response
        }
        guard request.method == .get || request.method == .head else {
            return HTTPFailure.methodNotAllowed([.get, .head]).response
        }
        let response: Response
        switch path[0] {
        case "metrics":
            response = Self.text(.ok, await metrics(), type: "text/plain; version=0.0.4; charset=utf-8")
        case "clusterz": response = cluster(request)
        case "livez", "readyz":
            let stalled = stalledLoops()
            var trouble = stalled.isEmpty ? nil : "stalled loops: \(stalled.joined(separator: " "))"
            if trouble == nil, path[0] == "readyz" { trouble = await whyNotReady() }
            response = trouble.map { Self.text(.serviceUnavailable, "\($0)\n") } ?? Self.text(.ok, "ok\n")
        default:
            response = Self.text(.ok, "ok\n")
        }
        return request.method == .head ? response.createHeadResponse() : response
    }

    // MARK: The API

    private func command(_ request: Request, _ api: AdminAPI, _ audit: inout AuditDetails) async -> Response {
        if request.method == .options { return Response(status: .noContent, headers: [.allow: "POST, OPTIONS"]) }
        guard request.method == .post else { return HTTPFailure.methodNotAllowed([.post, .options]).response }
        guard let credential = access.credential(of: request.headers) else { return Self.unauthenticated(&audit) }
        let target = request.headers[.soraTarget]
        guard credential.role.permits(AdminAPI.role(of: target)) else {
            return Self.refused(APIFailure(403, "ROLE-NOT-PERMITTED", OperatorRole.refusal), &audit)
        }
        guard isPermitted(request.headers[.origin]) else {
            let failure = APIFailure(
                403,
                "ORIGIN-REFUSED",
                "Pages of this origin must not use the API; permit the origin with --admin-origin."
            )
            return Self.refused(failure, &audit)
        }
        let body: [UInt8]
        let read = try? await request.body.read(
            upTo: Self.bodyBytesMax,
            draining: Self.drainBytesMax,
            within: bodyTimeout
        )
        switch read {
        case .whole(let bytes): body = Array(bytes.readableBytesView)
        case .tooLong: return Self.bodyRefused(&audit)
        case .unreadable, .late, nil: return Self.bodyRefused(&audit).closingConnection()
        }
        audit.take(body: body)
        let answer = await api.answer(target: target, body: body)
        if answer.status >= 400 { audit.refusal = answer.body["error_reason"]?.string }
        return Self.json(answer.status, answer.body)
    }

    /// `GET /api/connections/{id}`.
    private func connection(
        _ name: Substring,
        _ request: Request,
        _ api: AdminAPI,
        _ audit: inout AuditDetails
    ) async -> Response {
        guard request.method == .get || request.method == .head else {
            return HTTPFailure.methodNotAllowed([.get, .head]).response
        }
        guard access.credential(of: request.headers) != nil else { return Self.unauthenticated(&audit) }
        guard let id = ParticipantID(name), let document = await api.document(of: id) else {
            return HTTPFailure(.notFound, "There is no such connection.").response
        }
        let response = Self.json(200, document)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private static func refused(_ failure: APIFailure, _ audit: inout AuditDetails) -> Response {
        audit.refusal = failure.message
        return json(failure.status, failure.json)
    }

    private static func unauthenticated(_ audit: inout AuditDetails) -> Response {
        let failure = APIFailure(
            401,
            "AUTHENTICATION-FAILURE",
            "Send the node's --admin-token as Authorization: Bearer TOKEN."
        )
        var response = refused(failure, &audit)
        response.headers[.wwwAuthenticate] = "Bearer"
        return response
    }

    private static func bodyRefused(_ audit: inout AuditDetails) -> Response {
        let failure = APIFailure(
            413,
            "BODY-TOO-LARGE",
            "The body has more than \(bodyBytesMax) bytes, or took too long to arrive; send less."
        )
        return refused(failure, &audit)
    }

    /// Whether requests of this origin may use the API. A page that resolves its own name to this machine (DNS rebinding)
    /// needs no CORS permission, but cannot hide its origin. Requests of other programs have no origin.
    func isPermitted(_ origin: String?) -> Bool {
        guard let origin else { return true }
        return origins.contains("*") || origins.contains(origin)
    }

    /// Permits only the configured origins: any page that an operator visits could otherwise use an API that only the
    /// operator's machine can reach.
    private func addingCORS(to response: Response, _ request: Request) -> Response {
        var response = response
        response.headers[.accessControlAllowHeaders] =
            "Origin, X-Requested-With, Content-Type, Accept, x-sora-target"
        response.headers[.accessControlAllowMethods] = "POST, OPTIONS"
        response.headers[.accessControlMaxAge] = "1000"
        if origins.contains("*") {
            response.headers[.accessControlAllowOrigin] = "*"
        } else if let origin = request.headers[.origin], origins.contains(origin) {
            response.headers[.accessControlAllowOrigin] = origin
            response.headers[.vary] = "Origin"
        }
        return response
    }

    // MARK: Responses

    static func json(_ status: Int, _ value: JSONValue) -> Response {
        Response(
            status: HTTPResponse.Status(code: status),
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: value.bytes))
        )
    }

    private static func text(
        _ status: HTTPResponse.Status,
        _ text: String,
        type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(
            status: status,
            headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text))
        )
    }
}

/// The `Host` values that a loopback listener accepts (RFC 9110 §7.2).
struct HostNames: Hashable, Sendable {
    private let names: Set<String>

    /// - Parameter names: The names besides `localhost` and IP addresses.
    init(_ names: [String]) { self.names = Set(names.map { $0.lowercased() } + ["localhost"]) }

    /// - Parameter host: A name or address with or without a port. Requests of browsers always have one.
    func permit(_ host: String?) -> Bool {
        guard let host, !host.isEmpty else { return true }
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return false }
            return IPAddress(host[host.index(after: host.startIndex)..<end]) != nil
        }
        var name = host.prefix { $0 != ":" }
        if name.last == "." { name.removeLast() }
        return IPAddress(name) != nil || names.contains(name.lowercased())
    }
}

extension HTTPField.Name {
    /// The name of the requested operation.
    static let soraTarget = Self("x-sora-target")!
}
