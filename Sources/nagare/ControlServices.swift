import Access
import Ayame
import Base
import ChannelTypes
import EventLoop
import Foundation
import History
import Logging
import Operators
import Room
import ToolCommands
import Web
import Webhooks

/// The operator's side of the node: authentication, webhooks, statistics and the admin API.
struct ControlServices: Sendable {
    let authorizer: ReplaceableAuthorizer
    let client: WebhookClient
    let webhooks: Webhooks
    let statisticsWebhook: StatisticsWebhook
    /// Of the operators' API. It has a client of its own, without the credentials of the webhooks' servers.
    let subscriptions: EventSubscriptions
    private let subscriptionClient: WebhookClient
    /// On their way to the webhooks and subscriptions.
    let reports: ReportQueue
    /// Fetches the keys of tokens at a URL.
    private let keySetClient: KeySetClient
    let counters = WebhookCounters()
    let statistics = SignalingStatistics()
    let clientStatistics: ClientStatistics
    /// The connections of the last hours; `nil` where they are not kept.
    let history: ConnectionHistory?
    /// `nil` without a collector.
    let traces: Traces?
    /// The registrations of the 1:1 relay.
    let relayCalls: AyameCalls
    /// What is in force: a reload replaces it.
    let access: Replaceable<NodeAccess>
    /// Of the listeners.
    let certificates: NodeCertificates
    private let node: NodeIdentity
    private let limits: WebhookLimits
    private let logger: Logger

    /// - Parameters:
    ///   - certificates: of the listeners.
    ///   - cluster: the other nodes; `nil` outside of a cluster.
    ///   - records: what all nodes of the cluster have.
    ///   - relays: of one-to-one calls; `nil` without a TURN server.
    /// - Throws: when the certificates for webhooks or the folder of the history are unusable.
    init(
        _ configuration: NodeConfiguration,
        access: NodeAccess,
        certificates: NodeCertificates,
        cluster: (any OtherNodes)?,
        records: ClusterRecords?,
        relays: (any CallTURNServers)?,
        logger: Logger
    ) throws(ServerStartError) {
        self.certificates = certificates
        node = configuration.sora.identity
        // All that can fail comes before the first HTTP client, which would have to be shut down.
        let keySetAuthorities = try TrustedAuthorities(
            path: configuration.keySetAuthorityPath,
            for: "the keys of tokens"
        )
        let webhookAuthorities = try TrustedAuthorities(
            path: configuration.webhooks.certificateAuthorityPath,
            for: "webhooks"
        )
        history = try Self.history(configuration, logger: logger)
        traces = configuration.traces.map { [node] in Traces($0, node: node, logger: logger) }
        self.logger = logger
        keySetClient = KeySetClient(trusting: keySetAuthorities)
        var access = access
        access.keys.remote = configuration.keySet?.url.map { [keySetClient] in
            keySetClient.keySet(at: $0, logger: logger)
        }
        self.access = Replaceable(access)
        limits = configuration.limits.webhooks
        var settings = configuration.webhooks.configuration
        settings.limits = limits
        settings.signer = access.webhookSigner
        client = WebhookClient(settings, trusting: webhookAuthorities)
        webhooks = Webhooks(settings, client: client, node: node, counters: counters, logger: logger)
        let statisticsWebhook = StatisticsWebhook(
            settings,
            client: client,
            node: node,
            counters: counters,
            logger: logger
        )
        self.statisticsWebhook = statisticsWebhook
        clientStatistics = ClientStatistics {
            statisticsWebhook.take(StatisticsWebhook.Report($0, of: $1, in: $2, unixNanoseconds: $3))
        }
        subscriptionClient = WebhookClient(settings.forSubscriptions, trusting: webhookAuthorities)
        subscriptions = EventSubscriptions(client: subscriptionClient, counters: counters, logger: logger) {
            records?.tell(subscription: $1, of: $0)
        }
        reports = ReportQueue(webhooks, subscriptions, limits: limits)
        relayCalls = AyameCalls(cluster: cluster, relays: relays) { [reports] in reports.add($0) }
        authorizer = ReplaceableAuthorizer(OpenAuthorizer())
        authorizer.replace(with: makeAuthorizer(configuration, access))
        if let remote = access.keys.remote { Task { await remote.start() } }
    }

    /// What decides on clients with these settings.
    private func makeAuthorizer(_ configuration: NodeConfiguration, _ access: NodeAccess) -> any Authorizer {
        var settings = configuration.webhooks.configuration
        settings.limits = limits
        if let asked = WebhookAuthorizer(settings, client: client, node: node, counters: counters, logger: logger) {
            return asked
        }
        if !access.keys.isEmpty { return SignatureAuthorizer(keys: access.keys, logger: logger) }
        guard let token = access.token else { return OpenAuthorizer() }
        guard let known = StaticTokenAuthorizer(token: token.secret) else {
            preconditionFailure("a token's characters are checked when it is read")
        }
        return known
    }

    /// Puts other tokens, keys and webhooks in force. Who is admitted already stays.
    func change(to configuration: NodeConfiguration, _ access: NodeAccess) async {
        var settings = configuration.webhooks.configuration
        settings.signer = access.webhookSigner
        client.change(settings)
        subscriptionClient.change(settings.forSubscriptions)
        await webhooks.setURLs(event: settings.eventURL, session: settings.sessionURL)
        await statisticsWebhook.setURL(settings.statisticsURL)
        let previous = self.access.current.keys.remote
        self.access.current = access
        authorizer.replace(with: makeAuthorizer(configuration, access))
        guard previous !== access.keys.remote else { return }
        Task {
            await previous?.stop()
            await access.keys.remote?.start()
        }
    }

    /// Adds the keys at the URL of the settings, and fetches them.
    /// - Parameter current: the settings in force.
    /// - Throws: when the URL is another one than now and its keys cannot be fetched.
    func addKeySet(
        to access: inout NodeAccess,
        of configuration: NodeConfiguration,
        _ current: NodeConfiguration
    ) async throws(CommandError) {
        guard let source = configuration.keySet, let url = source.url else { return }
        if let remote = self.access.current.keys.remote, current.keySet == source {
            await remote.refresh()
            access.keys.remote = remote
            return
        }
        let remote = keySetClient.keySet(at: url, logger: logger)
        if let failure = await remote.refresh() {
            throw .system("The keys of \(source.origin) cannot be fetched from \(remote.url). \(failure.message)")
        }
        access.keys.remote = remote
    }

    private static func history(
        _ configuration: NodeConfiguration,
        logger: Logger
    ) throws(ServerStartError) -> ConnectionHistory? {
        let (name, directory) = (configuration.sora.identity.name, configuration.stateDirectory)
        guard configuration.historyHours > 0 else {
            guard let directory else { return nil }
            do {
                try ConnectionHistory.remove(node: name, directory: directory)
            } catch {
                logger.error("the history of connections failed", metadata: ["reason": "\(error.message)"])
            }
            return nil
        }
        do {
            return try ConnectionHistory(
                node: name,
                directory: directory,
                hours: configuration.historyHours,
                onFailure: { reason in
                    logger.error("the history of connections failed", metadata: ["reason": "\(reason)"])
                }
            )
        } catch {
            throw ServerStartError(message: error.message)
        }
    }

    /// Has decisions of operators end calls of the 1:1 relay, and tells other nodes of blocks.
    func observers(telling records: ClusterRecords?) -> ChannelDirectory.Observers {
        var observers = ChannelDirectory.Observers()
        observers.decision = { [relayCalls] in await relayCalls.end(by: $0).compactMap(ParticipantID.init) }
        if let records { observers.block = { records.tell($1, of: $0) } }
        return observers
    }

    /// Handles a notice of the rooms without blocking.
    func take(_ notice: ChannelDirectory.Event) {
        switch notice {
        case .report(let report):
            statistics.take(report)
            traces?.joins.take(report)
            reports.add(report, media: history?.take(report, at: EventLoop.now()))
        case .ended(let participant, _, _): clientStatistics.forget(participant)
        default: break
        }
    }

    /// The admin API.
    /// - Parameter reload: reads the node's files again.
    func api(
        _ directory: ChannelDirectory,
        drain: NodeDrain,
        cluster: (any OtherNodes)?,
        reload: @escaping ReloadAction,
        media: @escaping @Sendable () async -> AdminAPI.MediaTotals
    ) -> AdminAPI {
        AdminAPI(
            directory: directory,
            statistics: statistics,
            clientStatistics: clientStatistics,
            webhooks: counters,
            node: node,
            keys: access.current.keys,
            subscriptions: subscriptions,
            relayCalls: relayCalls,
            reload: reload,
            drain: drain,
            cluster: cluster,
            history: history,
            media: media
        )
    }

    /// Closes the connections to the operator's servers. Call it once, at the end.
    func shutdown() async {
        await history?.flush()
        await access.current.keys.remote?.stop()
        await keySetClient.shutdown()
        await client.shutdown()
        await subscriptionClient.shutdown()
    }

    /// The metrics of the keys at a URL; `nil` without one.
    var keySetCounts: RemoteKeySet.Counts? {
        get async { await access.current.keys.remote?.counts }
    }

    /// The metrics of signaling and webhooks.
    func snapshot() async -> SignalingSnapshot {
        await SignalingSnapshot(
            statistics,
            counters,
            webhooks,
            statisticsWebhook,
            subscriptions,
            time: Date().timeIntervalSince1970
        )
    }
}
