package import ChannelTypes

/// Participants in the order of joining. Insertion and removal use a binary search.
package struct ParticipantList: Sendable, Codable, RandomAccessCollection {
    private struct Entry: Sendable, Codable {
        let order: UInt64
        let id: ParticipantID
    }
    private var entries: [Entry] = []

    package init() {}

    package var startIndex: Int { 0 }
    package var endIndex: Int { entries.count }
    package subscript(position: Int) -> ParticipantID { entries[position].id }

    /// The index of the participant with this order, or where it belongs.
    private func position(of order: UInt64) -> Int {
        guard let last = entries.last, last.order >= order else { return entries.count }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].order < order { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Does nothing when the list has it already.
    package mutating func insert(_ id: ParticipantID, order: UInt64) {
        let position = position(of: order)
        if position < entries.count, entries[position].order == order { return }
        entries.insert(Entry(order: order, id: id), at: position)
    }

    /// Does nothing when the list does not have it.
    package mutating func remove(order: UInt64) {
        let position = position(of: order)
        if position < entries.count, entries[position].order == order { entries.remove(at: position) }
    }
}
