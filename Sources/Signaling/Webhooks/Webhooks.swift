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

/// The event and session webhooks.
///
/// It delivers the events of reports in the background, in order per channel. It applies the answers of the session webhook to
/// new sessions.
///
/// ``WebhooksService`` runs it.
package actor Webhooks {
    private let events: WebhookDeliverer
    private let sessions: WebhookDeliverer
    /// Which of the two are in use.
    private var uses: (events: Bool, sessions: Bool)
    let bodies: WebhookBodies
    private let counters: WebhookCounters
    private let logger: Logger
    private let drainTimeout: Duration

    /// - Parameters:
    ///   - client: The HTTP client, which must outlive the service.
    ///   - logger: Logs undelivered events.
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
        logger: Logger,
        makeID: @escaping @Sendable () -> String = { UUID().uuidString.lowercased() },
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        let deliverer = { (name: String, url: String?) in
            WebhookDeliverer(
                name: name,
                url: url ?? "",
                transport: transport,
                limits: configuration.limits,
                counters: counters,
                logger: logger,
                sleep: sleep
            )
        }
        events = deliverer("event", configuration.eventURL)
        sessions = deliverer("session", configuration.sessionURL)
        uses = (configuration.eventURL != nil, configuration.sessionURL != nil)
        bodies = WebhookBodies(node: node, makeID: makeID)
        drainTimeout = configuration.limits.drainTimeout
        self.counters = counters
        self.logger = logger
    }

    /// The number of events not delivered yet, by the webhook's name.
    package var waitingCounts: [String: Int] {
        get async { ["event": await events.waitingCount, "session": await sessions.waitingCount] }
    }

    /// Changes the addresses. Without one no further events are queued, and the queued ones still go to the former address.
    package func setURLs(event: String?, session: String?) async {
        if let event { await events.setURL(event) }
        if let session { await sessions.setURL(session) }
        uses = (event != nil, session != nil)
    }

    /// Queues the events of one report.
    /// - Parameter media: How the media of a connection that ended was; `nil` where that is not known.
    func take(_ report: RoomReport, media: JSONValue? = nil) async {
        switch report {
        case .sessionCreated(let session, let time):
            await enqueue(bodies.session("session.created", session, unixNanoseconds: time), of: session, isNew: true)
        case .sessionDestroyed(let session, let time):
            await enqueue(
                bodies.session("session.destroyed", session, unixNanoseconds: time),
                of: session,
                isNew: false
            )
        case .connectionCreated(let report):
            await enqueue(bodies.event("connection.created", report), of: report)
        case .publishingBegan(let report): await enqueue(.publish, report)
        case .flowChanged(let report):
            let kind = EventSubscriptions.Kind.trackChanged.rawValue
            let body = bodies.event(kind, report, flowing: report.connection.flowing)
            await enqueue(body, of: report, isEssential: false)
        case .firstFrameReceived(let report):
            let kind = EventSubscriptions.Kind.firstFrame.rawValue
            let body = bodies.event(kind, report, elapsedMilliseconds: report.elapsedMilliseconds)
            await enqueue(body, of: report, isEssential: false)
        case .connectionUpdated(let report):
            await enqueue(bodies.event("connection.updated", report), of: report, isEssential: false)
        case .roleChanged(let report, _):
            if report.connection.hasPublished, !report.connection.member.role.publishes {
                await enqueue(.publishDone, report, reason: Departure.becameAudience.rawValue)
            }
        case .connectionInterrupted(let report): await enqueue(.memberInterrupted, report)
        case .connectionResumed(let report): await enqueue(.memberResumed, report)
        case .qualityChanged, .setupAdvanced: break
        case .connectionDestroyed(let report, let reason):
            if report.connection.hasPublished { await enqueue(.publishDone, report, reason: reason.name) }
            await enqueue(bodies.event("connection.destroyed", report, reason: reason.name, media: media), of: report)
        case .connectionFailed(let report, let reason):
            await enqueue(
                bodies.event("connection.failed", report, reason: reason.name),
                of: report,
                isEssential: false
            )
        }
    }

    /// Tells of a session that ended with an earlier run of the node, which could not say so.
    /// - Parameter unixNanoseconds: when it was last seen, since 1970 UTC.
    package func vanished(_ session: ChannelSession, unixNanoseconds: Int64) async {
        await enqueue(
            bodies.session("session.vanished", session, unixNanoseconds: unixNanoseconds),
            of: session,
            isNew: false
        )
    }

    /// Queues an event of a kind that subscriptions have, too.
    private func enqueue(_ kind: EventSubscriptions.Kind, _ report: ConnectionReport, reason: String? = nil) async {
        await enqueue(bodies.event(kind.rawValue, report, reason: reason), of: report)
    }

    /// - Parameter body: Evaluated only with a configured event webhook.
    private func enqueue(_ body: @autoclosure () -> JSONValue, of report: ConnectionReport, isEssential: Bool = true)
        async
    {
        let connection = report.connection
        await enqueue(body(), of: connection.member.id, in: connection.channel, isEssential: isEssential)
    }

    /// - Parameter body: Evaluated only with a configured event webhook.
    func enqueue(
        _ body: @autoclosure () -> JSONValue,
        of participant: ParticipantID?,
        in channel: ChannelName,
        isEssential: Bool
    ) async {
        guard uses.events else { return }
        await events.enqueue(
            WebhookDeliverer.Event(body: body(), participant: participant, isEssential: isEssential),
            of: channel
        )
    }

    /// - Parameter isNew: whether the answer may configure the session.
    private func enqueue(_ body: @autoclosure () -> JSONValue, of session: ChannelSession, isNew: Bool) async {
        guard uses.sessions else { return }
        await sessions.enqueue(
            WebhookDeliverer.Event(body: body(), session: isNew ? session : nil),
            of: session.channel
        )
    }

    /// Counts events that were dropped before they were made. It is not known which; most events are of connections.
    func dropped(_ events: UInt64, _ reason: WebhookCounters.DropReason) async {
        guard uses.events || uses.sessions else { return }
        await counters.dropped(uses.events ? "event" : "session", reason, events)
    }

    /// Applies the session webhook's answer, if the session still exists.
    private func apply(_ answer: [String: JSONValue], to session: ChannelSession, of directory: ChannelDirectory) async
    {
        do {
            let fields = JSONFields(answer)
            let number = try fields.integer("spotlight_number", Spotlight.numbers)
            let filters = try ForwardingFilter.list(fields)
            if let number {
                try await perform(.setSpotlightNumber(number), in: session, of: directory)
            }
            for filter in filters ?? [] {
                try await perform(.createFilter(filter, scope: .channel), in: session, of: directory)
            }
        } catch {
            logger.warning(
                "the session webhook's answer was not applied",
                metadata: ["channel": "\(session.channel)", "reason": "\("\(error)".printable)"]
            )
        }
    }

    private func perform(_ command: ChannelCommand, in session: ChannelSession, of directory: ChannelDirectory)
        async throws(RoomError)
    {
        try await directory.perform(command, in: session.channel, by: .operator, session: session.id)
    }

    /// Delivers events until a graceful shutdown, and then the queued ones within the drain timeout.
    func run(_ directory: ChannelDirectory) async {
        await deliver(drainTimeout: drainTimeout) { [events, sessions] in
            await withDiscardingTaskGroup { group in
                group.addTask { await events.run() }
                group.addTask {
                    await sessions.run { event, answer in
                        guard let session = event.session else { return }
                        await self.apply(answer, to: session, of: directory)
                    }
                }
            }
        } finish: {
            await events.finish()
            await sessions.finish()
        }
        let left = await events.waitingCount + sessions.waitingCount
        guard left > 0 else { return }
        logger.warning("webhook events were not delivered before the shutdown", metadata: ["events": "\(left)"])
    }
}

/// Delivers the events of webhooks, and applies the answers of the session webhook to the channels of a node.
///
/// Services shut down in reverse order of their list: put it before ``RoomsService``, whose shutdown causes events.
package struct WebhooksService: Service {
    private let webhooks: Webhooks
    private let directory: ChannelDirectory

    package init(_ webhooks: Webhooks, _ directory: ChannelDirectory) {
        self.webhooks = webhooks
        self.directory = directory
    }

    package func run() async { await webhooks.run(directory) }
}
