// Public, because Swift 6.3.1 inlines and specializes no `package` declaration of another module, and each turn reads queues.

/// A first-in first-out queue. An element is freed when it leaves, not when the queue's array is made anew: what waits here may
/// hold credit of its sender.
public struct Queue<Element> {
    /// Places of removed elements that an array may have before it is cut, and the most that an empty one keeps.
    @inlinable static var placesMax: Int { 64 }

    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable public init() {}

    @inlinable public var count: Int { elements.count - head }
    @inlinable public var isEmpty: Bool { head == elements.count }
    @inlinable public var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable public mutating func append(_ element: Element) { elements.append(element) }

    /// Puts another element in the place of the first. The queue is not empty.
    @inlinable public mutating func replaceFirst(by element: Element) { elements[head] = element }

    @inlinable @discardableResult
    public mutating func removeFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.capacity <= Self.placesMax)
            head = 0
        } else if head >= Self.placesMax, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }
}

extension Queue: Sendable where Element: Sendable {}
