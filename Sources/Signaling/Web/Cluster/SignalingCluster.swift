package import ChannelTypes
package import MediaTypes

/// The other nodes of a cluster, as signaling uses them.
package protocol SignalingCluster: Sendable {
    /// The run of this node, which the URLs of its sessions name.
    var incarnation: NodeIncarnation { get }

    /// Where a newcomer of a channel should connect instead of here; `nil` to stay. It must not wait for a node or a store
    /// that does not answer.
    func redirect(for channel: ChannelName, because reason: RedirectReason) async -> NodeAddress?

    /// Passes a request for a WHIP or WHEP session to the node that has it, and returns that node's response. It ends within
    /// ``ForwardedRequest/timeout``.
    func forward(
        _ request: ForwardedRequest,
        to node: NodeIncarnation
    ) async throws(ForwardFailure) -> ForwardedResponse

    /// Asks a node for connections of it: see ``AdminAPI/answer(connections:)``. `nil` without an answer within a second.
    func connections(_ question: [UInt8], at node: NodeIncarnation) async -> [UInt8]?

    /// All nodes as known here.
    var status: ClusterStatus { get }
}

/// Why a newcomer may have to connect to another node.
package enum RedirectReason: Hashable, Sendable {
    /// It asked this node. A channel of few members is best on one node.
    case newcomer
    /// This node refuses the newcomer, because it drains or because of its mode.
    case draining
    /// More clients join this node at once than it can serve in time.
    case overloaded
}

/// Where clients reach a node: scheme, host and port, such as `https://n1.example.com:8443`, without a path.
package struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    /// Of the HTTP listener, without a slash at the end.
    package let url: String
    package var description: String { url }

    /// The longest address in bytes.
    private static let bytesMax = 255

    /// `nil` unless the text starts with `http://` or `https://` and has a host, at most a port after it, and nothing else.
    package init?(_ text: some StringProtocol) {
        let url = text.hasSuffix("/") ? String(text.dropLast()) : String(text)
        guard url.utf8.count <= Self.bytesMax,
            let scheme = ["http://", "https://"].first(where: { url.hasPrefix($0) })
        else { return nil }
        let authority = url.dropFirst(scheme.count)
        let isPlain = authority.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
                true
            default: false
            }
        }
        guard isPlain, let first = authority.utf8.first, first != UInt8(ascii: ":") else { return nil }
        self.url = url
    }

    /// The same address for WebSockets: `wss://…`, or `ws://…` for plain HTTP.
    package var webSocketURL: String { "ws" + url.dropFirst(4) }
}

/// Why a request could not be passed to another node.
package enum ForwardFailure: Error, Hashable, Sendable {
    /// No node of the cluster runs under this incarnation any more.
    case nodeUnknown
    /// The node did not answer in time, or there is no link to it.
    case unreachable
}
