import Access
import JSON
public import Logging
public import Room
public import ServiceLifecycle
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Tells an operator's servers of sessions and connections.
///
/// Reports are taken at once and told in the background, those of one channel in their order. What a server answers to the
/// creation of a session is put in force when it comes.
///
/// Services end in the reverse order of their list: put it before ``RoomsService``, whose end has something to tell.
public final class Webhooks: Service {
    private let events: WebhookDeliverer?
    private let sessions: WebhookDeliverer?
    private let bodies: WebhookBodies
    private let logger: Logger
    private let drainTimeout: Duration
    /// The rooms, which are made after this.
    private let rooms = Mutex<Rooms?>(nil)

    /// - Parameters:
    ///   - client: it has to last as long as the service.
    ///   - logger: is told of what could not be told.
    public convenience init(
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
        let deliverer = { (name: String, url: String) in
            WebhookDeliverer(
                name: name,
                url: url,
                transport: transport,
                limits: configuration.limits,
                counters: counters,
                logger: logger,
                sleep: sleep
            )
        }
        events = configuration.eventURL.map { deliverer("event", $0) }
        sessions = configuration.sessionURL.map { deliverer("session", $0) }
        bodies = WebhookBodies(node: node, makeID: makeID)
        drainTimeout = configuration.limits.drainTimeout
        self.logger = logger
    }

    /// Events that are not told yet, by the webhook's name.
    public var waitingCounts: [String: Int] {
        var counts: [String: Int] = [:]
        if let events { counts["event"] = events.waitingCount }
        if let sessions { counts["session"] = sessions.waitingCount }
        return counts
    }

    /// The rooms that the session webhook's answers are applied to.
    public func connect(to rooms: Rooms) { self.rooms.withLock { $0 = rooms } }

    /// Takes one report to be told. It returns at once.
    public func take(_ report: RoomReport) {
        switch report {
        case .sessionCreated(let session, let time):
            tell(bodies.session("session.created", session, unixNanoseconds: time), of: session) { [weak self] answer in
                await self?.apply(answer, to: session)
            }
        case .sessionDestroyed(let session, let time):
            tell(bodies.session("session.destroyed", session, unixNanoseconds: time), of: session) { _ in }
        case .connectionCreated(let report): tell(bodies.event("connection.created", report), of: report)
        case .connectionUpdated(let report):
            tell(bodies.event("connection.updated", report), of: report, isEssential: false)
        case .connectionDestroyed(let report, let reason):
            tell(bodies.event("connection.destroyed", report, reason: reason), of: report)
        case .connectionFailed(let report, let reason):
            tell(bodies.event("connection.failed", report, reason: reason), of: report, isEssential: false)
        }
    }

    /// - Parameter body: is made only if somebody is to be told.
    private func tell(_ body: @autoclosure () -> JSONValue, of report: ConnectionReport, isEssential: Bool = true) {
        guard let events else { return }
        let connection = report.connection
        events.tell(
            WebhookDeliverer.Event(body: body(), participant: connection.member.id, isEssential: isEssential),
            of: connection.channel
        )
    }

    private func tell(
        _ body: @autoclosure () -> JSONValue,
        of session: ChannelSession,
        onAnswer: @escaping @Sendable ([String: JSONValue]) async -> Void
    ) {
        guard let sessions else { return }
        sessions.tell(WebhookDeliverer.Event(body: body(), onAnswer: onAnswer), of: session.channel)
    }

    /// Puts a session webhook's grants in force, if the session is still there.
    private func apply(_ answer: [String: JSONValue], to session: ChannelSession) async {
        guard let rooms = rooms.withLock({ $0 }) else { return }
        do {
            let fields = JSONFields(answer)
            let number = try fields.integer("spotlight_number", Spotlight.numbers)
            let filters = try ForwardingFilter.list(fields)
            if let number {
                try await rooms.changeSpotlightNumber(of: session.channel, session: session.id, to: number)
            }
            for filter in filters ?? [] {
                try await rooms.createFilter(filter, in: .channel(session.channel), session: session.id)
            }
        } catch {
            logger.warning(
                "the session webhook's answer was not applied",
                metadata: ["channel": "\(session.channel)", "reason": "\("\(error)".printable)"]
            )
        }
    }

    /// Tells until a graceful shutdown, and then what is left for no longer than the drain timeout.
    public func run() async {
        let (events, sessions, drainTimeout) = (events, sessions, drainTimeout)
        let (endings, end) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup(of: Void.self) { group in
            let deliveries = Task {
                await withDiscardingTaskGroup { group in
                    for deliverer in [events, sessions].compactMap(\.self) {
                        group.addTask { await deliverer.run() }
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
            events?.finish()
            sessions?.finish()
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
        let left = (events?.waitingCount ?? 0) + (sessions?.waitingCount ?? 0)
        if left > 0 { logger.warning("webhook events were not told before the end", metadata: ["events": "\(left)"]) }
    }
}
