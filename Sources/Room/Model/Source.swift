import MediaTypes
import Wire

/// A sender, as a viewer's slots need it.
struct Source: Sendable {
    let id: ParticipantID
    let clientID: String
    let peer: PeerID
    let location: MediaLocation
    let publications: [Publication]
    /// Whether it is in focus, where there is a spotlight.
    let isFocused: Bool
    /// The verdict of the channel's filters on it.
    var channelVerdict = FilterVerdict()
}

/// The track that a slot plays.
struct Playing: Hashable, Sendable {
    let track: TrackID
    let location: MediaLocation
    let layer: LayerChoice
    /// The layer as it was requested.
    let wish: LayerChoice
}
