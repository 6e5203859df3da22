/// Names one loop among a node's.
public struct LoopIndex: RawRepresentable, Hashable, Sendable, Codable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// The number of one start of a node, used by no other start of any node: a node that restarts gets another one.
///
/// Identifiers carry it, so what was made before a restart, or on another node, is never mistaken for something of this
/// node. The greater of two numbers of one node is the later start.
public struct NodeIncarnation: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// Bits of the number.
    public static let bits = 24
    /// The number of a node whose identifiers never meet those of another one, as in tests.
    public static let standalone = Self(truncating: 0)

    public let rawValue: UInt32

    /// `nil` when the number has more than ``bits`` bits.
    public init?(rawValue: UInt32) {
        guard rawValue >> Self.bits == 0 else { return nil }
        self.rawValue = rawValue
    }

    /// Keeps the low ``bits`` bits.
    init(truncating value: UInt64) { rawValue = UInt32(truncatingIfNeeded: value) & (1 << Self.bits - 1) }

    /// A random number in the upper half of the range, for a node that is assigned none. Assigned numbers are in the
    /// lower half.
    public init(using generator: inout some RandomNumberGenerator) {
        self.init(truncating: generator.next() | 1 << UInt64(Self.bits - 1))
    }

    /// Six hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: max(Self.bits / 4 - digits.count, 0)) + digits
    }
}

/// Where a peer and its tracks live: one media loop of one node.
public struct MediaLocation: Hashable, Sendable, Codable, CustomStringConvertible {
    public let node: NodeIncarnation
    public let loop: LoopIndex

    public init(node: NodeIncarnation = .standalone, loop: LoopIndex) {
        self.node = node
        self.loop = loop
    }

    /// `loop-2`, or `loop-2@8f03a1` on a node with an incarnation.
    public var description: String {
        node == .standalone ? "loop-\(loop.rawValue)" : "loop-\(loop.rawValue)@\(node)"
    }
}
