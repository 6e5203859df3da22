import CPrefetch

/// A queue of bounded length in memory that is allocated once; adding to a full one drops the oldest element.
///
/// It is never copied, so that a change need not ask whether it is the only owner of its memory.
@safe
struct Ring<Element: BitwiseCopyable & Sendable>: ~Copyable, @unchecked Sendable {
    private let storage: UnsafeMutablePointer<Element>
    private let mask: Int
    private var head = 0
    private(set) var count = 0

    /// - Parameter capacity: a power of two.
    init(capacity: Int, filler: Element) {
        precondition(capacity > 0 && capacity & (capacity - 1) == 0, "a power of two")
        mask = capacity - 1
        unsafe storage = .allocate(capacity: capacity)
        unsafe storage.initialize(repeating: filler, count: capacity)
    }

    deinit { unsafe storage.deallocate() }

    private func place(_ index: Int) -> UnsafeMutablePointer<Element> { unsafe storage + ((head &+ index) & mask) }

    var isEmpty: Bool { count == 0 }
    var last: Element? { count == 0 ? nil : self[count - 1] }

    /// The element at a distance from the oldest one.
    subscript(_ index: Int) -> Element {
        get { unsafe place(index).pointee }
        set { unsafe place(index).pointee = newValue }
    }

    /// Asks for what a report changes: all of a short ring, the ends of a long one.
    func prefetch() {
        let bytes = (mask + 1) * MemoryLayout<Element>.stride
        if bytes <= Self.shortBytes {
            unsafe nagare_prefetch(storage, bytes)
        } else {
            unsafe nagare_prefetch(place(0), 1)
            unsafe nagare_prefetch(place(max(count - 1, 0)), 1)
        }
    }

    /// Eight lines of the cache.
    private static var shortBytes: Int { 512 }

    mutating func append(_ element: Element) {
        if count > mask {
            head = (head &+ 1) & mask
            count -= 1
        }
        unsafe place(count).pointee = element
        count += 1
    }

    mutating func removeFirst() {
        precondition(count > 0, "an element to remove")
        head = (head &+ 1) & mask
        count -= 1
    }

    mutating func removeAll() {
        head = 0
        count = 0
    }
}
