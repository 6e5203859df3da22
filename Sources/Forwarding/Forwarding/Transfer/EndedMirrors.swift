import MediaTypes

/// Mirrors of other nodes' tracks whose origins said that they do not know them, until these are asked for again.
///
/// An origin that still does not know a mirror says so again, at the latest a second later.
struct EndedMirrors {
    /// A mirror that was asked for so often in vain ends.
    private static let attemptsMax = 5

    private struct State {
        var isTold = false
        var attempts = 0
    }
    private var states: [TrackID: State] = [:]

    /// The origin of a mirror's track does not know the mirror.
    mutating func told(_ track: TrackID) { states[track, default: State()].isTold = true }

    /// The mirrors to ask for: each once, until its origin is heard of again.
    mutating func take() -> [TrackID] {
        let told = states.filter(\.value.isTold).map(\.key)
        for track in told { states[track]?.isTold = false }
        return told
    }

    /// A mirror was asked for in vain.
    /// - Returns: whether that was so too often.
    mutating func failed(_ track: TrackID) -> Bool {
        states[track, default: State()].attempts += 1
        guard let attempts = states[track]?.attempts, attempts >= Self.attemptsMax else { return false }
        states[track] = nil
        return true
    }

    /// A mirror's packets come again, or it is gone.
    mutating func remove(_ track: TrackID) { states[track] = nil }
}
