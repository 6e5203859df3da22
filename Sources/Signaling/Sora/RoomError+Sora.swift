package import ChannelTypes
import Web

// How Sora's protocol reports the errors of the rooms, apart from the messages that clients send: HTTP's sentences are in both.

extension SoraClose {
    /// The close for a client that the rooms refused.
    package init(_ error: RoomError) {
        let message = HTTPFailure(error).message
        switch error {
        case .draining: self = .stopping
        case .profileMismatch: self.init(.channelProfileMismatch, message)
        case .userPresent: self.init(.duplicatedChannelID, message)
        case .alreadyPublishing: self.init(.alreadyPublishing, message)
        case .publishersFull, .nodePublishersFull, .appPublishersFull: self.init(.publishersFull, message)
        case .channelFull: self.init(.channelFull, message)
        case .banned: self.init(.banned, message)
        case .streamBlocked: self.init(.streamBlocked, message)
        case .audienceByOperator: self.init(.roleSetByOperator, message)
        case .appMismatch: self.init(.channelOfOtherApp, message)
        case .placeEnded(let reason):
            let close = Self(reason) ?? .disconnectedByOperator
            self.init(WebSocketClose(Self.refusalCode, close.word), message)
        default: self.init(.internalError, message)
        }
    }
}

extension RequestFailure {
    /// The failure of a request that the rooms refused.
    init(_ error: RoomError) {
        let reason: Reason =
            switch error {
            case .subscriptionsFull: .subscriptionsFull
            case .rolesUnused: .channelNotInteractive
            case .roleUnavailable: .roleUnavailable
            case .publishingForbidden: .publishingForbidden
            case .publishersFull, .nodePublishersFull, .appPublishersFull: .publishersFull
            case .audienceByOperator: .roleSetByOperator
            case .mutedByOperator: .mutedByOperator
            case .moderatorsOnly: .moderatorsOnly
            case .changesTooFrequent: .changesTooFrequent
            case .participantUnknown: .notJoined
            case .expiryNotLater: .tokenInvalid
            default: .internalError
            }
        self.init(reason, HTTPFailure(error).message)
    }
}
