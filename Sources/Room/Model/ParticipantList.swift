/// Participants in the order of joining. One is added or taken away in the time of a binary search.
struct ParticipantList: Sendable, Codable, RandomAccessCollection {
    private struct Entry: Sendable, Codable {
        let order: UInt64
        let id: ParticipantID
    }
    private var entries: [Entry] = []

    var startIndex: Int { 0 }
    var endIndex: Int { entries.count }
    subscript(position: Int) -> ParticipantID { entries[position].id }

    /// Where the one with this order is, or belongs.
    private func place(of order: UInt64) -> Int {
        guard let last = entries.last, last.order >= order else { return entries.count }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].order < order { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Nothing happens when it is there already.
    mutating func insert(_ id: ParticipantID, order: UInt64) {
        let place = place(of: order)
        if place < entries.count, entries[place].order == order { return }
        entries.insert(Entry(order: order, id: id), at: place)
    }

    /// Nothing happens when it is not there.
    mutating func remove(order: UInt64) {
        let place = place(of: order)
        if place < entries.count, entries[place].order == order { entries.remove(at: place) }
    }
}
