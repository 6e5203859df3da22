import Access
package import ChannelTypes
import JSON
package import Logging
package import Room
import ServiceLifecycle
package import Web

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The statistics webhook: what Sora's clients report of themselves, as it arrives.
///
/// Reports replace each other, so few wait for a slow server, and what is left at the end of the node is dropped.
package actor StatisticsWebhook {
    /// What one client reported.
    package struct Report: Sendable {
        let participant: ParticipantID
        let channel: ChannelName
        /// An array of W3C statistics, as text: parsed, it takes many times the memory.
        let text: String
        let unixNanoseconds: Int64

        package init(
            _ text: String,
            of participant: ParticipantID,
            in channel: ChannelName,
            unixNanoseconds: Int64
        ) {
            self.participant = participant
            self.channel = channel
            self.text = text
            self.unixNanoseconds = unixNanoseconds
        }
    }

    /// The most reports of at most 256 KiB that wait for their turn, and for the server.
    private static let arrivalsMax = 256
    private static let waitingMax = 32
    private static let attemptsMax = 2
    /// Sora's name for whose statistics they are.
    private static let type = "connection.user-agent"

    private let deliverer: WebhookDeliverer
    private var isUsed: Bool
    private let bodies: WebhookBodies
    private let reports: AsyncStream<Report>
    private nonisolated let arrivals: AsyncStream<Report>.Continuation

    package init(
        _ configuration: WebhookConfiguration,
        client: WebhookClient,
        node: NodeIdentity,
        counters: WebhookCounters,
        logger: Logger
    ) {
        self.init(configuration, transport: client, node: node, counters: counters, logger: logger)
    }

    init(
        _ configuration: WebhookConfiguration,
        transport: any WebhookTransport,
        node: NodeIdentity,
        counters: WebhookCounters,
        logger: Logger
    ) {
        var limits = configuration.limits
        limits.waitingMax = min(limits.waitingMax, Self.waitingMax)
        limits.attemptsMax = min(limits.attemptsMax, Self.attemptsMax)
        deliverer = WebhookDeliverer(
            name: "stats",
            url: configuration.statisticsURL ?? "",
            transport: transport,
            limits: limits,
            headers: [("x-sora-stats-exporter-type", Self.type)],
            counters: counters,
            logger: logger
        )
        isUsed = configuration.statisticsURL != nil
        bodies = WebhookBodies(node: node) { UUID().uuidString.lowercased() }
        (reports, arrivals) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.arrivalsMax))
    }

    /// The number of reports not delivered yet.
    package var waitingCount: Int { get async { await deliverer.waitingCount } }

    /// Changes the address. Without one, further reports are dropped.
    package func setURL(_ url: String?) async {
        if let url { await deliverer.setURL(url) }
        isUsed = url != nil
    }

    /// Queues a report. The oldest is dropped when too many wait.
    package nonisolated func take(_ report: Report) { arrivals.yield(report) }

    /// Delivers reports until the task is cancelled.
    func run(_ directory: ChannelDirectory) async {
        await withDiscardingTaskGroup { [deliverer] group in
            group.addTask { await deliverer.run() }
            for await report in reports where isUsed {
                guard let connection = await directory.connection(of: report.participant),
                    let statistics = try? JSONValue(parsing: report.text)
                else { continue }
                let body = bodies.statistics(
                    Self.type,
                    statistics,
                    of: connection,
                    unixNanoseconds: report.unixNanoseconds
                )
                await deliverer.enqueue(
                    WebhookDeliverer.Event(body: body, participant: report.participant, isEssential: false),
                    of: report.channel
                )
            }
            group.cancelAll()
        }
    }
}

/// Runs the statistics webhook until the node stops.
package struct StatisticsWebhookService: Service {
    private let webhook: StatisticsWebhook
    private let directory: ChannelDirectory

    package init(_ webhook: StatisticsWebhook, _ directory: ChannelDirectory) {
        self.webhook = webhook
        self.directory = directory
    }

    package func run() async {
        await cancelWhenGracefulShutdown { await webhook.run(directory) }
    }
}
