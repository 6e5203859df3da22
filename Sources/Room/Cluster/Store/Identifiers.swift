public import MediaTypes

/// The name of a cluster, which prefixes its keys in the store: 1 to 32 lower-case letters, digits and hyphens.
public struct ClusterName: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public var description: String { rawValue }

    public init?(rawValue: String) {
        let isName = rawValue.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
            default: false
            }
        }
        guard isName, 1...32 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }
}

/// The name of a node, the same after a restart: 1 to 63 letters, digits, dots, hyphens and underscores.
public struct NodeID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public var description: String { rawValue }

    public init?(rawValue: String) {
        let isName = rawValue.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isName, 1...63 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The name of a room: 1 to 255 bytes of UTF-8.
public struct RoomName: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public var description: String { rawValue }

    public init?(rawValue: String) {
        guard 1...255 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }
}

/// The identifier of one session of a room, from the first member to the last: 1 to 64 bytes of UTF-8.
public struct RoomSession: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard 1...64 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }
}

/// The number of a room's anchor in the order of anchors. What carries a lower one is out of date.
public struct RoomEpoch: RawRepresentable, Hashable, Comparable, Sendable {
    /// Scripts count in floating point, which is exact below 2⁵³.
    static let rawValueMax: Int64 = 1 << 53 - 1
    /// Before the first anchor.
    public static let none = Self(unchecked: 0)
    public static let first = Self(unchecked: 1)

    public let rawValue: Int64

    public init?(rawValue: Int64) {
        guard 0...Self.rawValueMax ~= rawValue else { return nil }
        self.rawValue = rawValue
    }

    private init(unchecked rawValue: Int64) { self.rawValue = rawValue }

    /// The epoch of the next anchor. The last one has no other next.
    public var next: Self { Self(unchecked: min(rawValue + 1, Self.rawValueMax)) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// One run of a node. Of two runs of a node, the greater incarnation is the later one.
public struct NodeInstance: Hashable, Sendable, CustomStringConvertible {
    public let node: NodeID
    public let incarnation: NodeIncarnation

    public init(node: NodeID, incarnation: NodeIncarnation) {
        self.node = node
        self.incarnation = incarnation
    }

    /// `nil` when the text is not a ``description``.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let node = NodeID(rawValue: String(parts[0])),
            let incarnation = UInt32(parts[1]).flatMap(NodeIncarnation.init(rawValue:))
        else { return nil }
        self.init(node: node, incarnation: incarnation)
    }

    /// The node's name and the incarnation in decimal: `a:7`.
    public var description: String { "\(node):\(incarnation.rawValue)" }
}

extension NodeIncarnation {
    /// The greatest number that the store assigns. A node that starts without the store takes a greater one.
    static let assignedMax: UInt32 = 1 << (bits - 1) - 1

    /// Whether the number comes from the store.
    public var isAssigned: Bool { 1...Self.assignedMax ~= rawValue }
}

/// A random number that the store keeps while its content is continuous: 32 hexadecimal digits.
///
/// A node that sees another one knows that the store was emptied, or runs on an older copy.
public struct StoreGeneration: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard rawValue.utf8.count == 32 else { return nil }
        self.rawValue = rawValue
    }

    public init(using generator: inout some RandomNumberGenerator) {
        let halves = [generator.next(), generator.next()].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        rawValue = halves.joined()
    }
}
