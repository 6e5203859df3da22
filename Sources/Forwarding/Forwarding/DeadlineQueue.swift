package import Base
package import MediaTypes

/// The peers' deadlines, least first: a binary heap that knows where each peer stands, so one can be moved.
package struct DeadlineQueue {
    /// A peer with a deadline.
    private struct Entry {
        var peer: PeerID
        /// Where it stands in the heap.
        var place: Int
    }

    /// Each with the index of its entry.
    private var heap: ContiguousArray<(deadline: Instant, entry: Int)> = []
    /// Entries do not move, so that moving a deadline in the heap looks no peer up.
    private var entries: ContiguousArray<Entry> = []
    /// Entries that are not in use.
    private var free: ContiguousArray<Int> = []
    private var indices: [PeerID: Int] = [:]

    package init() {}

    package var next: Instant? { heap.first?.deadline }
    package var count: Int { heap.count }

    /// Sets, moves or (with `nil`) removes a peer's deadline.
    package mutating func set(_ peer: PeerID, to deadline: Instant?) {
        guard let deadline else {
            remove(peer)
            return
        }
        if let index = indices[peer] {
            let place = entries[index].place
            let old = heap[place].deadline
            guard deadline != old else { return }
            heap[place].deadline = deadline
            if deadline < old { siftUp(place) } else { siftDown(place) }
        } else {
            let entry = Entry(peer: peer, place: heap.count)
            let index = free.popLast() ?? entries.count
            if index == entries.count { entries.append(entry) } else { entries[index] = entry }
            indices[peer] = index
            heap.append((deadline, index))
            siftUp(heap.count - 1)
        }
    }

    /// The peer whose deadline is least, if that has come. It stays, because to move it is cheaper than to add it again.
    package func firstDue(at now: Instant) -> PeerID? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        return entries[first.entry].peer
    }

    private mutating func remove(_ peer: PeerID) {
        guard let index = indices.removeValue(forKey: peer) else { return }
        let place = entries[index].place
        free.append(index)
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        if place > 0, last.deadline < heap[(place - 1) / 2].deadline { siftUp(place) } else { siftDown(place) }
    }

    /// Moves a deadline up to its place, and notes that.
    private mutating func siftUp(_ start: Int) {
        let moved = heap[start]
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard moved.deadline < heap[parent].deadline else { break }
            put(heap[parent], at: place)
            place = parent
        }
        put(moved, at: place)
    }

    /// Moves a deadline down to its place, and notes that.
    private mutating func siftDown(_ start: Int) {
        let moved = heap[start]
        var place = start
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].deadline < heap[child].deadline { child += 1 }
            guard heap[child].deadline < moved.deadline else { break }
            put(heap[child], at: place)
            place = child
        }
        put(moved, at: place)
    }

    private mutating func put(_ moved: (deadline: Instant, entry: Int), at place: Int) {
        heap[place] = moved
        entries[moved.entry].place = place
    }
}
