/// A first-in first-out queue in one array. Removing is O(1) amortised; an emptied queue returns its memory.
struct Queue<Element> {
    /// The most room that an empty queue keeps, in elements.
    private static var keptCapacity: Int { 16 }

    private var elements: [Element] = []
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }
    var indices: Range<Int> { 0..<count }

    /// The element at a distance from the first.
    subscript(_ index: Int) -> Element {
        _read { yield elements[head + index] }
        _modify { yield &elements[head + index] }
    }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func removeFirst() -> Element? {
        guard head < elements.count else { return nil }
        // Most queues hold one element: it is moved out, not copied.
        if head == 0, elements.count == 1, elements.capacity <= Self.keptCapacity { return elements.removeLast() }
        let element = elements[head]
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.capacity <= Self.keptCapacity)
            head = 0
        } else if head >= 16, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// The first index whose element, like all that follow it, is not below what is looked for.
    func partitionIndex(_ isBelow: (Element) -> Bool) -> Int {
        // Nearly always what arrives belongs at the end.
        if isEmpty || isBelow(elements[elements.count - 1]) { return count }
        var low = 0
        var high = count - 1
        while low < high {
            let middle = (low + high) / 2
            if isBelow(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func insert(_ element: Element, at index: Int) { elements.insert(element, at: head + index) }

    mutating func remove(at index: Int) -> Element {
        let element = elements.remove(at: head + index)
        if head == elements.count { removeAll() }
        return element
    }

    mutating func removeAll() {
        elements = []
        head = 0
    }
}

extension Queue: Sendable where Element: Sendable {}
