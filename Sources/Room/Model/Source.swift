import MediaTypes
import Wire

/// What a viewer's slots need to know of a sender.
struct Source: Sendable {
    let id: ParticipantID
    let clientID: String
    let peer: PeerID
    let home: Int
    let publications: [Publication]
    /// Whether it is in focus, where there is a spotlight.
    let isFocused: Bool
    /// What the channel's filters keep of it.
    var channelVerdict = FilterVerdict()
}

/// What a slot plays.
struct Playing: Hashable, Sendable {
    let track: TrackID
    let home: Int
    let layer: LayerChoice
    /// The layer as it was asked for.
    let wish: LayerChoice
}
