import Room

// How Sora's protocol reports the errors of the rooms, apart from the messages that clients send: HTTP's sentences are in both.

extension SoraClose {
    /// The close for a client that the rooms refused.
    init(_ error: RoomError) {
        let sentence = HTTPFailure(error).sentence
        switch error {
        case .draining: self = .stopping
        case .profileMismatch: self.init(.channelProfileMismatch, sentence)
        case .userPresent: self.init(.duplicatedChannelID, sentence)
        case .alreadyPublishing: self.init(.alreadyPublishing, sentence)
        case .publishersFull, .nodePublishersFull, .appPublishersFull: self.init(.publishersFull, sentence)
        case .banned: self.init(.banned, sentence)
        case .streamBlocked: self.init(.streamBlocked, sentence)
        case .audienceByOperator: self.init(.roleSetByOperator, sentence)
        case .appMismatch: self.init(.channelOfOtherApp, sentence)
        case .placeEnded(let reason):
            let close = Self(reason) ?? .disconnectedByOperator
            self.init(WebSocketClose(Self.refusalCode, close.close.reason), sentence)
        default: self.init(.internalError, sentence)
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
            case .changesTooFrequent: .changesTooFrequent
            case .participantUnknown: .notJoined
            case .expiryNotLater: .tokenInvalid
            default: .internalError
            }
        self.init(reason, HTTPFailure(error).sentence)
    }
}
