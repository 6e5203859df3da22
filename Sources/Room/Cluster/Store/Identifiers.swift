public import MediaTypes
public import Room

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

/// The identifier of one session of a room, from the first member to the last: 1 to 64 bytes of UTF-8.
public struct RoomSession: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard 1...64 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }
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
