import Base
public import MediaTypes
public import Wire

/// A mirror whose packets may have stopped to come, because the other loop does not know the link or the mirror any more.
public struct LostMirror: Hashable, Sendable {
    public let track: TrackID
    /// The mirror's name.
    public let relay: MirrorID
    /// The loop that the track is published on.
    public let origin: MediaLocation
    /// Whether the packets came over another loop of this node. Then it is to be replaced
    /// (``Forwarder/replaceMirror(_:by:as:from:at:)``), because that loop numbers streams differently.
    public let isBehindLoop: Bool
}

/// When the tracks that come over a link are asked for again.
///
/// Either loop may give up the other one alone, as after a pause of that one, and then knows nothing of the link and of what
/// it sent over it. This loop notices a new end of the other one, or silence. After silence one track is enough to learn
/// whether the end is new.
struct LinkRenewal {
    enum Scope { case one, all }

    private static let interval = Interval.seconds(1)
    /// Tracks may be gone, and then they are not asked for again and again.
    private static let attemptsMax = 5

    /// How often the other end was replaced by a new one, and for which of them everything was asked for.
    private var ends: UInt32 = 0
    private var renewedEnds: UInt32 = 0
    private var attempts = 0
    private var triedAt: Instant?
    /// The value of `ends` that the last try for all tracks is for.
    private var triedEnds: UInt32?

    mutating func otherEndChanged() {
        ends &+= 1
        attempts = 0
    }

    /// What to ask for now; `nil` for nothing.
    /// - Parameter isSilent: whether nothing comes over the link although tracks cross.
    mutating func next(isSilent: Bool, at now: Instant) -> Scope? {
        let isIncomplete = renewedEnds != ends
        guard isIncomplete || isSilent, triedAt.map({ now - $0 >= Self.interval }) ?? true else { return nil }
        triedAt = now
        triedEnds = nil
        guard isIncomplete else { return .one }
        attempts += 1
        if attempts >= Self.attemptsMax { renewedEnds = ends }
        triedEnds = ends
        return .all
    }

    /// What the last ``next(isSilent:at:)`` said was asked for, and answered.
    mutating func succeeded() {
        if let triedEnds { renewedEnds = triedEnds }
    }
}
