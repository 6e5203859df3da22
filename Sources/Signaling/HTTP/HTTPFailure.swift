import HTTPTypes
import Hummingbird
import MediaTypes
import NIOCore
import Negotiation
import Room

/// A refused request: its status, and a sentence that the client's developer can act on.
struct HTTPFailure: Error {
    var status: HTTPResponse.Status
    var sentence: String
    var headers: HTTPFields
    /// Whether the connection is not worth keeping, because the rest of the request is not going to be read.
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

    /// The one place that turns errors into statuses.
    init(_ error: any Error) {
        switch error {
        case let failure as HTTPFailure: self = failure
        case let error as RoomError: self.init(error)
        case NegotiationError.malformed(let sentence): self.init(.badRequest, sentence)
        case NegotiationError.unsupported(let sentence): self.init(.unprocessableContent, sentence)
        default: self.init(.internalServerError, "The server failed at this request.")
        }
    }

    private init(_ error: RoomError) {
        switch error {
        case .channelsFull: self = .overloaded("The server holds as many channels as it may.")
        case .nodeFull: self = .overloaded("The server holds as many participants as it may.")
        case .networkFull(let share): self = .overShare(share)
        case .channelFull: self = .overloaded("The channel is full.")
        case .publishersFull: self = .overloaded("The channel has as many publishers as it may.")
        case .listenersFull: self = .overloaded("The server serves as many event streams as it may.")
        case .networkListenersFull:
            self.init(
                .tooManyRequests,
                "Your address has as many event streams open as it may; close some.",
                headers: [.retryAfter: "5"]
            )
        case .draining: self = .overloaded("The server is shutting down; connect again in a moment.")
        case .endedDuringSetup: self = .overloaded("The session ended while it was being set up; try again.")
        case .media(let sentence): self = .overloaded("The media part of the server refused: \(sentence)")
        case .sessionsBlocked, .connectionsBlocked:
            self = .overloaded("The server takes no newcomers at present; connect again later.")
        case .channelUnknown: self.init(.notFound, "Nobody is in this channel.")
        case .filterUnknown: self.init(.notFound, "There is no filter of this name.")
        case .filterExists:
            self.init(.conflict, "There is a filter of this name; update it, or choose another.")
        case .filterVersionMismatch: self.init(.conflict, "The filter has another version; read it again.")
        case .filtersTooLarge: self.init(.unprocessableContent, "The filters are more than the server takes.")
        case .spotlightNumberInvalid:
            let numbers = Spotlight.numbers
            let range = "\(numbers.lowerBound) to \(numbers.upperBound)"
            self.init(.unprocessableContent, "The spotlight number has to be in \(range).")
        case .spotlightUnused: self.init(.conflict, "The participant joined without spotlight.")
        case .participantUnknown: self.init(.notFound, "There is no such participant in this channel.")
        case .sessionUnknown, .resourceUnknown: self = .sessionUnknown
        case .restartUnderWay:
            self.init(.conflict, "Another ICE restart is under way.", headers: [.retryAfter: "1"])
        case .versionMismatch: self = .preconditionFailed
        }
    }

    static let sessionUnknown = HTTPFailure(.notFound, "There is no such session; it may have ended.")
    static let preconditionFailed = HTTPFailure(
        .preconditionFailed,
        "If-Match does not name the session's current ETag; it changed by an ICE restart."
    )

    /// - Parameter wait: after how many seconds the client may ask again.
    static func overRate(_ wait: Int) -> Self {
        HTTPFailure(
            .tooManyRequests,
            "Too many requests came from this address.",
            headers: [.retryAfter: String(wait)]
        )
    }

    static let overConnections = HTTPFailure(
        .tooManyRequests,
        "Your address has as many connections open as it may; close some.",
        headers: [.retryAfter: "5"]
    )

    private static func overShare(_ share: NetworkShare) -> Self {
        let sentence =
            switch share {
            case .channels: "Your network is in as many channels as one may be; leave some of them."
            case .participants: "Your network has as many participants as one may have; end some of them."
            case .unconnected: "Too many participants of your network have not connected yet; try again in a moment."
            }
        return HTTPFailure(.tooManyRequests, sentence, headers: [.retryAfter: "5"])
    }

    static func overloaded(_ sentence: String) -> Self {
        HTTPFailure(.serviceUnavailable, sentence, headers: [.retryAfter: "5"])
    }

    static func methodNotAllowed(_ allowed: [HTTPRequest.Method]) -> Self {
        let list = allowed.map(\.rawValue).joined(separator: ", ")
        return HTTPFailure(.methodNotAllowed, "This resource takes \(list).", headers: [.allow: list])
    }

    /// An RFC 9457 problem document.
    var response: Response {
        let (headers, document) = problem
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: document))
    }

    /// The header fields and the body of the ``response``.
    var problem: (headers: HTTPFields, document: ByteBuffer) {
        struct Problem: Encodable {
            let title: String
            let status: Int
            let detail: String
        }
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return (headers, encodedJSON(Problem(title: status.reasonPhrase, status: status.code, detail: sentence)))
    }
}
