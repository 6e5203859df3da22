import Access
import Foundation
import Logging
import Room
import Signaling

/// Who may take part, who is told of it, and what is counted: the node's side towards its operator.
struct Operations: Sendable {
    let authorizer: any Authorizer
    /// `nil` without webhooks. It is to be shut down at the end.
    let client: WebhookClient?
    let webhooks: Webhooks?
    let counters = WebhookCounters()
    let statistics = SignalingStatistics()
    let clientStatistics = ClientStatistics()
    private let node: NodeIdentity

    /// - Parameter keys: those of the configuration.
    /// - Throws: when the certificates for webhooks cannot be used.
    init(_ configuration: NodeConfiguration, keys: [JWTKey], logger: Logger) throws(ServerStartError) {
        node = configuration.sora.identity
        var settings = configuration.webhooks.configuration
        settings.limits = configuration.limits.webhooks
        client = settings.isUsed ? try WebhookClient(settings) : nil
        webhooks = client.map { [node, counters] client in
            Webhooks(settings, client: client, node: node, counters: counters, logger: logger)
        }
        let asked = client.flatMap { [node, counters] client in
            WebhookAuthorizer(settings, client: client, node: node, counters: counters, logger: logger)
        }
        if let asked {
            authorizer = asked
        } else if !keys.isEmpty {
            authorizer = JWTAuthorizer(keys: keys, logger: logger)
        } else if let token = configuration.token {
            guard let known = StaticTokenAuthorizer(token: token.secret) else {
                preconditionFailure("a token's characters are checked when the configuration is read")
            }
            authorizer = known
        } else {
            authorizer = OpenAuthorizer()
        }
    }

    /// Takes what rooms notice. It returns at once.
    func take(_ notice: Rooms.Notice) {
        switch notice {
        case .report(let report):
            statistics.take(report)
            webhooks?.take(report)
        case .ended(let participant, _): clientStatistics.forget(participant)
        default: break
        }
    }

    /// What operators' programs may command.
    func api(
        _ rooms: Rooms,
        media: @escaping @Sendable () async -> OperatorsAPI.MediaTotals
    ) -> OperatorsAPI {
        OperatorsAPI(
            rooms: rooms,
            statistics: statistics,
            clientStatistics: clientStatistics,
            webhooks: counters,
            node: node,
            media: media
        )
    }

    /// For a scrape.
    var snapshot: SignalingSnapshot {
        SignalingSnapshot(statistics, counters, webhooks, time: Date().timeIntervalSince1970)
    }
}
