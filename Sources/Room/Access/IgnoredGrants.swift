package import Logging

/// Logs the members of tokens' claims and webhooks' answers that have no effect, each name once.
package actor IgnoredGrants {
    /// The most names that are logged.
    static let namesMax = 64

    /// Sora's grants that this server does not have.
    private static let unsupported = [
        "simulcast_multicodec": "All layers of a client have one codec.",
        "simulcast_codecs": "All layers of a client have one codec.",
        "simulcast_rpc_rids": "A client may request every layer.",
        "cluster_affinity": "A channel can be on every node of the cluster.",
    ]

    private let source: String
    private let logger: Logger
    private var known: Set<String> = []

    /// - Parameter source: what has the members, such as "token".
    package init(of source: String, logger: Logger) {
        self.source = source
        self.logger = logger
    }

    package func note(_ grants: Grants) {
        for name in grants.ignored where known.count < Self.namesMax && known.insert(name).inserted {
            logger.notice(
                "a member of the \(source) has no effect",
                metadata: [
                    "name": "\(String(name.prefix(64)).printable)",
                    "reason": "\(Self.unsupported[name] ?? "There is no grant of this name.")",
                ]
            )
        }
    }
}
