import Access
import Base
import ChannelTypes
package import JSON
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
/// It queues reports without blocking and delivers them in the background, in order per channel. It applies the answers of
/// the session webhook to new sessions.
///
/// ``WebhooksService`` runs it.
package final class Webhooks: Sendable {
    private let events: WebhookDeliverer
    private let sessions: WebhookDeliverer
    /// Which of the two are in use.
    private let uses: Replaceable<(events: Bool, sessions: Bool)>
    let bodies: WebhookBodies
    private let logger: Logger
    private let drainTimeout: Duration

    /// - Parameters:
    ///   - client: The HTTP client, which must outlive the service.
    ///   - logger: Logs undelivered events.
    package convenience init(
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
        uses = Replaceable((configuration.eventURL != nil, configuration.sessionURL != nil))
        bodies = WebhookBodies(node: node, makeID: makeID)
        drainTimeout = configuration.limits.drainTimeout
        self.logger = logger
    }

    /// The number of events not delivered yet, by the webhook's name.
    package var waitingCounts: [String: Int] {
        ["event": events.waitingCount, "session": sessions.waitingCount]
    }

    /// Changes the addresses. Without one no further events are queued, and the queued ones still go to the former address.
    package func setURLs(event: String?, session: String?) {
        if let event { events.setURL(event) }
        if let session { sessions.setURL(session) }
        uses.current = (event != nil, session != nil)
    }

    /// Queues the event of one report. It does not block.
    /// - Parameter media: How the media of a connection that ended was; `nil` where that is not known.
    package func take(_ report: RoomReport, media: JSONValue? = nil) {
        switch report {
        case .sessionCreated(let session, let time):
            enqueue(bodies.session("session.created", session, unixNanoseconds: time), of: session, isNew: true)
        case .sessionDestroyed(let session, let time):
            enqueue(bodies.session("session.destroyed", session, unixNanoseconds: time), of: session, isNew: false)
        case .connectionCreated(let report):
            enqueue(bodies.event("connection.created", report), of: report)
            if report.connection.member.role.publishes { enqueue(.publish, report) }
        case .connectionUpdated(let report):
            enqueue(bodies.event("connection.updated", report), of: report, isEssential: false)
        case .roleChanged(let report, _):
            if report.connection.member.role.publishes {
                enqueue(.publish, report)
            } else {
                enqueue(.publishDone, report, reason: Departure.becameAudience.rawValue)
            }
        case .connectionInterrupted(let report): enqueue(.memberInterrupted, report)
        case .connectionResumed(let report): enqueue(.memberResumed, report)
        case .qualityChanged, .setupAdvanced: break
        case .connectionDestroyed(let report, let reason):
            if report.connection.member.role.publishes { enqueue(.publishDone, report, reason: reason.name) }
            enqueue(bodies.event("connection.destroyed", report, reason: reason.name, media: media), of: report)
        case .connectionFailed(let report, let reason):
            enqueue(bodies.event("connection.failed", report, reason: reason.name), of: report, isEssential: false)
        }
    }

    /// Queues an event of a kind that subscriptions have, too.
    private func enqueue(_ kind: EventSubscriptions.Kind, _ report: ConnectionReport, reason: String? = nil) {
        enqueue(bodies.event(kind.rawValue, report, reason: reason), of: report)
    }

    /// - Parameter body: Evaluated only with a configured event webhook.
    private func enqueue(_ body: @autoclosure () -> JSONValue, of report: ConnectionReport, isEssential: Bool = true) {
        let connection = report.connection
        enqueue(body(), of: connection.member.id, in: connection.channel, isEssential: isEssential)
    }

    /// - Parameter body: Evaluated only with a configured event webhook.
    func enqueue(
        _ body: @autoclosure () -> JSONValue,
        of participant: ParticipantID?,
        in channel: ChannelName,
        isEssential: Bool
    ) {
        guard uses.current.events else { return }
        events.enqueue(
            WebhookDeliverer.Event(body: body(), participant: participant, isEssential: isEssential),
            of: channel
        )
    }

    /// - Parameter isNew: whether the answer may configure the session.
    private func enqueue(_ body: @autoclosure () -> JSONValue, of session: ChannelSession, isNew: Bool) {
        guard uses.current.sessions else { return }
        sessions.enqueue(
            WebhookDeliverer.Event(body: body(), session: isNew ? session : nil),
            of: session.channel
        )
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
        let (events, sessions, drainTimeout) = (events, sessions, drainTimeout)
        let (endings, end) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup(of: Void.self) { group in
            let deliveries = Task {
                await withDiscardingTaskGroup { group in
                    group.addTask { await events.run() }
                    group.addTask {
                        await sessions.run { event, answer in
                            guard let session = event.session else { return }
                            await self.apply(answer, to: session, of: directory)
                        }
                    }
                }
            }
            group.addTask {
                await withTaskCancellationHandler {
                    await withGracefulShutdownHandler {
                        for await _ in endings {}
                    } onGracefulShutdown: {
                        end.finish()
                    }
                } onCancel: {
                    end.finish()
                }
            }
            await group.waitForAll()
            events.finish()
            sessions.finish()
            group.addTask {
                await withTaskCancellationHandler {
                    await deliveries.value
                } onCancel: {
                    deliveries.cancel()
                }
            }
            group.addTask { try? await Task.sleep(for: drainTimeout) }
            await group.next()
            group.cancelAll()
        }
        let left = events.waitingCount + sessions.waitingCount
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
