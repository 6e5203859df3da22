package import ChannelTypes

/// The members with video that spoke last. Where a network does not carry every picture, theirs go before others.
///
/// A change concerns every viewer of a channel, so changes are few: a conversation among ``countMax`` members changes
/// nothing, and a change follows the one before it after ``changeSeconds`` at the earliest.
package struct RecentSpeakers: Sendable, Codable {
    package static let countMax = 3
    package static let changeSeconds: Int64 = 2

    /// Those that started to speak last come last.
    private var members: [ParticipantID] = []
    /// The last one that started to speak while the list could not change.
    private var waiting: ParticipantID?
    /// The list does not change before this second of the monotonic clock.
    private var nextChangeSecond: Int64 = .min

    package init() {}

    package func contains(_ id: ParticipantID) -> Bool { members.contains(id) }

    /// When ``update(at:)`` has something to do; `nil` for never.
    package var deadlineSecond: Int64? { waiting == nil ? nil : nextChangeSecond }

    package mutating func startedSpeaking(_ id: ParticipantID) {
        guard let index = members.firstIndex(of: id) else {
            waiting = id
            return
        }
        members.append(members.remove(at: index))
    }

    package mutating func remove(_ id: ParticipantID) {
        members.removeAll { $0 == id }
        if waiting == id { waiting = nil }
    }

    /// - Returns: the members that came into the list or left it.
    package mutating func update(at second: Int64) -> [ParticipantID] {
        guard let newcomer = waiting, second >= nextChangeSecond else { return [] }
        waiting = nil
        nextChangeSecond = second + Self.changeSeconds
        var changed = [newcomer]
        if members.count >= Self.countMax { changed.append(members.removeFirst()) }
        members.append(newcomer)
        return changed
    }
}
