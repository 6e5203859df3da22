import Base
import Glibc
import Logging
import Operators
import ServiceLifecycle
import UnixSignals

/// Handles SIGTERM and SIGINT: the first starts a graceful shutdown, the second ends the process. With a time to drain the
/// first starts the drain, and the second ends that. SIGHUP reloads files; a
/// development node, which belongs to a terminal, ends with it instead.
struct Signals: Sendable {
    private let signals: UnixSignalsSequence
    private let graceSeconds: Int
    private let drainSeconds: Int
    private let logger: Logger

    /// Installs the handlers, so that a signal during the start is not lost.
    init(_ configuration: NodeConfiguration, logger: Logger) async {
        // Writing to a closed pipe or socket returns an error instead of ending the process.
        _ = signal(SIGPIPE, SIG_IGN)
        signals =
            configuration.isDevelopment
            ? await UnixSignalsSequence(trapping: .sigterm, .sigint)
            : await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
        graceSeconds = configuration.graceSeconds
        drainSeconds = configuration.drainSeconds
        self.logger = logger
    }

    /// Drains and begins the shutdown at the first signal to end. Ends the process at the second after the drain, or after
    /// the grace period. Reloads at each SIGHUP before that. Returns when cancelled.
    func watch(_ target: SignalTarget) async {
        var signalCount = 0
        await withTaskGroup { group in
            for await signal in signals {
                if signal == .sighup {
                    if signalCount == 0 { group.addTask { await target.reload() } }
                    continue
                }
                signalCount += 1
                if signalCount == 1, drainSeconds > 0 {
                    group.addTask {
                        await target.drain(for: .seconds(drainSeconds))
                        guard !Task.isCancelled, await begin(target, "drained") else { return }
                        await awaitGrace(target)
                    }
                    continue
                }
                guard await begin(target, "\(signal)") else {
                    logger.warning("second signal: stopping immediately", metadata: ["signal": "\(signal)"])
                    await target.abandon()
                    _exit(128 + signal.number)
                }
                group.addTask { await awaitGrace(target) }
            }
            group.cancelAll()
        }
    }

    /// Returns whether the shutdown begins now, and did not before.
    private func begin(_ target: SignalTarget, _ reason: String) async -> Bool {
        await target.begin {
            logger.info("shutting down", metadata: ["signal": "\(reason)", "grace_seconds": "\(graceSeconds)"])
        }
    }

    private func awaitGrace(_ target: SignalTarget) async {
        guard (try? await Task.sleep(for: .seconds(graceSeconds))) != nil else { return }
        logger.warning("the grace period is over: stopping with open connections")
        await target.abandon()
        _exit(0)
    }
}

extension UnixSignal {
    /// The signal's number, which a shell adds to 128 for the exit status.
    fileprivate var number: Int32 { self == .sigint ? SIGINT : SIGTERM }
}

/// What signals do to the node. After a signal that arrives early, the shutdown or reload begins as soon as it is set.
actor SignalTarget {
    struct Actions: Sendable {
        var drain: NodeDrain
        var shutDown: @Sendable () async -> Void
        /// Ends the calls and notes how they were, without a wait for their clients.
        var abandon: @Sendable () async -> Void
        var reload: @Sendable () async -> Void
    }

    /// The time for ``Actions/abandon``, after which the process ends anyway.
    private static let abandonTime = Duration.seconds(2)

    private var actions: Actions?
    private var hasBegun = false
    private var isReloadWaiting = false

    func set(_ actions: Actions) async {
        self.actions = actions
        if hasBegun {
            await actions.shutDown()
        } else if isReloadWaiting {
            await actions.reload()
        }
    }

    /// Refuses new clients. Returns when all clients have left, at the deadline, and when the shutdown begins.
    func drain(for time: Interval) async {
        guard let drain = actions?.drain, !hasBegun else { return }
        do throws(DrainFailure) {
            try await drain.start(DrainRequest(by: .shutdown, deadline: time, admission: .zero))
        } catch { return }
        while !hasBegun {
            let report = await drain.report
            guard report.clients > 0, report.remaining > .zero else { return }
            guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
        }
    }

    /// Ends the calls before the process ends without a graceful shutdown. Returns soon, also when that hangs.
    func abandon() async {
        guard let actions else { return }
        let (ends, end) = AsyncStream.makeStream(of: Never.self)
        Task {
            await actions.abandon()
            end.finish()
        }
        Task {
            try? await Task.sleep(for: Self.abandonTime)
            end.finish()
        }
        for await _ in ends {}
    }

    /// Reads the settings again. A node that does not serve yet may have read them before they changed, and reads them again as soon
    /// as it does.
    func reload() async {
        guard let actions else {
            isReloadWaiting = true
            return
        }
        await actions.reload()
    }

    /// Starts the shutdown, unless it has begun.
    /// - Parameter announce: Called before it starts.
    /// - Returns: whether it began now.
    func begin(_ announce: @Sendable () -> Void) async -> Bool {
        guard !hasBegun else { return false }
        hasBegun = true
        announce()
        await actions?.shutDown()
        return true
    }
}
