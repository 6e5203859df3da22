public import MediaTypes
public import Wire

/// What a participant may do.
public enum Role: String, Hashable, Sendable, Codable, CaseIterable {
    case sendonly, recvonly, sendrecv
    public var publishes: Bool { self != .recvonly }
    public var watches: Bool { self != .sendonly }
}

/// Whose tracks a watching participant's slots play.
public enum Following: Hashable, Sendable, Codable {
    /// Whichever publisher of the channel went live last and still is.
    case currentPublisher
    /// One participant and no other; nothing once it ended, because identifiers are not used again.
    case participant(ParticipantID)
    /// Every live publisher but the participant itself and those of its bundle, in slots made for each of them.
    case everyone
}

/// A track that a participant publishes.
public struct Publication: Hashable, Sendable, Codable {
    public let mid: MID
    public let kind: MediaKind
    /// The simulcast layers that were negotiated, in the order of the description; empty without simulcast.
    public let rids: [RID]
    /// The formats in which it may arrive, the preferred one first.
    public let formats: [CodecParameters]
    /// The codec that arrives; `nil` until media did.
    public internal(set) var codec: CodecName?
    /// Whether media arrives at present.
    public internal(set) var isActive = false

    public init(mid: MID, kind: MediaKind, rids: [RID] = [], formats: [CodecParameters] = []) {
        self.mid = mid
        self.kind = kind
        self.rids = rids
        self.formats = formats
    }
    /// Whether several simulcast layers were negotiated.
    public var isSimulcast: Bool { rids.count > 1 }

    /// The layers' numbers in ascending order where all are named as the server names layers, `r0` the lowest; `nil` for
    /// other names, which say nothing of the order.
    private var layerNumbers: [Int]? {
        let numbers = rids.compactMap { ["r0", "r1", "r2"].firstIndex(of: $0.value) }
        return numbers.count == rids.count ? numbers.sorted() : nil
    }

    /// The layer that stands for one that was asked for by its number, as a rank among those that there are: of `r0` and
    /// `r2` the level 1 is `r0`, and the level 2 is the second.
    func ranked(_ layer: LayerChoice) -> LayerChoice {
        guard case .level(let number) = layer, let numbers = layerNumbers else { return layer }
        return .level(max(numbers.count { $0 <= number } - 1, 0))
    }
}

/// A live sender as one participant may see it.
public struct VisibleStream: Hashable, Sendable {
    public let sender: ParticipantID
    /// In the order of the sender's description.
    public let tracks: [Publication]
}

/// A place in a viewer's session that plays one source at a time.
public struct Slot: Hashable, Sendable, Codable {
    public let mid: MID
    public let kind: MediaKind
    /// The track that it plays; `nil` while it waits for one, or may not play what it is for.
    public internal(set) var source: TrackID?
    /// The layer of its source that it is to play, by its rank among those that there are.
    public internal(set) var layer = LayerChoice.richest
    /// The same as it was asked for.
    var wish = LayerChoice.richest
    /// The track of its sender that it was made for; `nil` for the next one of its kind.
    var track: MID?
    /// Whether a filter keeps the track from it.
    var isBlocked = false
    /// Whether the layer that it gets next is one that was asked for.
    var awaitsAskedLayer = false
    /// The simulcast layer that it plays; `nil` while that is not known.
    var rid: RID?

    public init(mid: MID, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// A slot that was negotiated for one track of one sender.
public struct SlotAssignment: Hashable, Sendable {
    /// Whose track it plays, whether or not that one is still there.
    public var sender: ParticipantID
    /// The track's MID in the sender's own session.
    public var track: MID
    public var parameters: SendTrackParameters

    public init(sender: ParticipantID, track: MID, parameters: SendTrackParameters) {
        self.sender = sender
        self.track = track
        self.parameters = parameters
    }
}
