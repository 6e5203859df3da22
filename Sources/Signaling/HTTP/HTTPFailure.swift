import HTTPTypes
import Hummingbird
import JSON
import MediaTypes
import NIOCore
import Negotiation
import Room

/// A refused request: the HTTP status, and a sentence for the client's developer: what is wrong and what to do.
struct HTTPFailure: Error {
    var status: HTTPResponse.Status
    var sentence: String
    var headers: HTTPFields
    /// Whether the server closes the connection, because it does not read the rest of the request.
    var closesConnection = false

    init(
        _ status: HTTPResponse.Status,
        _ sentence: String,
        headers: HTTPFields = [:],
        closesConnection: Bool = false
    ) {
        self.status = status
        self.sentence = sentence
        self.headers = headers
        self.closesConnection = closesConnection
    }

    /// Maps all errors to HTTP statuses.
    init(_ error: any Error) {
        switch error {
        case let failure as HTTPFailure: self = failure
        case let error as RoomError: self.init(error)
        case NegotiationError.malformed(let sentence): self.init(.badRequest, sentence)
        case NegotiationError.unsupported(let sentence): self.init(.unprocessableContent, sentence)
        default: self.init(.internalServerError, "The server failed to process this request.")
        }
    }

    private init(_ error: RoomError) {
        switch error {
        case .channelsFull: self = .overloaded("The server has reached its limit of channels; try again later.")
        case .nodeFull: self = .overloaded("The server has reached its limit of participants; try again later.")
        case .networkFull(let share): self = .overShare(share)
        case .channelFull: self = .overloaded("The channel has reached its limit of participants; try again later.")
        case .publishersFull: self = .overloaded("The channel has reached its limit of publishers; try again later.")
        case .listenersFull: self = .overloaded("The server has reached its limit of event streams; try again later.")
        case .networkListenersFull:
            self.init(
                .tooManyRequests,
                "Your address has reached its limit of event streams; close some.",
                headers: [.retryAfter: "5"]
            )
        case .draining: self = .overloaded("The server is shutting down; connect again in a moment.")
        case .endedDuringSetup: self = .overloaded("The session ended while it was being set up; try again.")
        case .media(let sentence): self = .overloaded("The media loop refused the session: \(sentence)")
        case .sessionsBlocked, .connectionsBlocked:
            self = .overloaded("The server accepts no new clients at the moment; connect again later.")
        case .channelUnknown: self.init(.notFound, "Nobody is in this channel.")
        case .filterUnknown: self.init(.notFound, "There is no filter of this name.")
        case .filterExists:
            self.init(.conflict, "A filter of this name exists; update it, or choose another name.")
        case .filterVersionMismatch: self.init(.conflict, "The filter has another version; read it again.")
        case .filtersTooLarge:
            self.init(.unprocessableContent, "The filters exceed the server's limits; use fewer or shorter ones.")
        case .spotlightNumberInvalid:
            let numbers = Spotlight.numbers
            let range = "\(numbers.lowerBound) to \(numbers.upperBound)"
            self.init(.unprocessableContent, "The spotlight number must be in \(range).")
        case .spotlightUnused: self.init(.conflict, "The participant joined without spotlight.")
        case .participantUnknown: self.init(.notFound, "There is no such participant in this channel.")
        case .sessionUnknown, .resourceUnknown: self = .sessionUnknown
        case .restartUnderWay:
            self.init(.conflict, "Another ICE restart is in progress; try again.", headers: [.retryAfter: "1"])
        case .versionMismatch: self = .preconditionFailed
        }
    }

    static let sessionUnknown = HTTPFailure(.notFound, "There is no such session; it may have ended.")
    static let preconditionFailed = HTTPFailure(
        .preconditionFailed,
        "If-Match is not the session's current ETag, which changes with each ICE restart."
    )

    /// - Parameter wait: The time until the next permitted request, in seconds.
    static func overRate(_ wait: Int) -> Self {
        HTTPFailure(
            .tooManyRequests,
            "Too many requests from this address; try again later.",
            headers: [.retryAfter: String(wait)]
        )
    }

    static let overConnections = HTTPFailure(
        .tooManyRequests,
        "Your address has reached its limit of connections; close some.",
        headers: [.retryAfter: "5"]
    )

    private static func overShare(_ share: NetworkShare) -> Self {
        let sentence =
            switch share {
            case .channels: "Your network has reached its limit of channels; leave some of them."
            case .participants: "Your network has reached its limit of participants; end some of them."
            case .unconnected: "Too many participants of your network have not connected yet; try again in a moment."
            }
        return HTTPFailure(.tooManyRequests, sentence, headers: [.retryAfter: "5"])
    }

    static func overloaded(_ sentence: String) -> Self {
        HTTPFailure(.serviceUnavailable, sentence, headers: [.retryAfter: "5"])
    }

    static func methodNotAllowed(_ allowed: [HTTPRequest.Method]) -> Self {
        let list = allowed.map(\.rawValue).joined(separator: ", ")
        return HTTPFailure(.methodNotAllowed, "This resource supports \(list).", headers: [.allow: list])
    }

    /// An RFC 9457 problem document.
    var response: Response {
        let (headers, document) = problem
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: document))
    }

    /// The header fields and the body of the ``response``.
    var problem: (headers: HTTPFields, document: ByteBuffer) {
        let document: JSONValue = [
            "title": .string(status.reasonPhrase), "status": .integer(status.code), "detail": .string(sentence),
        ]
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return (headers, ByteBuffer(bytes: document.bytes))
    }
}
