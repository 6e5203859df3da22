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
            heap[place].deadline = deadline
            if deadline < old { siftUp(place) } else { siftDown(place) }
        } else {
            heap.append((deadline, peer))
            places[peer] = heap.count - 1
            siftUp(heap.count - 1)
        }
    }

    /// The peer whose deadline is least, if that has come; it leaves the queue.
    package mutating func popDue(at now: Instant) -> PeerID? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        remove(first.peer)
        return first.peer
    }

    private mutating func remove(_ peer: PeerID) {
        guard let place = places.removeValue(forKey: peer) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[last.peer] = place
        siftUp(place)
        siftDown(places[last.peer] ?? place)
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { break }
            exchange(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline { least = child }
            guard least != parent else { break }
            exchange(parent, least)
            parent = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        places[heap[left].peer] = left
        places[heap[right].peer] = right
    }
}
