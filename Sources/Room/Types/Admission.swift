/// Why a newcomer was refused, for metrics.
public enum JoinRefusal: String, Hashable, Sendable, CaseIterable {
    case channelsFull = "channels_full"
    case nodeFull = "node_full"
    case channelFull = "channel_full"
    case publishersFull = "publishers_full"
    case networkChannels = "network_channels"
    case networkParticipants = "network_participants"
    case networkUnconnected = "network_unconnected"

    /// `nil` for other errors.
    init?(_ error: RoomError) {
        switch error {
        case .channelsFull: self = .channelsFull
        case .nodeFull: self = .nodeFull
        case .channelFull: self = .channelFull
        case .publishersFull: self = .publishersFull
        case .networkFull(.channels): self = .networkChannels
        case .networkFull(.participants): self = .networkParticipants
        case .networkFull(.unconnected): self = .networkUnconnected
        default: return nil
        }
    }
}

/// Why a participant that never connected lost its place, for metrics.
public enum AbandonedSetup: String, Hashable, Sendable, CaseIterable {
    case unanswered, unreachable
    case crowdedOut = "crowded_out"

    /// `nil` for other reasons.
    init?(_ reason: EndReason) {
        switch reason {
        case .unanswered: self = .unanswered
        case .unreachable: self = .unreachable
        case .crowdedOut: self = .crowdedOut
        default: return nil
        }
    }
}

/// Newcomers that were refused or lost their place before they connected, since the start of the node.
public struct AdmissionCounts: Hashable, Sendable {
    public var refused: [JoinRefusal: UInt64] = [:]
    public var abandoned: [AbandonedSetup: UInt64] = [:]
    public init() {}
}
