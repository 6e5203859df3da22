/// A length of time in nanoseconds; negative when it points back.
///
/// The standard library's `Duration` counts attoseconds in 128 bits, which the per-packet path has no use for.
public struct Interval: Hashable, Comparable, Sendable, Codable, BitwiseCopyable, CustomStringConvertible {
    public var nanoseconds: Int64
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static var zero: Interval { Interval(nanoseconds: 0) }
    public static func nanoseconds(_ count: Int) -> Self { Self(nanoseconds: Int64(count)) }
    public static func microseconds(_ count: Int) -> Self { Self(nanoseconds: Int64(count) &* 1_000) }
    public static func milliseconds(_ count: Int) -> Self { Self(nanoseconds: Int64(count) &* 1_000_000) }
    public static func seconds(_ count: Int) -> Self { Self(nanoseconds: Int64(count) &* 1_000_000_000) }
    public static func seconds(_ count: Double) -> Self {
        Self(nanoseconds: Int64(exactly: (count * 1e9).rounded()) ?? (count < 0 ? .min : .max))
    }

    /// Whole milliseconds, rounded toward zero.
    public var milliseconds: Int { Int(nanoseconds / 1_000_000) }
    public var seconds: Double { Double(nanoseconds) / 1e9 }

    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
    public static func + (left: Self, right: Self) -> Self { Self(nanoseconds: left.nanoseconds &+ right.nanoseconds) }
    public static func - (left: Self, right: Self) -> Self { Self(nanoseconds: left.nanoseconds &- right.nanoseconds) }
    public static func * (left: Self, right: Int) -> Self { Self(nanoseconds: left.nanoseconds &* Int64(right)) }
    public var description: String { "\(Double(nanoseconds) / 1e6) ms" }
}

/// A point on the monotonic clock, in nanoseconds since an arbitrary start.
///
/// The sans-IO modules never read a clock: the caller hands an instant in.
public struct Instant: Hashable, Comparable, Sendable, Codable, BitwiseCopyable, CustomStringConvertible {
    public var nanoseconds: Int64
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
    public static func + (left: Self, right: Interval) -> Self {
        Self(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
    public static func - (left: Self, right: Interval) -> Self {
        Self(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
    public static func - (left: Self, right: Self) -> Interval {
        Interval(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
    public static func += (left: inout Self, right: Interval) { left = left + right }
    public var description: String { "t+\(Double(nanoseconds) / 1e6) ms" }
}

/// The earlier of two deadlines, where `nil` means none.
public func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
    guard let left else { return right }
    guard let right else { return left }
    return min(left, right)
}
