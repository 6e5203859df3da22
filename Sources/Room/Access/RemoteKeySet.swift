package import Base
package import Logging

/// The server's answer with a ``JSONWebKeySet``.
package struct FetchedKeySet: Hashable, Sendable {
    package var body: [UInt8]
    /// `max-age` of `Cache-Control`, in seconds; `nil` without one.
    package var maxAge: Int?

    package init(body: [UInt8], maxAge: Int? = nil) {
        self.body = body
        self.maxAge = maxAge
    }

    /// - Parameter cacheControl: the value of the header field (RFC 9111 §5.2); `nil` without one.
    package init(body: [UInt8], cacheControl: String?) {
        var maxAge: Int?
        for directive in (cacheControl ?? "").prefix(1_024).split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            switch (parts.first?.lowercased(), parts.count) {
            case ("no-store", 1), ("no-cache", 1): maxAge = 0
            case ("max-age", 2): maxAge = maxAge ?? Int(parts[1])
            default: break
            }
        }
        self.init(body: body, maxAge: maxAge)
    }
}

/// Why the keys at a URL are not there, as a sentence.
package struct KeySetFailure: Error, Hashable, Sendable {
    package let message: String

    package init(message: String) { self.message = message }
}

/// The public keys of a ``JSONWebKeySet`` at a URL.
///
/// They are fetched again regularly, and at once for a token with an unknown key ID. While the server fails, the keys in hand
/// stay in use: a client is refused only if its token needs a newer key.
package actor RemoteKeySet {
    /// Fetches the set. It has to end within a few seconds, because clients wait for it.
    package typealias Fetch = @Sendable () async throws(KeySetFailure) -> FetchedKeySet

    /// For the metrics.
    package struct Counts: Hashable, Sendable {
        /// The number of fetches that succeeded and failed.
        package var fetched: UInt64 = 0
        package var failed: UInt64 = 0
        /// The number of keys in hand.
        package var keys = 0
        /// The time since they were fetched; `nil` before the first success.
        package var age: Interval?

        package init() {}
    }

    /// The keys, empty until they were fetched once, and how often they were fetched until now.
    struct KeysInHand {
        var keys: [JWTKey] = []
        var fetched: UInt64 = 0
    }

    /// Where the keys are, for the log.
    package nonisolated let url: String
    private let fetch: Fetch
    private let logger: Logger
    private let now: @Sendable () -> Instant
    private let sleep: @Sendable (Interval) async -> Void
    /// Replaced by this actor alone.
    private let inHand = Replaceable(KeysInHand())
    private var warnings: [String] = []
    private var failed: UInt64 = 0
    private var fetchedAt: Instant?
    private var schedule: KeySetSchedule
    /// The fetch in progress, which all who need it wait for.
    private var pending: Task<KeySetFailure?, Never>?
    /// A set that is stopped stays so: whoever replaces it may stop it before it was started.
    private enum State {
        case idle
        case running(Task<Void, Never>)
        case stopped
    }
    private var state = State.idle

    /// - Parameters:
    ///   - url: without secrets, for the log.
    ///   - now: the monotonic clock.
    ///   - sleep: returns after the interval, or when its task is cancelled.
    package init(
        url: String,
        logger: Logger,
        now: @escaping @Sendable () -> Instant,
        sleep: @escaping @Sendable (Interval) async -> Void = {
            try? await Task.sleep(for: .nanoseconds($0.nanoseconds))
        },
        fetch: @escaping Fetch
    ) {
        self.url = url
        self.logger = logger
        self.now = now
        self.sleep = sleep
        self.fetch = fetch
        schedule = KeySetSchedule(at: now())
    }

    /// The keys in hand; empty until they were fetched once.
    package nonisolated var keys: [JWTKey] { keysInHand.keys }
    nonisolated var keysInHand: KeysInHand { inHand.current }

    package var counts: Counts {
        var counts = Counts()
        (counts.fetched, counts.failed) = (keysInHand.fetched, failed)
        counts.keys = keys.count
        counts.age = fetchedAt.map { now() - $0 }
        return counts
    }

    /// Begins to fetch the keys regularly, until ``stop()``. A set that is stopped, also before its start, does not start.
    package func start() {
        guard case .idle = state else { return }
        state = .running(Task { await run() })
    }

    /// Ends the regular fetches for good. The keys in hand stay.
    package func stop() {
        if case .running(let loop) = state { loop.cancel() }
        state = .stopped
    }

    /// Whether the keys are fetched regularly.
    var isRunning: Bool {
        if case .running = state { true } else { false }
    }

    /// Fetches the keys now, or waits for the fetch in progress.
    /// - Returns: why the keys in hand are the ones from before; `nil` on success.
    @discardableResult
    package func refresh() async -> KeySetFailure? {
        if let pending { return await pending.value }
        schedule.began(at: now())
        let task = Task { await fetchOnce() }
        pending = task
        return await task.value
    }

    /// Fetches the keys for a token that needs one which was not in hand, unless they were fetched just now.
    /// - Parameter fetched: how often they were when the token was tried.
    /// - Returns: whether they were fetched since then.
    func refreshForUnknownKey(since fetched: UInt64) async -> Bool {
        if keysInHand.fetched != fetched { return true }
        guard pending != nil || schedule.permitsFetchForUnknownKey(at: now()) else { return false }
        return await refresh() == nil
    }

    /// Fetches the keys whenever it is time, until its task is cancelled.
    func run() async {
        while !Task.isCancelled {
            let wait = schedule.nextFetch - now()
            guard wait > .zero else {
                await refresh()
                continue
            }
            // A fetch for an unknown key that fails meanwhile makes the next one due earlier.
            await sleep(min(wait, KeySetSchedule.backoffMin))
        }
    }

    private func fetchOnce() async -> KeySetFailure? {
        defer { pending = nil }
        do throws(KeySetFailure) {
            let answer = try await fetch()
            let set: JSONWebKeySet
            do throws(JSONWebKeySet.Problem) {
                set = try JSONWebKeySet(parsing: answer.body)
            } catch {
                throw KeySetFailure(message: error.message)
            }
            take(set, maxAge: answer.maxAge)
            return nil
        } catch {
            noteFailure(error)
            return error
        }
    }

    private func take(_ set: JSONWebKeySet, maxAge: Int?) {
        let now = now()
        let hadFailed = schedule.failures > 0
        schedule.succeeded(maxAge: maxAge, at: now)
        let isNews = hadFailed || fetchedAt == nil || keys.map(\.id) != set.keys.map(\.id)
        let newWarnings = set.warnings == warnings ? [] : set.warnings
        inHand.current = KeysInHand(keys: set.keys, fetched: keysInHand.fetched + 1)
        warnings = set.warnings
        fetchedAt = now
        if isNews {
            logger.info("fetched the keys of tokens", metadata: ["url": "\(url)", "keys": "\(set.keys.count)"])
        }
        for warning in newWarnings {
            logger.warning("a key of tokens is not used", metadata: ["url": "\(url)", "reason": "\(warning)"])
        }
    }

    private func noteFailure(_ failure: KeySetFailure) {
        let now = now()
        schedule.failed(at: now)
        failed += 1
        logger.warning(
            "the key set could not be fetched, and the cached keys stay in use",
            metadata: [
                "url": "\(url)", "reason": "\(failure.message.printable)", "keys": "\(keys.count)",
                "failures": "\(schedule.failures)", "retry_seconds": "\(Int((schedule.nextFetch - now).seconds))",
            ]
        )
    }
}
