/// A question of one node to another.
package struct NodeRequest: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        /// Of a later version.
        case unknown = 0
        /// Which nodes have a channel, while there is no store.
        case hostingNodes
        /// Whether the node can reach another one.
        case canReach
        /// A track for a mirror.
        case export
        /// An HTTP request about a session of the node.
        case forward
        /// What all nodes agree on: the records of operators.
        case records
        /// Connections of the node, with their statistics.
        case connections
        /// About a room of the 1:1 relay. Its content belongs to signaling.
        case callRoom

        /// How long an answer is awaited. A client waits for most of them.
        package var answerTimeout: Duration {
            switch self {
            case .hostingNodes, .callRoom: .milliseconds(300)
            case .canReach: .milliseconds(400)
            case .unknown, .connections: .seconds(1)
            case .export: .seconds(2)
            case .records: .seconds(3)
            case .forward: .seconds(5)
            }
        }

        /// How long a link is awaited before, when there is none.
        package var linkTimeout: Duration {
            switch self {
            case .unknown, .hostingNodes, .canReach, .export, .forward, .connections: .milliseconds(250)
            case .callRoom: .milliseconds(500)
            // It is in the background.
            case .records: .seconds(2)
            }
        }
    }

    package var kind: Kind
    package var body: [UInt8]

    package init(kind: Kind, body: [UInt8]) {
        self.kind = kind
        self.body = body
    }
}

/// Why a question to another node got no answer. The raw value is the metric's label.
package enum NodeRequestError: String, Error, CaseIterable, Hashable, Sendable {
    /// There is no such node.
    case noNode = "no_node"
    /// There is no link to the node.
    case noLink = "no_link"
    case timedOut = "timed_out"
    /// The node could not answer.
    case refused
    /// As many questions wait for answers as may.
    case busy
}
