import Access
import JSON
import Logging
import Room
import Synchronization

/// Tells one webhook's server of events in the background, so that nothing ever waits for it.
final class WebhookDeliverer: Sendable {
    /// One event for the server.
    struct Event: Sendable {
        let body: JSONValue
        /// The participant that it is about, for the header.
        let participant: ParticipantID?
        /// Whether it tells of a coming or going.
        let isEssential: Bool
        /// What is done with the server's answer.
        let onAnswer: @Sendable ([String: JSONValue]) async -> Void

        init(
            body: JSONValue,
            participant: ParticipantID? = nil,
            isEssential: Bool = true,
            onAnswer: @escaping @Sendable ([String: JSONValue]) async -> Void = { _ in }
        ) {
            self.body = body
            self.participant = participant
            self.isEssential = isEssential
            self.onAnswer = onAnswer
        }
    }

    private let name: String
    private let url: String
    private let transport: any WebhookTransport
    private let limits: WebhookLimits
    private let counters: WebhookCounters
    private let logger: Logger
    private let sleep: @Sendable (Duration) async -> Void
    private let queue: Mutex<DeliveryQueue<Event>>
    private let isFinishing = Mutex(false)
    /// Yields when there may be something to do.
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - name: for the log: `event`, `session`.
    ///   - sleep: returns after the time, or early when the task is cancelled.
    init(
        name: String,
        url: String,
        transport: any WebhookTransport,
        limits: WebhookLimits,
        counters: WebhookCounters,
        logger: Logger,
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        self.name = name
        self.url = url
        self.transport = transport
        self.limits = limits
        self.counters = counters
        self.logger = logger
        self.sleep = sleep
        queue = Mutex(DeliveryQueue(limits: limits))
        (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Events that are not told yet.
    var waitingCount: Int { queue.withLock { $0.count } }

    /// Takes an event to be told after those of the same channel that came before. It returns at once.
    func tell(_ event: Event, of channel: ChannelName) {
        let loser: ChannelName
        let reason: WebhookCounters.DropReason
        switch queue.withLock({ $0.add(event, of: channel, isEssential: event.isEssential) }) {
        case .taken:
            wake.yield()
            return
        case .displaced(let channel): (loser, reason) = (channel, .channelShare)
        case .refused: (loser, reason) = (channel, .full)
        }
        counters.dropped(name, reason)
        logger.debug(
            "webhook event dropped: too many wait",
            metadata: ["webhook": "\(name)", "channel": "\(loser)"]
        )
        wake.yield()
    }

    /// Tells until the task is cancelled, or until ``finish()`` was called and nothing is left to tell.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await _ in wakes {
                while let (channel, event) = queue.withLock({ $0.next() }) {
                    group.addTask { await self.attempt(event, of: channel) }
                }
                if isFinishing.withLock({ $0 }), waitingCount == 0 { return }
            }
        }
    }

    /// Lets ``run()`` end once everything was tried, nothing of it again.
    func finish() {
        queue.withLock { $0.startDraining() }
        isFinishing.withLock { $0 = true }
        wake.yield()
    }

    private func attempt(_ event: Event, of channel: ChannelName) async {
        let isDelivered: Bool
        var reason = ""
        do throws(WebhookFailure) {
            let headers = event.participant.map { [("sora-connection-id", $0.value)] } ?? []
            let answer = try await transport.exchange(event.body, with: url, headers: headers)
            await event.onAnswer(answer)
            isDelivered = true
        } catch {
            isDelivered = false
            logger.debug(
                "webhook failed",
                metadata: ["webhook": "\(name)", "channel": "\(channel)", "reason": "\(error.sentence.printable)"]
            )
            reason = error.sentence
        }
        switch queue.withLock({ $0.finished(channel, isDelivered: isDelivered) }) {
        case .delivered: counters.delivered(name)
        case .gaveUp:
            counters.failed(name)
            logger.warning(
                "webhook event given up",
                metadata: [
                    "webhook": "\(name)", "channel": "\(channel)", "attempts": "\(limits.attemptsMax)",
                    "reason": "\(reason.printable)",
                ]
            )
        case .retry(let wait):
            counters.retried(name)
            await sleep(wait)
            queue.withLock { $0.waited(for: channel) }
        }
        wake.yield()
    }
}

/// How often webhooks were asked and told, for metrics. One for the node.
public final class WebhookCounters: Sendable {
    /// Of one webhook.
    public struct Counts: Hashable, Sendable {
        /// Answered with success. For the authentication webhook: with a decision.
        public var successful: UInt64 = 0
        /// Not answered with success, after all attempts.
        public var failed: UInt64 = 0
        /// Attempts that failed and were followed by another.
        public var retried: UInt64 = 0
        /// Not asked or told, because too much waited.
        public var dropped: UInt64 { drops.values.reduce(0, +) }
        public var drops: [DropReason: UInt64] = [:]

        public init() {}
    }
    /// Why something was not asked or told.
    public enum DropReason: String, Hashable, Sendable, CaseIterable {
        /// Too much waited, and the channel had the most of it.
        case channelShare = "channel_share"
        /// Too many questions about newcomers of one network were open.
        case networkShare = "network_share"
        /// Too much waited, and nobody had more than a share.
        case full
    }
    private let counts = Mutex<[String: Counts]>([:])
    private let decisions = Mutex((allowed: UInt64(0), denied: UInt64(0)))

    public init() {}

    /// By the webhook's name: `auth`, `event`, `session`.
    public subscript(_ name: String) -> Counts { counts.withLock { $0[name] ?? Counts() } }
    /// Newcomers that the authentication webhook let in.
    public var allowed: UInt64 { decisions.withLock { $0.allowed } }
    /// Newcomers that it refused.
    public var denied: UInt64 { decisions.withLock { $0.denied } }

    func delivered(_ name: String) { counts.withLock { $0[name, default: Counts()].successful += 1 } }
    func failed(_ name: String) { counts.withLock { $0[name, default: Counts()].failed += 1 } }
    func retried(_ name: String) { counts.withLock { $0[name, default: Counts()].retried += 1 } }
    func dropped(_ name: String, _ reason: DropReason) {
        counts.withLock { $0[name, default: Counts()].drops[reason, default: 0] += 1 }
    }
    func decided(isAllowed: Bool) {
        decisions.withLock { decisions in
            if isAllowed { decisions.allowed += 1 } else { decisions.denied += 1 }
        }
    }
}
