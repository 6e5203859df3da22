import Access
import ChannelTypes
import HTTPTypes
import Hummingbird
import MediaTypes
import NIOCore
import Room
import Web

// Requests for WHIP and WHEP sessions of other nodes.

extension Route {
    /// The session that the request is about; `nil` for others.
    fileprivate var session: ResourceID? {
        switch self {
        case .session(let id), .sessionStatistics(let id), .sessionEvents(let id): id
        default: nil
        }
    }
}

extension PublicResponder {
    /// Passes a request for a session of another node to that node.
    /// - Returns: `nil` for a request that this node answers itself.
    func forwarded(
        _ request: Request,
        _ target: RequestTarget,
        _ route: Route,
        from network: ClientNetwork
    ) async throws -> Response? {
        guard let cluster, let node = route.session?.node, node != cluster.incarnation else { return nil }
        if case .sessionEvents = route {
            // A stream lasts as long as its session: the client reads it where the session is.
            let status = cluster.status
            guard let address = status.address(of: node) else {
                // A client takes an unknown session for one that has ended.
                if status.knows(node) { throw HTTPFailure.nodeWithoutAddress }
                throw try await unknownSession(request, from: network)
            }
            return Self.redirect(to: address, target)
        }
        var body: [UInt8] = []
        if request.method == .patch { body = Array(try await self.body(of: request).readableBytesView) }
        let forwarded = ForwardedRequest(
            method: request.method.rawValue,
            target: target.text,
            headers: HTTPField.Name.ofForwardedRequests.flatMap { name in
                request.headers[values: name].map { ForwardedRequest.Field(name: name.canonicalName, value: $0) }
            },
            body: body
        )
        var failure: NodeRequestError?
        do throws(NodeRequestError) {
            let answer = try await cluster.ask(NodeRequest(kind: .forward, body: forwarded.encoded), of: node)
            if let response = ForwardedResponse(encoded: answer) { return Response(response) }
        } catch {
            failure = error
        }
        statistics.refused(.forwarding)
        if failure == .noNode { throw try await unknownSession(request, from: network) }
        throw HTTPFailure(
            .serviceUnavailable,
            "The node of this session does not answer; try again.",
            headers: [.retryAfter: "1"]
        )
    }

    /// The failure for a session that does not exist. A client without a valid token does not learn which sessions exist.
    private func unknownSession(_ request: Request, from network: ClientNetwork) async throws -> HTTPFailure {
        try await authorize(.probe, await credential(of: request), from: network)
        return .sessionUnknown
    }

    /// The response that sends a client to another node, which has the same paths.
    static func redirect(to address: NodeAddress, _ target: RequestTarget) -> Response {
        Response(
            status: .temporaryRedirect,
            headers: [.location: address.url + target.text, .cacheControl: "no-store"]
        )
    }

    /// Answers a request that another node passed on. It is not passed on again. The other node logs the client's address.
    func respond(to forwarded: ForwardedRequest) async -> ForwardedResponse {
        var response: Response
        do {
            response = try await self.response(to: forwarded)
        } catch {
            response = HTTPFailure(error).response
        }
        if forwarded.method == HTTPRequest.Method.head.rawValue { response = response.createHeadResponse() }
        return await ForwardedResponse(response)
    }

    private func response(to forwarded: ForwardedRequest) async throws -> Response {
        guard forwarded.body.count <= ForwardedRequest.bodyBytesMax,
            forwarded.target.utf8.count <= ForwardedRequest.targetBytesMax,
            let method = HTTPRequest.Method(forwarded.method)
        else { throw HTTPFailure(.badRequest, "The request is too long, or its method is none.") }
        var headers = HTTPFields()
        for field in forwarded.headers {
            guard let name = HTTPField.Name(field.name), HTTPField.Name.ofForwardedRequests.contains(name) else {
                continue
            }
            headers.append(HTTPField(name: name, value: field.value))
        }
        if !forwarded.body.isEmpty { headers[.contentLength] = String(forwarded.body.count) }
        let target = RequestTarget(forwarded.target)
        let request = Request(
            head: HTTPRequest(
                method: method,
                scheme: nil,
                authority: nil,
                path: forwarded.target,
                headerFields: headers
            ),
            body: RequestBody(buffer: ByteBuffer(bytes: forwarded.body))
        )
        let route = try Route(target: target)
        switch route {
        case .session(let id) where [.patch, .delete, .get, .head].contains(method):
            return try await session(request, target, id, from: .unknown)
        case .sessionStatistics(let id) where [.get, .head].contains(method):
            return try await sessionStatistics(request, id, from: .unknown)
        default: throw HTTPFailure.unknownPath
        }
    }
}

extension HTTPField.Name {
    /// What a session's requests may have.
    fileprivate static let ofForwardedRequests: [Self] = [
        .authorization, .contentType, .contentEncoding, .ifMatch, .traceparent,
    ]
    /// What a session's responses may have.
    fileprivate static let ofForwardedResponses: [Self] = [
        .contentType, .cacheControl, .eTag, .retryAfter, .wwwAuthenticate, .allow, .link, .acceptPatch,
    ]
}

extension Response {
    fileprivate init(_ forwarded: ForwardedResponse) {
        var headers = HTTPFields()
        for field in forwarded.headers {
            guard let name = HTTPField.Name(field.name), HTTPField.Name.ofForwardedResponses.contains(name) else {
                continue
            }
            headers.append(HTTPField(name: name, value: field.value))
        }
        let status = (200...599).contains(forwarded.status) ? forwarded.status : 502
        let body = forwarded.body.prefix(ForwardedResponse.bodyBytesMax)
        self.init(
            status: HTTPResponse.Status(code: status),
            headers: headers,
            body: body.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: body))
        )
    }
}

/// Collects the body of a response.
private struct BodyCollector: ResponseBodyWriter {
    /// The body, up to one byte more than ``ForwardedResponse/bodyBytesMax``.
    final class Storage {
        var bytes: [UInt8] = []
    }
    let storage: Storage

    func write(_ buffer: ByteBuffer) async throws {
        let room = ForwardedResponse.bodyBytesMax + 1 - storage.bytes.count
        storage.bytes += buffer.readableBytesView.prefix(room)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

extension ForwardedResponse {
    fileprivate init(_ response: Response) async {
        let storage = BodyCollector.Storage()
        do {
            try await response.body.write(BodyCollector(storage: storage))
        } catch {
            // The response of a connection that is closed afterwards is complete by then.
        }
        let bytes = storage.bytes
        guard bytes.count <= Self.bodyBytesMax else {
            self.init(status: 500, headers: [], body: [])
            return
        }
        self.init(
            status: response.status.code,
            headers: HTTPField.Name.ofForwardedResponses.flatMap { name in
                response.headers[values: name].map { ForwardedRequest.Field(name: name.canonicalName, value: $0) }
            },
            body: bytes
        )
    }
}
