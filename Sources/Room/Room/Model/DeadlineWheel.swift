import Admission
import ChannelTypes

/// Deadlines of participants, in whole seconds of the monotonic clock.
struct DeadlineWheel: Sendable, Codable {
    private var slots: [Int64: ParticipantList] = [:]
    /// The first second that has not passed. No deadline is earlier.
    private var current: Int64 = .min
    /// No deadline is before this second; `nil` when there is none.
    private(set) var earliest: Int64?

    var isEmpty: Bool { slots.isEmpty }

    /// - Returns: the second of the deadline: `second`, or the first that has not passed.
    mutating func insert(_ id: ParticipantID, order: UInt64, at second: Int64) -> Int64 {
        let second = max(second, current)
        slots[second, default: ParticipantList()].insert(id, order: order)
        earliest = min(earliest ?? second, second)
        return second
    }

    mutating func cancel(order: UInt64, at second: Int64) {
        slots[second]?.remove(order: order)
        if slots[second]?.isEmpty == true { slots[second] = nil }
        if slots.isEmpty { earliest = nil }
    }

    /// Removes and returns the participants that are due, the earliest first.
    mutating func due(through second: Int64) -> [ParticipantID] {
        guard second >= current else { return [] }
        // Usually about a second has passed since the last call. After a longer gap there are fewer slots than seconds.
        let isNear = current != .min && second - current < 60
        let seconds = isNear ? Array(current...second) : slots.keys.filter { $0 <= second }.sorted()
        current = second + 1
        let due = seconds.flatMap { slots.removeValue(forKey: $0) ?? ParticipantList() }
        earliest = slots.keys.min()
        return due
    }
}
