/// The addresses of the nodes that serve a channel, one of them in use.
struct NodeList: Hashable, Sendable {
    /// Failures that another node does not have.
    private static let failuresOfNode: Set = ["SERVER-SHUTDOWN", "TRY-AGAIN-LATER", "SIGNALING-SILENT"]

    private let urls: [String]
    private var index = 0

    /// - Parameter urls: at least one.
    init(_ urls: [String]) { self.urls = urls }

    var current: String { urls.indices.contains(index) ? urls[index] : "" }
    var hasOthers: Bool { urls.count > 1 }

    /// A connection to the present node ended. After one that worked, the first try is there again, where the client's place
    /// is, unless the node is silent or stops.
    mutating func failed(_ reason: String, hadWorked: Bool) {
        guard !urls.isEmpty, !hadWorked || Self.failuresOfNode.contains(reason) else { return }
        index = (index + 1) % urls.count
    }

    /// Another connection of the client is at this node.
    mutating func use(_ url: String) { index = urls.firstIndex(of: url) ?? index }
}

/// When to connect again.
enum Backoff {
    private static let secondsMin = 0.3
    private static let secondsMax = 15.0

    /// The pause before try number `attempt` (from 1): exponential, bounded, with jitter.
    /// - Parameter random: 0…1.
    static func pause(attempt: Int, random: Double) -> Duration {
        let doublings = min(max(attempt - 1, 0), 16)
        let seconds = min(secondsMax, secondsMin * Double(1 << doublings))
        return .seconds(seconds * (0.75 + random / 2))
    }

    /// The pause after a node refused because too many clients joined at once: they are to return apart.
    static func crowdPause(random: Double) -> Duration { .seconds(0.5 + random * 4.5) }
}
