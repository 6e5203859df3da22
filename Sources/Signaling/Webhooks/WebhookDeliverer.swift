import Access
import Base
import ChannelTypes
import JSON
import Logging
package import Metrics
import Room
import ServiceLifecycle
import Web

/// Delivers the events of one webhook in the background, so that nothing waits for its server.
actor WebhookDeliverer {
    /// One event for the server.
    struct Event: Sendable {
        let body: JSONValue
        /// The event's participant, for the header.
        let participant: ParticipantID?
        /// Whether it is not to be missed: see ``DeliveryQueue``.
        let isEssential: Bool
        /// The new session that the server's answer may configure.
        let session: ChannelSession?

        init(
            body: JSONValue,
            participant: ParticipantID? = nil,
            isEssential: Bool = true,
            session: ChannelSession? = nil
        ) {
            self.body = body
            self.participant = participant
            self.isEssential = isEssential
            self.session = session
        }
    }

    /// Handles a server's answer to an event.
    typealias AnswerHandler = @Sendable (_ event: Event, _ answer: [String: JSONValue]) async -> Void

    private let name: String
    private var url: String
    private let transport: any WebhookTransport
    private let limits: WebhookLimits
    /// Of each request.
    private let headers: [(String, String)]
    private let counters: WebhookCounters
    private let logger: Logger
    private let sleep: @Sendable (Duration) async -> Void
    private var queue: DeliveryQueue<Event>
    /// Signals a change of the queue; `nil` before ``run(_:)``.
    private var wake: AsyncStream<Void>.Continuation?

    /// - Parameters:
    ///   - name: The name in logs and metrics: `event`, `session`, `stats` or `subscription`.
    ///   - sleep: Returns after the time, or earlier when the task is cancelled.
    init(
        name: String,
        url: String,
        transport: any WebhookTransport,
        limits: WebhookLimits,
        headers: [(String, String)] = [],
        counters: WebhookCounters,
        logger: Logger,
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        self.name = name
        self.url = url
        self.transport = transport
        self.limits = limits
        self.headers = headers
        self.counters = counters
        self.logger = logger
        self.sleep = sleep
        queue = DeliveryQueue(limits: limits)
    }

    /// The number of events not delivered yet.
    var waitingCount: Int { queue.count }

    /// Sends later attempts to another address, those for events that are queued already included.
    func setURL(_ url: String) { self.url = url }

    /// Queues an event behind earlier ones of the same channel.
    func enqueue(_ event: Event, of channel: ChannelName) async {
        defer { wake?.yield() }
        let loser: ChannelName
        let reason: WebhookCounters.DropReason
        switch queue.add(event, of: channel, isEssential: event.isEssential) {
        case .taken: return
        case .displaced(let channel): (loser, reason) = (channel, .channelShare)
        case .refused: (loser, reason) = (channel, .full)
        }
        await counters.dropped(name, reason)
        logger.debug(
            "webhook event dropped: the queue is full",
            metadata: ["webhook": "\(name)", "channel": "\(loser)"]
        )
    }

    /// Delivers events until the task is cancelled, or the queue is empty after ``finish()``.
    func run(_ onAnswer: @escaping AnswerHandler = { _, _ in }) async {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.wake = wake
        wake.yield()
        await withDiscardingTaskGroup { group in
            for await _ in wakes {
                while let (channel, event) = queue.next() {
                    group.addTask { await self.attempt(event, of: channel, onAnswer) }
                }
                if queue.isDraining && queue.count == 0 { return }
            }
        }
    }

    /// Makes ``run()`` return after one last attempt for each event.
    func finish() {
        queue.startDraining()
        wake?.yield()
    }

    private func attempt(_ event: Event, of channel: ChannelName, _ onAnswer: AnswerHandler) async {
        let isDelivered: Bool
        var reason = ""
        do throws(WebhookFailure) {
            let headers = headers + (event.participant.map { [("sora-connection-id", $0.value)] } ?? [])
            let answer = try await counters.timed(name) { [transport, url] () async throws(WebhookFailure) in
                try await transport.exchange(event.body, with: url, headers: headers)
            }
            await onAnswer(event, answer)
            isDelivered = true
        } catch {
            isDelivered = false
            logger.debug(
                "webhook failed",
                metadata: ["webhook": "\(name)", "channel": "\(channel)", "reason": "\(error.message.printable)"]
            )
            reason = error.message
        }
        switch queue.finished(channel, isDelivered: isDelivered) {
        case .delivered: await counters.delivered(name)
        case .gaveUp:
            await counters.failed(name)
            logger.warning(
                "webhook event dropped after its last attempt",
                metadata: [
                    "webhook": "\(name)", "channel": "\(channel)", "attempts": "\(limits.attemptsMax)",
                    "reason": "\(reason.printable)",
                ]
            )
        case .retry(let wait):
            await counters.retried(name)
            await sleep(wait)
            queue.waited(for: channel)
        }
        wake?.yield()
    }
}

/// Runs deliveries until a graceful shutdown or the cancellation of the task, and then for a while.
/// - Parameters:
///   - drainTimeout: how long the deliveries may take to finish.
///   - finish: has them finish.
func deliver(
    isolation: isolated (any Actor)? = #isolation,
    drainTimeout: Duration,
    _ deliveries: @escaping @Sendable () async -> Void,
    finish: () async -> Void
) async {
    let deliveries = Task { await deliveries() }
    // It throws when the task is cancelled, which ends the deliveries below.
    try? await gracefulShutdown()
    await finish()
    await withTaskGroup(of: Void.self) { group in
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
}

/// Counts webhook requests, for metrics. There is one per node.
package actor WebhookCounters {
    /// The counts of one webhook.
    package struct Counts: Hashable, Sendable {
        /// Delivered events; for the authentication webhook, decisions.
        package var successful: UInt64 = 0
        /// Events that failed after all attempts; for the authentication webhook, failed requests.
        package var failed: UInt64 = 0
        /// Failed attempts that were retried.
        package var retried: UInt64 = 0
        /// Events and requests dropped because of a limit.
        package var dropped: UInt64 { drops.values.reduce(0, +) }
        package var drops: [DropReason: UInt64] = [:]
        /// The time of each request until its answer or failure.
        package var durations = DurationHistogram.requestTimes

        package init() {}
    }
    /// Why an event or request was dropped.
    package enum DropReason: String, Hashable, Sendable, CaseIterable {
        /// The queue was full, and the channel had the most events.
        case channelShare = "channel_share"
        /// One network had too many pending authentication requests.
        case networkShare = "network_share"
        /// The queue was full, and no channel had more than one event.
        case full
    }
    /// By the webhook's name.
    private var counts: [String: Counts] = [:]
    /// The number of clients that the authentication webhook admitted.
    package private(set) var allowed: UInt64 = 0
    /// The number of clients that it denied.
    package private(set) var denied: UInt64 = 0
    private let now: @Sendable () -> Instant

    package init() { self.init(now: { DeadlineTimer.now }) }

    init(now: @escaping @Sendable () -> Instant) { self.now = now }

    /// By the webhook's name: `auth`, `event`, `session`, `subscription` for all subscriptions together.
    package subscript(_ name: String) -> Counts { counts[name] ?? Counts() }

    /// Sends one request and counts its duration, unless the task is cancelled meanwhile.
    nonisolated func timed<Answer: Sendable>(
        _ name: String,
        _ request: @Sendable () async throws(WebhookFailure) -> Answer
    ) async throws(WebhookFailure) -> Answer {
        let start = now()
        let answer: Result<Answer, WebhookFailure>
        do throws(WebhookFailure) { answer = .success(try await request()) } catch { answer = .failure(error) }
        if !Task.isCancelled { await observe(now() - start, name) }
        return try answer.get()
    }

    private func observe(_ duration: Interval, _ name: String) {
        count(name) { $0.durations.observe(nanoseconds: duration.nanoseconds) }
    }

    func delivered(_ name: String) { count(name) { $0.successful += 1 } }
    func failed(_ name: String) { count(name) { $0.failed += 1 } }
    func retried(_ name: String) { count(name) { $0.retried += 1 } }
    func dropped(_ name: String, _ reason: DropReason, _ events: UInt64 = 1) {
        count(name) { $0.drops[reason, default: 0] += events }
    }
    func decided(isAllowed: Bool) { if isAllowed { allowed += 1 } else { denied += 1 } }

    private func count(_ name: String, _ change: (inout Counts) -> Void) {
        change(&counts[name, default: Counts()])
    }
}
