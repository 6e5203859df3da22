import ChannelTypes
import JSON
import Web

/// Why an operation of the admin API failed.
struct APIFailure: Error, Hashable {
    /// The HTTP status, 4xx or 5xx.
    let status: Int
    /// The error type for programs.
    let type: String
    /// What is wrong, and what to do, for people.
    let message: String

    init(_ status: Int, _ type: String, _ message: String) {
        self.status = status
        self.type = type
        self.message = message
    }

    /// The body of the answer.
    var json: JSONValue { ["error_type": .string(type), "error_reason": .string(message)] }

    static let channelUnknown = Self(404, "CHANNEL-NOT-FOUND", "Nobody is in this channel.")
    static let connectionUnknown = Self(404, "CONNECTION-NOT-FOUND", "There is no such connection in this channel.")

    /// A body with missing or invalid members.
    init(_ error: JSONShapeError) { self.init(400, "INVALID-PARAMETER", error.message) }

    /// Maps the errors of rooms to API errors.
    init(_ error: RoomError) {
        switch error {
        case .channelUnknown: self = .channelUnknown
        case .participantUnknown: self = .connectionUnknown
        case .sessionUnknown: self.init(404, "SESSION-NOT-FOUND", "There is no such session in this channel.")
        case .filterUnknown:
            self.init(404, "FORWARDING-FILTER-NOT-FOUND", "There is no forwarding filter of this name.")
        case .filterExists:
            self.init(
                409,
                "DUPLICATED-FORWARDING-FILTER",
                "A forwarding filter of this name exists; update it, or choose another name."
            )
        case .filterVersionMismatch, .versionMismatch:
            self.init(
                409,
                "FORWARDING-FILTER-VERSION-MISMATCH",
                "The forwarding filter has another version; list it again."
            )
        case .filtersTooLarge:
            self.init(400, "FORWARDING-FILTER-TOO-LARGE", HTTPFailure(error).message)
        case .spotlightNumberInvalid:
            self.init(400, "INVALID-PARAMETER", "\"spotlight_number\" must be a whole number from 1 to 8.")
        case .spotlightUnused: self.init(409, "SPOTLIGHT-NOT-USED", "The connection did not join with spotlight.")
        case .expiryNotLater:
            self.init(
                400,
                "INVALID-PARAMETER",
                "\"expires_at\" must be later than the present expiry; a connection without an expiry has none to extend."
            )
        case .rolesUnused: self.init(409, "CHANNEL-NOT-INTERACTIVE", HTTPFailure(error).message)
        case .roleUnavailable: self.init(409, "ROLE-NOT-AVAILABLE", HTTPFailure(error).message)
        case .publishingForbidden: self.init(409, "PUBLISHING-NOT-PERMITTED", HTTPFailure(error).message)
        case .publishersFull, .nodePublishersFull, .appPublishersFull:
            self.init(409, "PUBLISHERS-FULL", HTTPFailure(error).message)
        case .draining: self.init(503, "SHUTTING-DOWN", "The node is shutting down.")
        default: self.init(500, "INTERNAL-ERROR", "The node failed to perform the operation: \(error).")
        }
    }
}
