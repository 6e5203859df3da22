import Base

/// The allocations by the time when they expire: a binary heap that knows where each allocation's entry is, so that a
/// deadline is changed or removed in place and no stale entry remains.
struct TURNDeadlines: Sendable {
    private struct Entry: Sendable {
        var deadline: Instant
        let slot: Int
    }
    private var heap: [Entry] = []
    /// By the allocation's slot, where its entry is in the heap.
    private var places: [Int?] = []

    var count: Int { heap.count }
    /// The earliest deadline and its allocation's slot.
    var first: (deadline: Instant, slot: Int)? { heap.first.map { ($0.deadline, $0.slot) } }

    /// Sets or changes the deadline of a slot.
    mutating func set(_ slot: Int, to deadline: Instant) {
        while places.count <= slot { places.append(nil) }
        if let place = places[slot] {
            heap[place].deadline = deadline
            restoreOrder(at: place)
        } else {
            places[slot] = heap.count
            heap.append(Entry(deadline: deadline, slot: slot))
            restoreOrder(at: heap.count - 1)
        }
    }

    /// Removes the deadline of a slot, if it has one.
    mutating func remove(_ slot: Int) {
        guard slot < places.count, let place = places[slot] else { return }
        swap(place, heap.count - 1)
        heap.removeLast()
        places[slot] = nil
        if place < heap.count { restoreOrder(at: place) }
    }

    private mutating func restoreOrder(at start: Int) {
        var place = start
        while place > 0, heap[place].deadline < heap[(place - 1) / 2].deadline {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
                if heap[child].deadline < heap[least].deadline { least = child }
            }
            guard least != place else { return }
            swap(place, least)
            place = least
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        places[heap[left].slot] = left
        places[heap[right].slot] = right
    }
}
