import Base
import ChannelTypes
import Wire

// Changes that members make of themselves: their mutes, roles and metadata. One request is cheap, and telling a channel of it
// is not, so each telling takes a token of the member's budget. Without one, a mute or metadata waits: others are told of
// the latest state when there is a token again. What cannot wait, because it is more than a state, is refused.

/// The budget of a member's changes of itself, and what waits for it.
struct OwnChanges: Sendable, Codable {
    /// What a member muted, and what it says of itself.
    struct State: Hashable, Sendable, Codable {
        var muted: Set<MediaKind>
        var metadataJSON: String?
    }

    var budget: TokenBucket
    /// What others know, while a later state waits; `nil` when nothing waits.
    var known: State?
    /// When others are told; in ``ChannelModel/changeDeadlines``.
    var deadlineSecond: Int64?

    init(limits: RoomLimits) {
        budget = TokenBucket(limits.changesPerSecond, burst: limits.changeBurst)
    }
}

extension Participant {
    /// What it muted and says of itself at present.
    private var present: OwnChanges.State {
        OwnChanges.State(muted: mutedByItself, metadataJSON: member.updatedMetadataJSON)
    }

    /// What others know of that.
    var known: OwnChanges.State { changes?.known ?? present }

    /// Whether what others know is what it did last.
    fileprivate var isKnown: Bool { known == present }
}

extension ChannelModel {
    /// Takes a token for a change that cannot wait. Others are told with it of what waited.
    ///
    /// - Throws: ``RoomError/changesTooFrequent``, ``RoomError/participantUnknown``.
    mutating func takeChange(of id: ParticipantID, into effects: inout [Effect]) throws(RoomError) {
        guard let before = participants[id] else { throw .participantUnknown }
        guard takeToken(of: id) else {
            limitedChanges[.refused, default: 0] &+= 1
            throw .changesTooFrequent
        }
        announceOwnState(since: before, into: &effects)
    }

    /// Takes a token for what a moderator changes of others. Nobody is told with it of what waited.
    ///
    /// - Throws: ``RoomError/changesTooFrequent``, ``RoomError/participantUnknown``.
    mutating func takeModeration(of id: ParticipantID) throws(RoomError) {
        guard let taken = participants[id]?.changes?.budget.take(at: now.instant) else { throw .participantUnknown }
        guard taken else {
            limitedChanges[.refused, default: 0] &+= 1
            throw .changesTooFrequent
        }
    }

    /// A member changed its own state. Others know it from now on, or are told of the latest state later.
    ///
    /// - Parameter before: the member before the change.
    mutating func ownStateChanged(since before: Participant) {
        let id = before.id
        guard !takeToken(of: id) else { return }
        limitedChanges[.delayed, default: 0] &+= 1
        guard var changes = participants[id]?.changes, changes.known == nil else { return }
        changes.known = before.known
        changes.deadlineSecond = changeDeadlines.insert(id, order: before.order, at: now.second + 1)
        participants[id]?.changes = changes
    }

    /// Tells others of what a member muted, if they did not know it.
    mutating func announceOwnState(since before: Participant, into effects: inout [Effect]) {
        guard let after = participants[before.id] else { return }
        announceTracks(of: before.id, changedFrom: before, into: &effects)
        if after.muted != before.muted { changed(into: &effects) }
    }

    /// What waited for a member's budget is due.
    mutating func ownChangesDue(of id: ParticipantID, into effects: inout [Effect]) {
        guard let before = participants[id], before.changes?.known != nil else { return }
        participants[id]?.changes?.deadlineSecond = nil
        if before.isKnown {
            // It took everything back.
            participants[id]?.changes?.known = nil
        } else if takeToken(of: id) {
            announceOwnState(since: before, into: &effects)
        } else {
            let second = changeDeadlines.insert(id, order: before.order, at: now.second + 1)
            participants[id]?.changes?.deadlineSecond = second
        }
    }

    /// - Returns: whether others are told now. Nothing waits then.
    private mutating func takeToken(of id: ParticipantID) -> Bool {
        guard let participant = participants[id], var changes = participant.changes else { return true }
        defer { participants[id]?.changes = changes }
        guard changes.budget.take(at: now.instant) else { return false }
        cancelChangeDeadline(participant)
        changes.known = nil
        changes.deadlineSecond = nil
        return true
    }

    mutating func cancelChangeDeadline(_ participant: Participant) {
        guard let second = participant.changes?.deadlineSecond else { return }
        changeDeadlines.cancel(order: participant.order, at: second)
    }

    /// The changes beyond budgets since the last call.
    mutating func takeLimitedChanges() -> [ChangeLimit: UInt64] {
        guard !limitedChanges.isEmpty else { return [:] }
        defer { limitedChanges = [:] }
        return limitedChanges
    }
}
