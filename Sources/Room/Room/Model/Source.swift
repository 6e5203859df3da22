import ChannelTypes
import MediaTypes

/// A sender that viewers' slots may play.
struct Source: Sendable {
    let id: ParticipantID
    let clientID: String
    let peer: PeerID
    let location: MediaLocation
    let publications: [Publication]
    /// What its video shows.
    var video = VideoSource.camera
    /// Whether it is in focus; `false` without spotlight.
    let isFocused: Bool
    /// Whether it speaks, or was among the last that spoke: see ``RecentSpeakers``.
    let isSpeaker: Bool
    /// The verdict of the channel's filters on it.
    var channelVerdict = FilterDecision()
}

/// The track that a slot plays.
struct Playing: Hashable, Sendable {
    let track: TrackID
    let location: MediaLocation
    let preference: LayerPreference
    /// The layer as it was requested, before ``Publication/ranked(_:)``.
    let requestedLayer: LayerChoice
}
