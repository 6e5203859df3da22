/// The index of a media loop on its node.
public struct LoopIndex: RawRepresentable, Hashable, Sendable, Codable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// A number for one run of a node's process, unique across nodes and restarts.
///
/// It is part of identifiers, so identifiers of other nodes and of earlier runs are never mistaken for this node's. Of
/// two numbers of one node the greater is the later run.
public struct NodeIncarnation: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The size of the number in bits.
    public static let bits = 24
    /// For a node whose identifiers never meet those of another node, as in tests.
    public static let standalone = Self(truncating: 0)

    public let rawValue: UInt32

    /// `nil` when the number has more than ``bits`` bits.
    public init?(rawValue: UInt32) {
        guard rawValue >> Self.bits == 0 else { return nil }
        self.rawValue = rawValue
    }

    /// Keeps the low ``bits`` bits.
    init(truncating value: UInt64) { rawValue = UInt32(truncatingIfNeeded: value) & (1 << Self.bits - 1) }

    /// A random number in the upper half of the range, for a node without an assigned number. Assigned numbers are in
    /// the lower half.
    public init(using generator: inout some RandomNumberGenerator) {
        self.init(truncating: generator.next() | 1 << UInt64(Self.bits - 1))
    }

    /// Six hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: max(Self.bits / 4 - digits.count, 0)) + digits
    }
}

/// The media loop of a node that a peer and its tracks live on.
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
