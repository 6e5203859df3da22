package import MediaTypes
package import Wire

/// The peers' deadlines, least first: a binary heap that knows where each peer stands, so one can be moved.
package struct DeadlineQueue {
    private var heap: ContiguousArray<(deadline: Instant, peer: PeerID)> = []
    private var places: [PeerID: Int] = [:]

    package init() {}

    package var next: Instant? { heap.first?.deadline }
    package var count: Int { heap.count }

    /// Sets, moves or (with `nil`) removes a peer's deadline.
    package mutating func set(_ peer: PeerID, to deadline: Instant?) {
        guard let deadline else {
            remove(peer)
            return
        }
        if let place = places[peer] {
            let old = heap[place].deadline
            guard deadline != old else { return }
            heap[place].deadline = deadline
            if deadline < old { siftUp(place) } else { siftDown(place) }
        } else {
            heap.append((deadline, peer))
            siftUp(heap.count - 1)
        }
    }

    /// The peer whose deadline is least, if that has come; it leaves the queue.
    package mutating func popDue(at now: Instant) -> PeerID? {
        guard let peer = firstDue(at: now) else { return nil }
        remove(peer)
        return peer
    }

    /// The peer whose deadline is least, if that has come. It stays, because to move it is cheaper than to add it again.
    package func firstDue(at now: Instant) -> PeerID? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        return first.peer
    }

    private mutating func remove(_ peer: PeerID) {
        guard let place = places.removeValue(forKey: peer) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        if place > 0, last.deadline < heap[(place - 1) / 2].deadline { siftUp(place) } else { siftDown(place) }
    }

    /// Moves an entry up to its place, and notes that.
    private mutating func siftUp(_ start: Int) {
        let entry = heap[start]
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard entry.deadline < heap[parent].deadline else { break }
            put(heap[parent], at: place)
            place = parent
        }
        put(entry, at: place)
    }

    /// Moves an entry down to its place, and notes that.
    private mutating func siftDown(_ start: Int) {
        let entry = heap[start]
        var place = start
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].deadline < heap[child].deadline { child += 1 }
            guard heap[child].deadline < entry.deadline else { break }
            put(heap[child], at: place)
            place = child
        }
        put(entry, at: place)
    }

    private mutating func put(_ entry: (deadline: Instant, peer: PeerID), at place: Int) {
        heap[place] = entry
        places[entry.peer] = place
    }
}
