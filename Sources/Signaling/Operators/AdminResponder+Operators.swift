import Access
import HTTPTypes
import Hummingbird
import JSON
import Logging
import Web

extension AdminResponder {
    /// Answers a request to `/v1`.
    func operate(
        _ request: Request,
        _ target: RequestTarget,
        _ api: AdminAPI,
        _ audit: inout AuditDetails
    ) async -> Response {
        do {
            let response = try await operation(request, target, api, &audit)
            return request.method == .head ? response.createHeadResponse() : response
        } catch {
            let problem = Problem(error)
            // Who asked is told that the log says why.
            audit.refusal = problem.kind == .failed && !(error is Problem) ? "\(error)" : problem.detail
            var response = problem.response
            if response.headers[.connection] != nil { response = response.closingConnection() }
            return request.method == .head ? response.createHeadResponse() : response
        }
    }

    private func operation(
        _ request: Request,
        _ target: RequestTarget,
        _ api: AdminAPI,
        _ audit: inout AuditDetails
    ) async throws -> Response {
        // Who has no token learns nothing about paths.
        let found = Result { () throws(Problem) in
            try OperatorsAPI.operation(request.method, Array(target.segments.dropFirst()))
        }
        let wanted = try? found.get().operation
        let refusal = await access.refusal(
            request.headers,
            role: wanted?.role ?? .read,
            isPublic: wanted?.isPublic ?? false,
            at: DeadlineTimer.now
        )
        if let refusal { throw refusal }
        guard isPermitted(request.headers[.origin]) || isOfOwnPage(request) else {
            throw Problem(
                .forbidden,
                "Pages of this origin must not use the API; permit the origin with --admin-origin."
            )
        }
        let (operation, path) = try found.get()
        let body = try await body(of: request)
        audit.take(body: body)
        if !body.isEmpty, operation.body != nil, !Self.isJSON(request.headers[.contentType]) {
            throw Problem(.mediaTypeUnsupported, "Send the body as JSON, with Content-Type: application/json.")
        }
        let answer = try await api.operators.perform(
            operation,
            path: path,
            query: target.query,
            body: body,
            role: access.credential(of: request.headers)?.role ?? .read
        )
        audit.take(answer: answer)
        guard let answer else {
            return Response(
                status: HTTPResponse.Status(code: operation.status),
                headers: [.cacheControl: "no-store"]
            )
        }
        return Self.json(operation.status, answer)
    }

    /// Whether a page of this listener sent the request. Browsers name the origin of all that changes something.
    ///
    /// A page whose name leads here (DNS rebinding) has this origin, too. On loopback its name is refused before, and elsewhere it
    /// would need a token.
    private func isOfOwnPage(_ request: Request) -> Bool {
        guard let origin = request.headers[.origin], let host = request.head.authority, !host.isEmpty else {
            return false
        }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }

    private func body(of request: Request) async throws -> [UInt8] {
        let read = try? await request.body.read(
            upTo: OperatorsAPI.bodyBytesMax,
            draining: Self.drainBytesMax,
            within: bodyTimeout
        )
        switch read {
        case .whole(let bytes): return Array(bytes.readableBytesView)
        case .tooLong, .unreadable, .late, nil:
            let isUnread = if case .tooLong = read { false } else { true }
            throw Problem(
                .bodyTooLarge,
                "The body has more than \(OperatorsAPI.bodyBytesMax) bytes, or took too long to arrive; send less.",
                headers: isUnread ? [.connection: "close"] : [:]
            )
        }
    }

    private static func isJSON(_ type: String?) -> Bool {
        let name = type?.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        return name == "application/json"
    }

    /// Logs what an operator changed, of whom and from where, or was refused because of its role. Tokens are secrets, and
    /// bodies may have some, so they are not logged.
    func logChange(
        _ operation: String,
        _ audit: AuditDetails,
        _ request: Request,
        _ response: Response,
        _ context: ClientContext
    ) {
        guard let credential = access.credential(of: request.headers) else { return }
        let metadata = audit.metadata.merging([
            "operation": "\(operation.printable)", "status": "\(response.status.code)",
            "role": "\(credential.role.rawValue)", "token": "\(credential.rawValue)",
            "address": "\(context.network)",
        ]) { $1 }
        if response.status.code < 400 {
            context.logger.notice("operator made a change", metadata: metadata)
        } else if response.status == .forbidden, !credential.role.permits(.operate) {
            context.logger.notice("operator may not make a change", metadata: metadata)
        }
    }

    /// Logs a request that was refused, with the reason that the response has. Whoever is without a valid token may send very many.
    func logRefusal(
        _ request: Request,
        _ target: RequestTarget,
        _ audit: AuditDetails,
        _ response: Response,
        _ context: ClientContext
    ) {
        let metadata = audit.metadata.merging([
            "operation": "\((request.headers[.soraTarget] ?? "\(request.method.rawValue) \(target.path)").printable)",
            "status": "\(response.status.code)", "address": "\(context.network)",
            "reason": "\((audit.refusal ?? response.status.reasonPhrase).printable)",
        ]) { $1 }
        refusals.write(
            "operator's request refused",
            of: context.network,
            level: logLevel(of: response.status, request),
            metadata
        )
    }

    private func logLevel(of status: HTTPResponse.Status, _ request: Request) -> Logger.Level {
        let reads = [.get, .head, .options].contains(request.method)
        // The change of an operator who may only read has a line of its own.
        if status == .forbidden, !reads, access.credential(of: request.headers)?.role.permits(.operate) == false {
            return .debug
        }
        switch status {
        case .internalServerError: return .error
        // A wrong token, a page of a foreign origin, or a foreign name for this machine may be an attack.
        case .unauthorized, .forbidden, .misdirectedRequest: return .notice
        case .tooManyRequests: return .debug
        default: break
        }
        // A probe of a node that is not ready is no refusal, and who reads what is gone already is told so.
        return reads ? .debug : .notice
    }
}
