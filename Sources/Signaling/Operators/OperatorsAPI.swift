import Access
import Ayame
import ChannelTypes
import HTTPTypes
import History
import JSON
import Room
import Web
import Webhooks

/// The operators' REST API below `/v1`: channels, members, kicks, bans, blocks and tokens.
///
/// ``operations`` is the one table of what it can do. <doc:OperatorsAPI> has examples.
struct OperatorsAPI: Sendable {
    let directory: ChannelDirectory
    /// The registrations of the 1:1 relay.
    let relayCalls: AyameCalls
    /// Sign tokens and URLs. A reload changes them.
    let currentKeys: @Sendable () -> AccessKeys
    var keys: AccessKeys { currentKeys() }
    /// `nil` where events are not posted; there are no subscriptions then.
    let subscriptions: EventSubscriptions?
    let drain: NodeDrain
    /// The connections of the last hours; `nil` where they are not kept.
    var history: ConnectionHistory?
    /// The name of this node.
    var name = NodeIdentity().name
    /// The other nodes; `nil` outside of a cluster.
    var cluster: (any OtherNodes)?
    /// Reads the node's files again.
    var reload: ReloadAction = { () throws(ReloadFailure) in ReloadReport() }
    /// A unique identifier for a new token.
    var makeID: @Sendable () -> String = { ParticipantID.random().value }

    /// The maximum length of a body, in bytes: enough for the longest list of users, escaped.
    static let bodyBytesMax = 256 * 1024

    /// All operations, in the order of the OpenAPI document.
    static let operations: [APIOperation] =
        channelOperations + memberOperations + connectionOperations + memberSubscriptionOperations + banOperations
        + blockOperations
        + relayOperations + subscriptionOperations + drainOperations
        + [clusterOperation, operatorOperation, tokenOperation, reloadOperation, documentOperation]

    /// Finds the operation of a request.
    /// - Parameter segments: the path's, percent-encoded, without the first, `v1`.
    static func operation(
        _ method: HTTPRequest.Method,
        _ segments: [Substring]
    ) throws(Problem) -> (operation: APIOperation, path: [APIOperation.PathParameter: String]) {
        var decoded = ["v1"]
        for segment in segments {
            guard let text = percentDecoded(segment) else {
                throw Problem(.pathUnknown, "The path is not percent-encoded UTF-8.")
            }
            decoded.append(text)
        }
        var allowed: [HTTPRequest.Method] = []
        // HEAD is GET without the body.
        let wanted = method == .head ? .get : method
        for operation in operations {
            guard let path = operation.match(decoded) else { continue }
            if operation.method == wanted { return (operation, path) }
            allowed += operation.method == .get ? [.get, .head] : [operation.method]
        }
        guard allowed.isEmpty else {
            let list = allowed.map(\.rawValue).joined(separator: ", ")
            throw Problem(.methodNotAllowed, "This path supports \(list).", headers: [.allow: list])
        }
        throw Problem(.pathUnknown, "There is no such path; GET /v1/openapi.json describes all of them.")
    }

    /// Checks a request against its operation, and performs it.
    /// - Parameters:
    ///   - query: as sent.
    ///   - body: without a body empty.
    ///   - role: of whoever asks.
    /// - Returns: the answer's body; `nil` for none.
    func perform(
        _ operation: APIOperation,
        path: [APIOperation.PathParameter: String],
        query: Substring?,
        body: [UInt8],
        role: OperatorRole
    ) async throws -> JSONValue? {
        for (parameter, value) in path {
            do throws(JSONShapeError) {
                try parameter.schema.check(.string(value), "The path's \(parameter.rawValue)")
            } catch {
                throw Problem(.pathUnknown, error.message)
            }
        }
        let call = APICall(
            path: path,
            query: try Self.query(query, operation.query),
            body: JSONFields(try Self.body(body, operation)),
            role: role
        )
        guard let channel = path[.channel].flatMap({ ChannelName($0) }) else {
            return try await operation.handle(self, call)
        }
        return try await directory.withRemoteParticipants(of: channel) { try await operation.handle(self, call) }
    }

    private static func query(_ text: Substring?, _ properties: [APIProperty]) throws(Problem) -> [String: JSONValue] {
        var values: [String: JSONValue] = [:]
        for pair in text?.split(separator: "&") ?? [] {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = percentDecoded(parts[0], plusIsSpace: true),
                let value = percentDecoded(parts.count == 2 ? parts[1] : "", plusIsSpace: true)
            else { throw Problem(.invalidRequest, "The query is not percent-encoded UTF-8.") }
            guard let property = properties.first(where: { $0.name == name }) else {
                throw Problem(.invalidRequest, "\"\(name.prefix(64))\" is no parameter of this operation.")
            }
            guard values[name] == nil else {
                throw Problem(.invalidRequest, "The parameter \"\(name)\" is there twice.")
            }
            var typed = JSONValue.string(value)
            if case .integer = property.schema, let integer = Int64(value) { typed = .integer(integer) }
            do throws(JSONShapeError) {
                try property.schema.check(typed, "\"\(name)\"")
            } catch {
                throw Problem(.invalidRequest, error.message)
            }
            values[name] = typed
        }
        return values
    }

    private static func body(_ bytes: [UInt8], _ operation: APIOperation) throws(Problem) -> [String: JSONValue] {
        guard let schema = operation.body else {
            guard bytes.isEmpty else { throw Problem(.invalidRequest, "This operation takes no body; send none.") }
            return [:]
        }
        if bytes.isEmpty, !operation.isBodyRequired { return [:] }
        guard let value = try? JSONValue(parsing: bytes) else {
            throw Problem(.invalidRequest, "The body is not JSON.")
        }
        do throws(JSONShapeError) {
            try schema.check(value, "the body")
        } catch {
            throw Problem(.invalidRequest, error.message)
        }
        return value.object ?? [:]
    }

    private static let documentOperation = APIOperation(
        id: "getOpenAPI",
        method: .get,
        path: APIOperation.path("/v1/openapi.json"),
        summary: "This document.",
        answer: .freeObject,
        isPublic: true
    ) { _, _ in Self.document }
}

extension ParticipantID {
    /// With 122 random bits.
    static func random() -> Self {
        var generator = SystemRandomNumberGenerator()
        return Self(using: &generator)
    }
}
