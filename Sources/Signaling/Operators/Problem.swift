import Access
import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import Web

/// A refused request to the operators' API: an RFC 9457 problem document.
struct Problem: Error, Hashable {
    /// The kinds of problems. The raw value ends the document's `type`.
    enum Kind: String, CaseIterable {
        case invalidRequest = "invalid-request"
        case unauthenticated
        case forbidden
        case pathUnknown = "path-unknown"
        case channelUnknown = "channel-unknown"
        case memberUnknown = "member-unknown"
        case connectionUnknown = "connection-unknown"
        case blockUnknown = "block-unknown"
        case subscriptionUnknown = "subscription-unknown"
        case clusterMissing = "cluster-missing"
        case methodNotAllowed = "method-not-allowed"
        case keyMissing = "key-missing"
        case roleUnavailable = "role-unavailable"
        case blocksFull = "blocks-full"
        case subscriptionsFull = "subscriptions-full"
        case reloadFailed = "reload-failed"
        case stopping
        case bodyTooLarge = "body-too-large"
        case mediaTypeUnsupported = "media-type-unsupported"
        case refusedValue = "refused-value"
        case tooManyRequests = "too-many-requests"
        case failed
        case draining

        var status: Int {
            switch self {
            case .invalidRequest: 400
            case .unauthenticated: 401
            case .forbidden: 403
            case .pathUnknown, .channelUnknown, .memberUnknown, .connectionUnknown, .blockUnknown,
                .subscriptionUnknown, .clusterMissing:
                404
            case .methodNotAllowed: 405
            case .keyMissing, .roleUnavailable, .blocksFull, .subscriptionsFull, .reloadFailed, .stopping: 409
            case .bodyTooLarge: 413
            case .mediaTypeUnsupported: 415
            case .refusedValue: 422
            case .tooManyRequests: 429
            case .failed: 500
            case .draining: 503
            }
        }

        var title: String {
            switch self {
            case .invalidRequest: "The request is invalid"
            case .unauthenticated: "The request has no valid token"
            case .forbidden: "The request is forbidden"
            case .pathUnknown: "There is nothing at this path"
            case .channelUnknown: "Nobody is in this channel"
            case .connectionUnknown: "There is no such connection"
            case .memberUnknown: "The user is not in this channel"
            case .blockUnknown: "There is no such ban or block"
            case .subscriptionUnknown: "There is no such subscription"
            case .clusterMissing: "The node is in no cluster"
            case .methodNotAllowed: "The method is not supported here"
            case .keyMissing: "The node has no key for this token"
            case .roleUnavailable: "The user cannot have this role"
            case .blocksFull: "There is no room for another ban or block"
            case .subscriptionsFull: "There is no room for another subscription"
            case .stopping: "The node was told to stop"
            case .reloadFailed: "The files cannot be used, and nothing changed"
            case .bodyTooLarge: "The body is too large"
            case .mediaTypeUnsupported: "The body is not declared as JSON"
            case .refusedValue: "A value is not usable"
            case .tooManyRequests: "There were too many requests"
            case .failed: "The node failed to perform the operation"
            case .draining: "The node takes no new clients"
            }
        }

        /// The result code that SDKs of apps know; `nil` without one.
        var code: ResultCode? {
            switch self {
            case .invalidRequest, .refusedValue: .badParameter
            case .channelUnknown: .channelUnknown
            case .roleUnavailable: .roleChangeFailed
            default: nil
            }
        }

        /// The document's `type`.
        var uri: String { "urn:nagare:problem:\(rawValue)" }
    }

    let kind: Kind
    /// What is wrong and what to do.
    let detail: String
    var headers: HTTPFields = [:]

    init(_ kind: Kind, _ detail: String, headers: HTTPFields = [:]) {
        self.kind = kind
        self.detail = detail
        self.headers = headers
    }

    /// Maps the errors of handlers.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case RoomError.channelUnknown: self = .channelUnknown
        case RoomError.participantUnknown: self = .memberUnknown
        case RoomError.rolesUnused, RoomError.roleUnavailable, RoomError.publishingForbidden, RoomError.publishersFull,
            RoomError.nodePublishersFull, RoomError.appPublishersFull:
            self.init(.roleUnavailable, HTTPFailure(error).message)
        case RoomError.blocksFull:
            self.init(.blocksFull, "The node holds as many bans and blocks as it can; lift some of them.")
        case RoomError.subscriptionsFull: self.init(.subscriptionsFull, HTTPFailure(error).message)
        case RoomError.draining: self.init(.draining, "The node drains or is shutting down; use another one.")
        default: self.init(.failed, "The node failed to perform the operation; its log says why.")
        }
    }

    static let channelUnknown = Problem(
        .channelUnknown,
        "Nobody is in this channel; GET /v1/channels lists all channels."
    )
    static let memberUnknown = Problem(
        .memberUnknown,
        "The user is not in this channel; GET /v1/channels/CHANNEL/members lists its members."
    )
    static let blockUnknown = Problem(.blockUnknown, "There is no such ban or block, or it has expired.")

    /// The document.
    var json: JSONValue {
        var members: [String: JSONValue] = [
            "type": .string(kind.uri), "title": .string(kind.title), "status": .integer(kind.status),
            "detail": .string(detail),
        ]
        members["code"] = kind.code.map { .integer($0.rawValue) }
        return .object(members)
    }

    var response: Response {
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return Response(
            status: HTTPResponse.Status(code: kind.status),
            headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.bytes))
        )
    }
}
