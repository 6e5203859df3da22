package import Metrics
package import Web
package import Webhooks

/// The metrics of connections, clients and webhooks.
///
/// Names with the prefix `sora_` are those of the Sora exporter, for existing dashboards.
package struct SignalingSnapshot: Sendable {
    package var counts = SignalingStatistics.Counts()
    package var webhooks: [String: WebhookCounters.Counts] = [:]
    package var allowed: UInt64 = 0
    package var denied: UInt64 = 0
    /// Subscriptions to events.
    package var subscriptions = 0
    /// Events in the delivery queue of each webhook, and of all subscriptions together.
    package var waiting: [String: Int] = [:]
    /// Seconds since 1970.
    package var time = 0.0

    package init() {}

    package init(
        _ statistics: SignalingStatistics,
        _ counters: WebhookCounters,
        _ webhooks: Webhooks,
        _ statisticsWebhook: StatisticsWebhook,
        _ subscriptions: EventSubscriptions,
        time: Double
    ) async {
        counts = statistics.counts
        for name in Self.names + [EventSubscriptions.webhookName] {
            self.webhooks[name] = await counters[name]
        }
        allowed = await counters.allowed
        denied = await counters.denied
        waiting = await webhooks.waitingCounts
        waiting["stats"] = await statisticsWebhook.waitingCount
        let load = await subscriptions.load
        self.subscriptions = load.subscriptions
        waiting[EventSubscriptions.webhookName] = load.waiting
        self.time = time
    }

    private static let names = ["auth", "event", "session", "stats"]

    /// - Parameter version: the program's.
    package func add(to page: inout MetricsPage, media: AdminAPI.MediaTotals, version: String) {
        addConnections(to: &page, version)
        addMedia(to: &page, media)
        addClients(to: &page)
        addRefusals(to: &page)
        addRelay(to: &page)
        addWebhooks(to: &page)
    }

    private func addRefusals(to page: inout MetricsPage) {
        for reason in SignalingStatistics.Refusal.allCases {
            page.addCounter(
                "nagare_signaling_refused_total",
                help: "Requests, connections and messages refused by rate limits.",
                labels: [MetricLabel("reason", reason.rawValue)],
                counts.refusals[reason] ?? 0
            )
        }
    }

    private func addRelay(to page: inout MetricsPage) {
        for result in SignalingStatistics.CallRegistration.allCases {
            page.addCounter(
                "nagare_ayame_registrations_total",
                help: "Clients that registered at the 1:1 relay, by result.",
                labels: [MetricLabel("result", result.rawValue)],
                counts.relayRegistrations[result] ?? 0
            )
        }
        page.addCounter(
            "nagare_ayame_messages_total",
            help: "Descriptions and candidates that the 1:1 relay passed on.",
            counts.relayedMessages
        )
    }

    private func addConnections(to page: inout MetricsPage, _ version: String) {
        page.addGauge("sora_up", help: "Whether the node answers; always 1.", 1)
        page.addGauge(
            "sora_version_info",
            help: "The running program; always 1.",
            labels: [MetricLabel("version", version)],
            1
        )
        page.addGauge("sora_time_seconds", help: "The node's clock, since 1970.", time)
        let states: [(String, UInt64)] = [
            ("created", counts.connectionsCreated), ("updated", counts.connectionsUpdated),
            ("destroyed", counts.connectionsDestroyed), ("successful", counts.connectionsCreated),
            ("failed", counts.connectionsFailed),
        ]
        for (state, value) in states {
            page.addCounter(
                "sora_connections_total",
                help: "Connections, by event.",
                labels: [MetricLabel("state", state)],
                value
            )
        }
        page.addGauge(
            "sora_ongoing_connections",
            help: "Connected clients.",
            Int(clamping: counts.ongoing)
        )
        page.addCounter(
            "sora_duration_seconds_total",
            help: "Total duration of ended connections.",
            seconds: counts.duration / .seconds(1)
        )
        page.addGauge(
            "sora_average_duration_seconds",
            help: "Average duration of ended connections.",
            counts.durationAverage
        )
        page.addGauge(
            "sora_average_setup_time_seconds",
            help: "Average time from the request to join until the transport connected.",
            counts.setupTimeAverage / 1_000
        )
        page.addHistogram(
            "nagare_join_duration_seconds",
            help: "Time from the place in the channel until the transport connected, of each connected participant.",
            counts.setupTimes
        )
        for (state, value) in [("created", counts.sessionsCreated), ("destroyed", counts.sessionsDestroyed)] {
            page.addCounter(
                "sora_session_total",
                help: "Sessions, by event.",
                labels: [MetricLabel("state", state)],
                value
            )
        }
    }

    private func addMedia(to page: inout MetricsPage, _ media: AdminAPI.MediaTotals) {
        let totals: [(String, String, UInt64)] = [
            ("sora_srtp_received_packets_total", "RTP packets received.", media.packetsReceived),
            ("sora_srtp_received_bytes_total", "Bytes of media datagrams received.", media.bytesReceived),
            ("sora_srtp_sent_packets_total", "RTP packets sent, without retransmissions.", media.packetsSent),
            ("sora_srtp_sent_bytes_total", "Bytes of RTP packets sent, without retransmissions.", media.bytesSent),
        ]
        for (name, help, value) in totals { page.addCounter(name, help: help, value) }
    }

    private func addClients(to page: inout MetricsPage) {
        for client in SignalingStatistics.Client.allCases {
            let states = [("successful", counts.successfulClients), ("failed", counts.failedClients)]
            for (state, clients) in states {
                page.addCounter(
                    "sora_client_type_total",
                    help: "Connections, by client program.",
                    labels: [MetricLabel("client", client.rawValue), MetricLabel("state", state)],
                    clients[client] ?? 0
                )
            }
        }
        for (reason, value) in counts.signalingErrors {
            page.addCounter(
                "sora_connection_error_total",
                help: "Connections that the signaling refused or ended because of an error.",
                labels: [MetricLabel("reason", reason)],
                value
            )
        }
    }

    private func addWebhooks(to page: inout MetricsPage) {
        for (state, value) in [("allowed", allowed), ("denied", denied)] {
            page.addCounter(
                "sora_auth_webhook_total",
                help: "Decisions of the authentication webhook.",
                labels: [MetricLabel("state", state)],
                value
            )
        }
        for name in Self.names {
            let counts = webhooks[name] ?? WebhookCounters.Counts()
            let isAuthentication = name == "auth"
            let family = isAuthentication ? "sora_successful_auth_webhook_total" : "sora_\(name)_webhook_total"
            var states = [("successful", counts.successful), ("failed", counts.failed)]
            if !isAuthentication { states.append(("ignored", counts.dropped)) }
            for (state, value) in states {
                page.addCounter(
                    family,
                    help: "Requests to the webhook, by result.",
                    labels: [MetricLabel("state", state)],
                    value
                )
            }
        }
        addSubscriptions(to: &page)
        for name in Self.names + [EventSubscriptions.webhookName] {
            let counts = webhooks[name] ?? WebhookCounters.Counts()
            let label = [MetricLabel("webhook", name)]
            page.addCounter(
                "nagare_webhook_retries_total",
                help: "Failed webhook requests that were retried.",
                labels: label,
                counts.retried
            )
            for reason in WebhookCounters.DropReason.allCases {
                page.addCounter(
                    "nagare_webhook_dropped_total",
                    help: "Webhook events and authentication requests dropped because of a limit.",
                    labels: label + [MetricLabel("reason", reason.rawValue)],
                    counts.drops[reason] ?? 0
                )
            }
            page.addHistogram(
                "nagare_webhook_duration_seconds",
                help: "Time of each webhook request until its answer or failure.",
                labels: label,
                counts.durations
            )
            page.addGauge(
                "nagare_webhook_waiting",
                help: "Webhook events in the queue.",
                labels: label,
                waiting[name] ?? 0
            )
        }
    }

    private func addSubscriptions(to page: inout MetricsPage) {
        page.addGauge("nagare_event_subscriptions", help: "Subscriptions to events.", subscriptions)
        let counts = webhooks[EventSubscriptions.webhookName] ?? WebhookCounters.Counts()
        let states = [("delivered", counts.successful), ("failed", counts.failed), ("dropped", counts.dropped)]
        for (state, value) in states {
            page.addCounter(
                "nagare_subscription_events_total",
                help: "Events for subscriptions: delivered, failed after all attempts, dropped by a full queue.",
                labels: [MetricLabel("state", state)],
                value
            )
        }
    }
}
