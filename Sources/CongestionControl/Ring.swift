/// A queue of bounded length in memory that is allocated once; adding to a full one drops the oldest element.
struct Ring<Element: BitwiseCopyable & Sendable>: Sendable {
    private var storage: ContiguousArray<Element>
    private var head = 0
    private(set) var count = 0

    /// - Parameter capacity: a power of two.
    init(capacity: Int, filler: Element) {
        precondition(capacity > 0 && capacity & (capacity - 1) == 0, "a power of two")
        storage = ContiguousArray(repeating: filler, count: capacity)
    }

    var isEmpty: Bool { count == 0 }
    var last: Element? { count == 0 ? nil : self[count - 1] }

    /// The element at a distance from the oldest one.
    subscript(_ index: Int) -> Element {
        get { storage[(head &+ index) & (storage.count - 1)] }
        set { storage[(head &+ index) & (storage.count - 1)] = newValue }
    }

    mutating func append(_ element: Element) {
        if count == storage.count {
            head = (head &+ 1) & (storage.count - 1)
            count -= 1
        }
        storage[(head &+ count) & (storage.count - 1)] = element
        count += 1
    }

    mutating func removeFirst() {
        precondition(count > 0, "an element to remove")
        head = (head &+ 1) & (storage.count - 1)
        count -= 1
    }

    mutating func removeAll() {
        head = 0
        count = 0
    }
}
