package import ChannelTypes
package import MediaTypes
package import Wire

/// A media section of a viewer that plays one source at a time.
package struct Slot: Hashable, Sendable, Codable {
    package let mid: MID
    package let kind: MediaKind
    /// The track that it plays; `nil` while there is none, or it is blocked.
    package internal(set) var source: TrackID?
    /// What the viewer prefers of its source. The layer is a rank among the negotiated ones.
    package internal(set) var preference = LayerPreference()
    /// The highest layer of its source to play.
    package var layer: LayerChoice { preference.cap }
    /// The layer as it was requested.
    var requestedLayer = LayerChoice.richest
    /// The track of its sender that it was negotiated for; `nil` for the next one of its kind.
    var track: MID?
    /// Whether a filter blocks the track.
    var isBlocked = false
    /// Whether the next layer switch answers a request.
    var awaitsRequestedLayer = false
    /// The simulcast layer that it plays; `nil` while it is unknown.
    var rid: RID?

    package init(mid: MID, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// A slot that was negotiated for one track of one sender.
package struct SlotAssignment: Hashable, Sendable {
    /// The sender of the track, which may have left.
    package var sender: ParticipantID
    /// The track's MID in the sender's own description.
    package var track: MID
    package var parameters: SendTrackParameters

    package init(sender: ParticipantID, track: MID, parameters: SendTrackParameters) {
        self.sender = sender
        self.track = track
        self.parameters = parameters
    }
}
