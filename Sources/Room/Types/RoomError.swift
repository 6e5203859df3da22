public import MediaTypes

/// Why rooms refuse a request.
public enum RoomError: Error, Hashable, Sendable {
    /// The node holds as many channels as it may.
    case channelsFull
    /// The node holds as many participants as it may.
    case nodeFull
    /// The newcomer's network holds its share of the node already.
    case networkFull(NetworkShare)
    case channelFull
    case publishersFull
    case listenersFull
    /// The client's network has as many listeners as ``RoomLimits/listenersPerNetworkMax`` permits.
    case networkListenersFull
    /// There is no such channel, or nobody is in it.
    case channelUnknown
    /// The participant to be watched or changed is not in the channel.
    case participantUnknown
    /// The session ended, or never was.
    case sessionUnknown
    /// The transport ended while it was being set up.
    case endedDuringSetup
    /// Another ICE restart of the same session is under way.
    case restartUnderWay
    /// The ICE version that the caller expects is not the current one.
    case versionMismatch
    /// The node is shutting down.
    case draining
    /// The node begins no session at present (``NodeMode/blockNewSessions``).
    case sessionsBlocked
    /// The node takes nobody in at present (``NodeMode/blockNewConnections``).
    case connectionsBlocked
    /// There is no filter of this name.
    case filterUnknown
    /// There is a filter of this name already; names are unique in each list.
    case filterExists
    /// The filter has another version than the caller expects.
    case filterVersionMismatch
    /// The filters are more, or hold more, than ``ForwardingFilter`` allows.
    case filtersTooLarge
    /// The number of focused members is not in ``Spotlight/numbers``.
    case spotlightNumberInvalid
    /// The participant did not join with spotlight.
    case spotlightUnused
    /// The media plane refused; the sentence says why.
    case media(String)
}

/// What a network may hold only so much of.
public enum NetworkShare: Hashable, Sendable {
    case channels, participants
    /// Participants that have not connected yet.
    case unconnected
}

/// Why a participant left.
public enum EndReason: Hashable, Sendable {
    /// Its owner asked: DELETE, or the end of its signaling.
    case left
    /// The node closes.
    case shutdown
    /// Setting it up failed, so it never took part.
    case setupFailed
    /// It did not answer its offer in time.
    case unanswered
    /// Its transport found no path to the node in time.
    case unreachable
    /// The node was full, and it had not connected: its place went to a newcomer.
    case crowdedOut
    /// Its transport ended by itself.
    case transport(PeerCloseReason)
    /// An operator ended it.
    case disconnectedByOperator
    /// Its permitted time is over.
    case lifetimeExpired
    /// An operator ended the whole session of its channel.
    case sessionTerminated
    /// Its signaling did not take the events that waited for it.
    case tooSlow
    /// The same user joined again and took its place.
    case replaced
    /// Its signaling broke off without a goodbye.
    case signalingLost
    /// Its signaling ended it; the word says why.
    case rejected(String)

    /// Whether the media plane ended the peer itself.
    var isOfTransport: Bool {
        if case .transport = self { true } else { false }
    }
}
