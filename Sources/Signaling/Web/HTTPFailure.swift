package import Access
import Base
import ChannelTypes
package import HTTPTypes
package import Hummingbird
import JSON
import MediaTypes
import NIOCore
import Negotiation

/// A refused request: the HTTP status, and a sentence for the client's developer: what is wrong and what to do.
package struct HTTPFailure: Error {
    package var status: HTTPResponse.Status
    package var message: String
    var headers: HTTPFields
    /// Why the client may not join or publish, for programs; `nil` for other failures.
    var kind: RefusalKind?
    /// Whether the server closes the connection, because it does not read the rest of the request.
    package var closesConnection = false

    package init(
        _ status: HTTPResponse.Status,
        _ message: String,
        kind: RefusalKind? = nil,
        headers: HTTPFields = [:],
        closesConnection: Bool = false
    ) {
        self.status = status
        self.kind = kind
        self.message = message
        self.headers = headers
        self.closesConnection = closesConnection
    }

    /// Maps all errors to HTTP statuses.
    package init(_ error: any Error) {
        switch error {
        case let failure as HTTPFailure: self = failure
        case let error as RoomError: self.init(error)
        case NegotiationError.malformed(let message): self.init(.badRequest, message)
        case NegotiationError.unsupported(let message): self.init(.unprocessableContent, message)
        default: self.init(.internalServerError, "The server failed to process this request.")
        }
    }

    private init(_ error: RoomError) {
        switch error {
        case .channelsFull: self = .overLimit("The server has reached its limit of channels; try again later.")
        case .nodeFull: self = .overLimit("The server has reached its limit of participants; try again later.")
        case .networkFull(let share): self = .overShare(share)
        case .channelFull: self = .overLimit("The channel has reached its limit of participants; try again later.")
        case .publishersFull: self = .overPublishers("The channel")
        case .nodePublishersFull: self = .overPublishers("The server")
        case .appPublishersFull: self = .overPublishers("The app")
        case .listenersFull: self = .overloaded("The server has reached its limit of event streams; try again later.")
        case .networkListenersFull:
            self.init(
                .tooManyRequests,
                "Your address has reached its limit of event streams; close some.",
                headers: [.retryAfter: "5"]
            )
        case .draining:
            self = .overloaded(
                "The server takes no new clients, because it is about to stop; connect again in a moment."
            )
        case .endedDuringSetup: self = .overloaded("The session ended while it was being set up; try again.")
        case .media(let message): self = .overloaded("The media loop refused the session: \(message)")
        case .sessionsBlocked, .connectionsBlocked:
            self = .overloaded("The server accepts no new clients at the moment; connect again later.")
        case .channelUnknown: self.init(.notFound, "Nobody is in this channel.")
        case .filterUnknown: self.init(.notFound, "There is no filter of this name.")
        case .filterExists:
            self.init(.conflict, "A filter of this name exists; update it, or choose another name.")
        case .filterVersionMismatch: self.init(.conflict, "The filter has another version; read it again.")
        case .filtersTooLarge:
            self.init(.unprocessableContent, "A list may have at most \(ForwardingFilter.bounds).")
        case .spotlightNumberInvalid:
            let numbers = Spotlight.numbers
            let range = "\(numbers.lowerBound) to \(numbers.upperBound)"
            self.init(.unprocessableContent, "The spotlight number must be in \(range).")
        case .userPresent:
            self.init(
                .conflict,
                "This user is in the channel already; end the other session first.",
                kind: .userPresent
            )
        case .alreadyPublishing:
            self.init(
                .conflict,
                "This user publishes to the channel already; end the other session first.",
                kind: .alreadyPublishing
            )
        case .expiryNotLater:
            self.init(.forbidden, "The new token does not expire later than the present one; send a later one.")
        case .spotlightUnused: self.init(.conflict, "The participant joined without spotlight.")
        case .profileMismatch:
            self.init(.conflict, "The channel has another profile; join with the profile of its members.")
        case .rolesUnused:
            self.init(.conflict, "The channel is not interactive, so its members' roles do not change.")
        case .roleUnavailable:
            self.init(
                .conflict,
                "Only a connection with role \"sendrecv\" can change its role; connect with \"sendrecv\"."
            )
        case .publishingForbidden:
            self.init(.forbidden, "The client's token does not permit it to publish; connect with one that does.")
        case .audienceByOperator:
            self.init(
                .forbidden,
                "An operator or moderator made this user audience, and only one of them can make it host.",
                kind: .audienceOnly
            )
        case .appMismatch:
            self.init(
                .forbidden,
                "The channel is in use by another app; choose another channel.",
                kind: .channelOfOtherApp
            )
        case .forbidden: self.init(.forbidden, "Only an operator may ask for this.")
        case .mutedByOperator:
            self.init(.conflict, "An operator muted this client, and only an operator can unmute it.")
        case .moderatorsOnly:
            self.init(.forbidden, "Only a host whose token has \"nagare.moderate\" can do this to others.")
        case .changesTooFrequent:
            self.init(
                .tooManyRequests,
                "The client changes its role or pushes metadata too often; wait a second and repeat the latest change.",
                headers: [.retryAfter: "1"]
            )
        case .subscriptionsFull:
            self.init(.unprocessableContent, "Too many users have a subscription of their own; subscribe to all users.")
        case .participantUnknown: self.init(.notFound, "There is no such participant in this channel.")
        case .sessionUnknown, .resourceUnknown: self = .sessionUnknown
        case .restartUnderWay:
            self.init(.conflict, "Another ICE restart is in progress; try again.", headers: [.retryAfter: "1"])
        case .versionMismatch: self = .preconditionFailed
        case .banned(let until):
            self.init(.forbidden, "An operator banned you from this channel\(Self.end(until)).", kind: .banned)
        case .streamBlocked(let until):
            self.init(
                .forbidden,
                "An operator blocked publishing to this channel\(Self.end(until)).",
                kind: .streamBlocked
            )
        case .placeEnded:
            self.init(.forbidden, "An operator ended your connection; join anew, without the resume token.")
        case .blocksFull: self.init(.conflict, "The server holds as many bans and blocks as it can; lift some of them.")
        }
    }

    /// - Parameter until: In seconds since 1970 UTC; `nil` for never.
    private static func end(_ until: Int64?) -> String {
        until.map { " until \(Timestamp.text(unixSeconds: $0))" } ?? ""
    }

    package static let unknownPath = HTTPFailure(.notFound, "This path does not exist.")
    package static let sessionUnknown = HTTPFailure(.notFound, "There is no such session; it may have ended.")
    package static let preconditionFailed = HTTPFailure(
        .preconditionFailed,
        "If-Match is not the session's current ETag, which changes with each ICE restart."
    )

    /// - Parameter wait: The time until the next permitted request, in seconds.
    package static func overRate(_ wait: Int) -> Self {
        HTTPFailure(
            .tooManyRequests,
            "Too many requests from this address; try again later.",
            headers: [.retryAfter: String(wait)]
        )
    }

    package static let nodeWithoutAddress = HTTPFailure(
        .serviceUnavailable,
        "The session is on another node, and this one does not know yet where clients reach it; try again.",
        headers: [.retryAfter: "1"]
    )

    package static let overConnections = HTTPFailure(
        .tooManyRequests,
        "Your address has reached its limit of connections; close some.",
        headers: [.retryAfter: "5"]
    )

    private static func overShare(_ share: NetworkShare) -> Self {
        let message =
            switch share {
            case .channels: "Your network has reached its limit of channels; leave some of them."
            case .participants: "Your network has reached its limit of participants; end some of them."
            case .unconnected: "Too many participants of your network have not connected yet; try again in a moment."
            }
        return HTTPFailure(.tooManyRequests, message, kind: .overLimit, headers: [.retryAfter: "5"])
    }

    private static func overLimit(_ message: String) -> Self {
        var failure = overloaded(message)
        failure.kind = .overLimit
        return failure
    }

    /// - Parameter owner: whose limit it is.
    private static func overPublishers(_ owner: String) -> Self {
        var failure = overloaded("\(owner) has reached its limit of publishers; try again later.")
        failure.kind = .publishersFull
        return failure
    }

    package static func overloaded(_ message: String) -> Self {
        HTTPFailure(.serviceUnavailable, message, headers: [.retryAfter: "5"])
    }

    package static func methodNotAllowed(_ allowed: [HTTPRequest.Method]) -> Self {
        let list = allowed.map(\.rawValue).joined(separator: ", ")
        return HTTPFailure(.methodNotAllowed, "This resource supports \(list).", headers: [.allow: list])
    }

    /// An RFC 9457 problem document.
    package var response: Response {
        let (headers, document) = problem
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: document))
    }

    /// The header fields and the body of the ``response``.
    package var problem: (headers: HTTPFields, document: ByteBuffer) {
        var members: [String: JSONValue] = [
            "title": .string(status.reasonPhrase), "status": .integer(status.code), "detail": .string(message),
        ]
        members["type"] = kind.map { .string("urn:nagare:problem:\($0.rawValue)") }
        members["code"] = kind.map { .integer($0.code.rawValue) }
        let document = JSONValue.object(members)
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return (headers, ByteBuffer(bytes: document.bytes))
    }
}
