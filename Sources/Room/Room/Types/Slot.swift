public import MediaTypes
public import Wire

/// A media section of a viewer that plays one source at a time.
public struct Slot: Hashable, Sendable, Codable {
    public let mid: MID
    public let kind: MediaKind
    /// The track that it plays; `nil` while there is none, or it is blocked.
    public internal(set) var source: TrackID?
    /// What the viewer prefers of its source. The layer is a rank among the negotiated ones.
    public internal(set) var preference = LayerPreference()
    /// The highest layer of its source to play.
    public var layer: LayerChoice { preference.cap }
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

    public init(mid: MID, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// A slot that was negotiated for one track of one sender.
public struct SlotAssignment: Hashable, Sendable {
    /// The sender of the track, which may have left.
    public var sender: ParticipantID
    /// The track's MID in the sender's own description.
    public var track: MID
    public var parameters: SendTrackParameters

    public init(sender: ParticipantID, track: MID, parameters: SendTrackParameters) {
        self.sender = sender
        self.track = track
        self.parameters = parameters
    }
}
