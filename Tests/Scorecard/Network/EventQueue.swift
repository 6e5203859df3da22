/// Events in the order of their times, and of their insertion at equal times.
struct EventQueue<Event> {
    private struct Entry {
        var at: Int64
        var order: Int
        var event: Event

        static func < (left: Entry, right: Entry) -> Bool {
            left.at == right.at ? left.order < right.order : left.at < right.at
        }
    }

    private var heap: [Entry] = []
    private var order = 0

    mutating func add(_ event: Event, at time: Int64) {
        order += 1
        heap.append(Entry(at: time, order: order, event: event))
        var index = heap.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index] < heap[parent] else { break }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    /// Removes the first event that is due.
    mutating func pop(until end: Int64) -> (at: Int64, event: Event)? {
        guard let first = heap.first, first.at <= end else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.at, first.event)
    }

    private mutating func sink() {
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && heap[child] < heap[least] {
                least = child
            }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
