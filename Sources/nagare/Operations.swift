import Access
import Foundation
import Logging
import Room
import Signaling

/// The operator's side of the node: authentication, webhooks, statistics and the admin API.
struct Operations: Sendable {
    let authorizer: any Authorizer
    /// `nil` without webhooks.
    let client: WebhookClient?
    let webhooks: Webhooks?
    /// Of the operators' API. It has a client of its own, without the credentials of the webhooks' servers.
    let subscriptions: EventSubscriptions
    private let subscriptionClient: WebhookClient
    let counters = WebhookCounters()
    let statistics = SignalingStatistics()
    let clientStatistics = ClientStatistics()
    /// The rooms of the 1:1 relay.
    let relayRooms: AyameRooms
    /// The Bearer token of the admin listener's APIs, if set.
    let adminToken: Token?
    /// Of the HTTPS listener; `nil` without one.
    let certificate: HTTPSCertificate?
    private let reload: ReloadAction
    private let node: NodeIdentity
    private let keys: AccessKeys

    /// - Parameters:
    ///   - keys: the keys that verify and sign tokens and URLs.
    ///   - adminToken: the Bearer token of the admin listener's APIs, if set.
    ///   - certificate: of the HTTPS listener; `nil` without one.
    ///   - reload: reads the node's files again.
    /// - Throws: when the certificates for webhooks are unusable.
    init(
        _ configuration: NodeConfiguration,
        keys: AccessKeys,
        adminToken: Token?,
        certificate: HTTPSCertificate?,
        logger: Logger,
        reload: @escaping ReloadAction
    ) throws(ServerStartError) {
        self.certificate = certificate
        self.reload = reload
        node = configuration.sora.identity
        self.keys = keys
        self.adminToken = adminToken
        var settings = configuration.webhooks.configuration
        settings.limits = configuration.limits.webhooks
        client = settings.isUsed || configuration.webhooks.isUsedByAyame ? try WebhookClient(settings) : nil
        webhooks = client.map { [node, counters] client in
            Webhooks(settings, client: client, node: node, counters: counters, logger: logger)
        }
        var subscribed = WebhookConfiguration()
        subscribed.timeout = settings.timeout
        subscribed.certificateAuthorityPath = settings.certificateAuthorityPath
        subscriptionClient = try WebhookClient(subscribed)
        subscriptions = EventSubscriptions(client: subscriptionClient, counters: counters, logger: logger)
        relayRooms = AyameRooms { [webhooks, subscriptions] report in
            webhooks?.take(report)
            subscriptions.take(report)
        }
        let asked = client.flatMap { [node, counters] client in
            WebhookAuthorizer(settings, client: client, node: node, counters: counters, logger: logger)
        }
        if let asked {
            authorizer = asked
        } else if !keys.isEmpty {
            authorizer = SignatureAuthorizer(keys: keys, logger: logger)
        } else if let token = configuration.token {
            guard let known = StaticTokenAuthorizer(token: token.secret) else {
                preconditionFailure("a token's characters are checked when the configuration is read")
            }
            authorizer = known
        } else {
            authorizer = OpenAuthorizer()
        }
    }

    /// Handles a notice of the rooms without blocking.
    func take(_ notice: Rooms.Event) {
        switch notice {
        case .report(let report):
            statistics.take(report)
            webhooks?.take(report)
            subscriptions.take(report)
        case .ended(let participant, _): clientStatistics.forget(participant)
        default: break
        }
    }

    /// The admin API.
    func api(
        _ rooms: Rooms,
        drain: NodeDrain,
        cluster: (any SignalingCluster)?,
        media: @escaping @Sendable () async -> AdminAPI.MediaTotals
    ) -> AdminAPI {
        AdminAPI(
            rooms: rooms,
            statistics: statistics,
            clientStatistics: clientStatistics,
            webhooks: counters,
            node: node,
            keys: keys,
            subscriptions: subscriptions,
            relayRooms: relayRooms,
            reload: reload,
            drain: drain,
            cluster: cluster,
            media: media
        )
    }

    /// Closes the connections to the operator's servers. Call it once, at the end.
    func shutdown() async {
        await client?.shutdown()
        await subscriptionClient.shutdown()
    }

    /// The metrics of signaling and webhooks.
    var snapshot: SignalingSnapshot {
        SignalingSnapshot(statistics, counters, webhooks, subscriptions, time: Date().timeIntervalSince1970)
    }
}
