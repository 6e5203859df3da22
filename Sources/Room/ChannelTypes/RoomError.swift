import MediaTypes

/// Why rooms refuse a request.
package enum RoomError: Error, Hashable, Sendable {
    /// The node has ``RoomLimits/channelsMax`` channels.
    case channelsFull
    /// The node has ``RoomLimits/participantsMax`` participants.
    case nodeFull
    /// The newcomer's network has reached its share of the node.
    case networkFull(NetworkShare)
    case channelFull
    /// The channel has ``RoomLimits/publishersPerChannelMax`` publishers.
    case publishersFull
    /// The node has ``RoomLimits/publishersMax`` publishers.
    case nodePublishersFull
    /// The newcomer's app has ``RoomLimits/publishersPerAppMax`` publishers.
    case appPublishersFull
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
    /// The command is not for whoever asks for it: see ``ChannelCommand``.
    case forbidden
    /// The node drains or shuts down.
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
    /// The user is in the channel already, and may be there once.
    case userPresent
    /// The user publishes to the channel already, with a connection that the newcomer would repeat for this only.
    case alreadyPublishing
    /// A new permission does not expire later than the present one, or the present one has no end.
    case expiryNotLater
    /// The channel has another profile than the newcomer requests.
    case profileMismatch
    /// The channel is not interactive, so its members have no roles to change.
    case rolesUnused
    /// The participant cannot take the role: it only sends or only receives.
    case roleUnavailable
    /// The participant's authorization does not permit it to publish.
    case publishingForbidden
    /// An operator made the user audience, and only an operator can make it host.
    case audienceByOperator
    /// The channel is another app's than the newcomer's.
    case appMismatch
    /// An operator muted the participant, so it cannot unmute itself.
    case mutedByOperator
    /// Only a host that may moderate the channel can do this to others.
    case moderatorsOnly
    /// The member changes its role or its metadata more often than its budget permits
    /// (``RoomLimits/changesPerSecond``, ``RoomLimits/changeBurst``).
    case changesTooFrequent
    /// The participant subscribes to too many users one by one.
    case subscriptionsFull
    /// An operator banned the user, from the channel or from all channels, until this time in seconds since 1970 UTC;
    /// `nil` for good.
    case banned(untilUnixSeconds: Int64?)
    /// An operator blocked publishing to the channel until this time in seconds since 1970 UTC; `nil` for good.
    case streamBlocked(untilUnixSeconds: Int64?)
    /// An operator ended the place that the newcomer's resume token is for. It can join without the token.
    case placeEnded(EndReason)
    /// There are as many blocks as the node can hold.
    case blocksFull
    /// The media plane refused; the sentence says why.
    case media(String)
}

/// What is limited for each network.
package enum NetworkShare: Hashable, Sendable {
    case channels, participants
    /// Participants that have not connected yet.
    case unconnected
}
