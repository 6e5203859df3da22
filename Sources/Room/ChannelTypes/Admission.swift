/// Why a newcomer was refused, for metrics.
package enum JoinRefusal: String, Hashable, Sendable, CaseIterable {
    case channelsFull = "channels_full"
    case nodeFull = "node_full"
    case channelFull = "channel_full"
    case publishersFull = "publishers_full"
    case nodePublishersFull = "node_publishers_full"
    case appPublishersFull = "app_publishers_full"
    case networkChannels = "network_channels"
    case networkParticipants = "network_participants"
    case networkUnconnected = "network_unconnected"
    /// An operator banned the user.
    case banned
    /// An operator blocked publishing to the channel.
    case streamBlocked = "stream_blocked"
    /// The channel is another app's.
    case otherApp = "other_app"
    /// The user is in the channel already.
    case userPresent = "user_present"
    /// The user publishes to the channel already.
    case alreadyPublishing = "already_publishing"

    /// `nil` for other errors.
    package init?(_ error: RoomError) {
        switch error {
        case .channelsFull: self = .channelsFull
        case .nodeFull: self = .nodeFull
        case .channelFull: self = .channelFull
        case .publishersFull: self = .publishersFull
        case .nodePublishersFull: self = .nodePublishersFull
        case .appPublishersFull: self = .appPublishersFull
        case .networkFull(.channels): self = .networkChannels
        case .networkFull(.participants): self = .networkParticipants
        case .networkFull(.unconnected): self = .networkUnconnected
        case .banned: self = .banned
        case .streamBlocked: self = .streamBlocked
        case .appMismatch: self = .otherApp
        case .userPresent: self = .userPresent
        case .alreadyPublishing: self = .alreadyPublishing
        default: return nil
        }
    }
}

/// Why a participant that never connected lost its place, for metrics.
package enum AbandonedSetup: String, Hashable, Sendable, CaseIterable {
    case unanswered, unreachable
    case evicted = "crowded_out"

    /// `nil` for other reasons.
    package init?(_ reason: EndReason) {
        switch reason {
        case .unanswered: self = .unanswered
        case .unreachable: self = .unreachable
        case .evicted: self = .evicted
        default: return nil
        }
    }
}

/// Newcomers that were refused or lost their place before they connected, since the start of the node.
package struct AdmissionCounts: Hashable, Sendable {
    package var refused: [JoinRefusal: UInt64] = [:]
    package var abandoned: [AbandonedSetup: UInt64] = [:]
    package init() {}
}
