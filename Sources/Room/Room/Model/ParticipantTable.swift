import ChannelTypes

/// The participants of a channel by identifier. It notes which ones change, for the other nodes of a cluster.
struct ParticipantTable: Sendable, Codable {
    private(set) var byID: [ParticipantID: Participant] = [:]
    /// The participants that were added, removed or accessed to be changed since ``takeChanges()``; `nil` without a
    /// cluster.
    private var changed: Set<ParticipantID>?

    var isEmpty: Bool { byID.isEmpty }
    var count: Int { byID.count }
    var values: some Collection<Participant> { byID.values }

    subscript(id: ParticipantID) -> Participant? {
        get { byID[id] }
        _modify {
            changed?.insert(id)
            yield &byID[id]
        }
    }

    mutating func removeValue(forKey id: ParticipantID) -> Participant? {
        changed?.insert(id)
        return byID.removeValue(forKey: id)
    }

    /// Notes changes from now on, and the present participants as changed.
    mutating func noteChanges() { changed = Set(byID.keys) }

    mutating func takeChanges() -> Set<ParticipantID> {
        guard let taken = changed, !taken.isEmpty else { return [] }
        changed = []
        return taken
    }
}
