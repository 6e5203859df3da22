import Access
import Base
import ChannelTypes
import HTTPTypes
import JSON
import MediaTypes
import Negotiation
import Room
import Web
import Wire

/// A request at a WHIP or WHEP endpoint.
enum EndpointRequest: Sendable {
    case publish(displayName: String?)
    /// `height` is that of the shown video in pixels; `nil` for as high as there is.
    case watch(Following, height: Int?)

    var role: Role {
        switch self {
        case .publish: .sendonly
        case .watch: .recvonly
        }
    }

    var signaling: ClientAgent.Signaling {
        switch self {
        case .publish: .whip
        case .watch: .whep
        }
    }

    /// Adds what the request says to `join`.
    func apply(to join: inout JoinRequest) {
        switch self {
        case .publish(let displayName):
            join.displayName = displayName
            // Where Sora's clients have a name for people, so that members of every protocol see it.
            join.notifyMetadataJSON = displayName.map { JSONValue.object(["name": .string($0)]).text }
        case .watch(let following, let height):
            join.following = following
            join.videoHeight = height
        }
    }
}

/// The parsed offer of an ``EndpointRequest``.
enum MediaOffer: Sendable {
    case publish(PublishOffer)
    case watch(WatchOffer)

    init(parsing text: String, for request: EndpointRequest) throws(NegotiationError) {
        switch request {
        case .publish: self = .publish(try PublishOffer(parsing: text))
        case .watch: self = .watch(try WatchOffer(parsing: text))
        }
    }

    /// - Throws: 403 when the offer has a kind of media that was not granted.
    func check(_ permissions: Permissions) throws(HTTPFailure) {
        let (kinds, verb) =
            switch self {
            case .publish(let offer): (offer.kinds, "send")
            case .watch(let offer): (offer.kinds, "receive")
            }
        guard let kind = kinds.first(where: { !permissions.permits($0) }) else { return }
        throw HTTPFailure(.forbidden, "You may not \(verb) \(kind.rawValue); leave it out of the offer.")
    }

    /// - Parameter acceptsData: Whether to accept data channels.
    func answer(_ reservation: ChannelDirectory.Reservation, _ grants: Grants, acceptsData: Bool) -> AnsweredOffer {
        // 62 bits are usable with every SDP parser (RFC 9429 §5.2.1).
        let sessionID = UInt64.random(in: 1..<(1 << 62))
        switch self {
        case .publish(let offer):
            return offer.answer(
                local: reservation.local,
                sessionID: sessionID,
                acceptsData: acceptsData,
                videoBitsPerSecondMax: grants.announcedVideoBitsPerSecond
            )
        case .watch(let offer):
            var generator = SystemRandomNumberGenerator()
            return offer.answer(
                local: reservation.local,
                streamID: reservation.participant.value,
                sessionID: sessionID,
                acceptsData: acceptsData,
                using: &generator
            )
        }
    }
}
