import JSON
import Room

/// Why an operation of the operators' API was not carried out.
struct APIFailure: Error, Hashable {
    /// The HTTP status, 4xx or 5xx.
    let status: Int
    /// A word for programs.
    let type: String
    /// A sentence for people.
    let sentence: String

    init(_ status: Int, _ type: String, _ sentence: String) {
        self.status = status
        self.type = type
        self.sentence = sentence
    }

    /// The body of the answer.
    var json: JSONValue { ["error_type": .string(type), "error_reason": .string(sentence)] }

    static let channelUnknown = Self(404, "CHANNEL-NOT-FOUND", "Nobody is in this channel.")
    static let connectionUnknown = Self(404, "CONNECTION-NOT-FOUND", "There is no such connection in this channel.")

    /// A body of the wrong shape.
    init(_ error: JSONShapeError) { self.init(400, "INVALID-PARAMETER", error.sentence) }

    /// The one place that turns what rooms refuse into an answer.
    init(_ error: RoomError) {
        switch error {
        case .channelUnknown: self = .channelUnknown
        case .participantUnknown: self = .connectionUnknown
        case .sessionUnknown: self.init(404, "SESSION-NOT-FOUND", "There is no such session in this channel.")
        case .filterUnknown:
            self.init(404, "FORWARDING-FILTER-NOT-FOUND", "There is no forwarding filter of this name.")
        case .filterExists:
            self.init(409, "DUPLICATED-FORWARDING-FILTER", "There is a forwarding filter of this name already.")
        case .filterVersionMismatch, .versionMismatch:
            self.init(409, "FORWARDING-FILTER-VERSION-MISMATCH", "The forwarding filter has another version now.")
        case .filtersTooLarge:
            self.init(400, "FORWARDING-FILTER-TOO-LARGE", "There are too many forwarding filters, or one is too large.")
        case .spotlightNumberInvalid:
            self.init(400, "INVALID-PARAMETER", "\"spotlight_number\" has to be a whole number from 1 to 8.")
        case .spotlightUnused: self.init(409, "SPOTLIGHT-NOT-USED", "The connection did not join with spotlight.")
        case .draining: self.init(503, "SHUTTING-DOWN", "The node is shutting down.")
        default: self.init(500, "INTERNAL-ERROR", "The node could not do it: \(error).")
        }
    }
}
