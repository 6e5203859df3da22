public import MediaTypes

/// Why rooms refuse a request.
public enum RoomError: Error, Hashable, Sendable {
    /// The node has ``RoomLimits/channelsMax`` channels.
    case channelsFull
    /// The node has ``RoomLimits/participantsMax`` participants.
    case nodeFull
    /// The newcomer's network has reached its share of the node.
    case networkFull(NetworkShare)
    case channelFull
    case publishersFull
    case listenersFull
    /// The client's network has ``RoomLimits/listenersPerNetworkMax`` listeners.
    case networkListenersFull
    /// The channel does not exist, or has no participants.
    case channelUnknown
    /// The participant to follow or change is not in the channel.
    case participantUnknown
    /// The channel has another session.
    case sessionUnknown
    /// The resource was deleted, or never existed.
    case resourceUnknown
    /// The participant ended during setup.
    case endedDuringSetup
    /// Another ICE restart of the same participant is under way.
    case restartUnderWay
    /// The ICE version that the caller expects is not the current one.
    case versionMismatch
    /// The node is shutting down.
    case draining
    /// The node accepts no new sessions (``NodeMode/blockNewSessions``).
    case sessionsBlocked
    /// The node accepts no new connections (``NodeMode/blockNewConnections``).
    case connectionsBlocked
    /// There is no filter of this name.
    case filterUnknown
    /// The list has a filter of this name already.
    case filterExists
    /// The filter's version is not the one that the caller expects.
    case filterVersionMismatch
    /// The filters exceed the limits of ``ForwardingFilter``.
    case filtersTooLarge
    /// The number of members in focus is not in ``Spotlight/numbers``.
    case spotlightNumberInvalid
    /// The participant did not join with spotlight.
    case spotlightUnused
    /// The media plane refused; the sentence says why.
    case media(String)
}

/// What is limited for each network.
public enum NetworkShare: Hashable, Sendable {
    case channels, participants
    /// Participants that have not connected yet.
    case unconnected
}

/// Why a participant left.
public enum EndReason: Hashable, Sendable {
    /// The client ended it: DELETE, or the end of its signaling.
    case left
    /// The node shuts down.
    case shutdown
    /// Setup failed.
    case setupFailed
    /// It did not answer its offer in time.
    case unanswered
    /// Its transport found no ICE path in time.
    case unreachable
    /// The node was full and gave its place to a newcomer, because it had not connected.
    case crowdedOut
    /// Its transport ended by itself.
    case transport(PeerCloseReason)
    /// An operator ended it.
    case disconnectedByOperator
    /// Its `connection_lifetime` is over.
    case lifetimeExpired
    /// The token or URL that admitted it has expired.
    case tokenExpired
    /// An operator ended the session of its channel.
    case sessionTerminated
    /// Its signaling read events too slowly.
    case tooSlow
    /// The same user joined again and took its place.
    case replaced
    /// Its signaling connection was lost.
    case signalingLost
    /// Its signaling ended it for this reason.
    case rejected(String)

    /// Whether the media plane ended the peer itself.
    var isOfTransport: Bool {
        if case .transport = self { true } else { false }
    }
}
