import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import Room
import Web

extension AdminResponder {
    /// `GET /clusterz`: the cluster as this node knows it, as a page for browsers and as JSON for others.
    func cluster(_ request: Request) -> Response {
        guard let cluster = api?.operators.cluster else {
            let message = "This node is in no cluster; its own state is at /readyz and /v1/drain."
            return HTTPFailure(.notFound, message).response
        }
        let status = cluster.status
        var response =
            Self.prefersHTML(request.headers[values: .accept])
            ? Self.page(status) : Self.json(200, status.document)
        response.headers[.vary] = "Accept"
        return response
    }

    private static func page(_ status: ClusterStatus) -> Response {
        // Only the style of this very response is in force, whatever a node's name contains.
        let nonce = ParticipantID.random().value
        return Response(
            status: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
                .referrerPolicy: "no-referrer",
                .contentSecurityPolicy:
                    "default-src 'none'; style-src 'nonce-\(nonce)'; base-uri 'none'; form-action 'none'; "
                    + "frame-ancestors 'none'",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: ClusterPage.text(status, nonce: nonce)))
        )
    }

    /// Whether a client wants a page rather than JSON (RFC 9110 §12.5.1).
    /// - Parameter fields: the values of `Accept`.
    static func prefersHTML(_ fields: [String]) -> Bool {
        var weights: [String: Double] = [:]
        for range in fields.joined(separator: ",").split(separator: ",") {
            let parts = range.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
            guard let type = parts.first else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            weights[type] = max(weights[type] ?? 0, weight)
        }
        guard let html = weights["text/html"], html > 0 else { return false }
        return html > weights["application/json"] ?? 0
    }
}

extension OperatorsAPI {
    static let clusterOperation = APIOperation(
        id: "getCluster",
        method: .get,
        path: APIOperation.path("/v1/cluster"),
        summary: "The cluster as this node knows it: its nodes, the links to them, and the store.",
        answer: ClusterStatus.schema,
        problems: [.clusterMissing]
    ) { api, _ in
        guard let cluster = api.cluster else {
            throw Problem(.clusterMissing, "This node is in no cluster; GET /v1/drain tells its own state.")
        }
        return cluster.status.document
    }
}
