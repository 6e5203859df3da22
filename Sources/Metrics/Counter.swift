/// A count that only grows: packets, bytes, refusals. Its name ends in `_total` when it is exposed.
public struct Counter: Hashable, Sendable {
    /// The count since the start; it wraps after 2⁶⁴ − 1.
    public private(set) var value: UInt64

    public init(_ value: UInt64 = 0) { self.value = value }

    /// Adds `amount`.
    public mutating func increment(by amount: UInt64 = 1) { value &+= amount }

    /// Adds a byte or packet count held as an `Int`; a negative amount, which would be our own mistake, adds nothing.
    public mutating func increment(by amount: Int) {
        if amount > 0 { value &+= UInt64(amount) }
    }

    public static func += (counter: inout Self, amount: Int) { counter.increment(by: amount) }

    /// Adds another counter of the same thing, as when the loops' counters become the node's.
    public mutating func merge(_ other: Self) { value &+= other.value }
}

/// A value that goes up and down: peers connected, bytes of memory in use.
public struct Gauge: Hashable, Sendable {
    /// The value now.
    public var value: Double

    public init(_ value: Double = 0) { self.value = value }

    public mutating func increment(by amount: Double = 1) { value += amount }
    public mutating func decrement(by amount: Double = 1) { value -= amount }

    /// Adds another gauge of the same thing.
    public mutating func merge(_ other: Self) { value += other.value }
}
