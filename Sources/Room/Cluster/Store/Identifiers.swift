package import ChannelTypes
package import MediaTypes

/// The name of a cluster, which prefixes its keys in the store: 1 to 32 lower-case letters, digits and hyphens.
package struct ClusterName: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String
    package var description: String { rawValue }

    package init?(rawValue: String) {
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
package struct RoomSession: RawRepresentable, Hashable, Sendable {
    package let rawValue: String

    package init?(rawValue: String) {
        guard 1...64 ~= rawValue.utf8.count else { return nil }
        self.rawValue = rawValue
    }
}

/// One run of a node. Of two runs of a node, the greater incarnation is the later one.
package struct NodeInstance: Hashable, Sendable, CustomStringConvertible {
    package let node: NodeID
    package let incarnation: NodeIncarnation

    package init(node: NodeID, incarnation: NodeIncarnation) {
        self.node = node
        self.incarnation = incarnation
    }

    /// `nil` when the text is not a ``description``.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let node = NodeID(rawValue: String(parts[0])),
            let incarnation = UInt32(parts[1]).flatMap(NodeIncarnation.init(rawValue:))
        else { return nil }
        self.init(node: node, incarnation: incarnation)
    }

    /// The node's name and the incarnation in decimal: `a:7`.
    package var description: String { "\(node):\(incarnation.rawValue)" }
}

extension NodeIncarnation {
    /// The greatest number that the store assigns. A node that starts without the store takes a greater one.
    static let assignedMax: UInt32 = 1 << (bits - 1) - 1

    /// Whether the number comes from the store.
    package var isAssigned: Bool { 1...Self.assignedMax ~= rawValue }
}

/// A random number that the store keeps while its content is continuous: 32 hexadecimal digits.
///
/// A node that sees another one knows that the store was emptied, or runs on an older copy.
package struct StoreGeneration: RawRepresentable, Hashable, Sendable {
    package let rawValue: String

    package init?(rawValue: String) {
        guard rawValue.utf8.count == 32 else { return nil }
        self.rawValue = rawValue
    }

    package init(using generator: inout some RandomNumberGenerator) {
        let halves = [generator.next(), generator.next()].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        rawValue = halves.joined()
    }
}
