import Glibc
import Logging
import ServiceLifecycle
import UnixSignals

/// Handles SIGTERM and SIGINT: the first starts a graceful shutdown, the second ends the process. SIGHUP reloads files; a
/// development node, which belongs to a terminal, ends with it instead.
struct Signals: Sendable {
    private let signals: UnixSignalsSequence
    private let graceSeconds: Int
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
        self.logger = logger
    }

    /// Calls `begin` at the first signal to end. Ends the process at the second or after the grace period. Calls `reload` at
    /// each SIGHUP before that. Returns when cancelled.
    func watch(begin: @Sendable () async -> Void, reload: @escaping @Sendable () async -> Void) async {
        var hasBegun = false
        await withTaskGroup { group in
            for await signal in signals {
                if signal == .sighup {
                    if !hasBegun { group.addTask { await reload() } }
                    continue
                }
                if hasBegun {
                    logger.warning("second signal: stopping immediately", metadata: ["signal": "\(signal)"])
                    _exit(128 + signal.number)
                }
                hasBegun = true
                logger.info("shutting down", metadata: ["signal": "\(signal)", "grace_seconds": "\(graceSeconds)"])
                await begin()
                group.addTask {
                    guard (try? await Task.sleep(for: .seconds(graceSeconds))) != nil else { return }
                    logger.warning("the grace period is over: stopping with open connections")
                    _exit(0)
                }
            }
            group.cancelAll()
        }
    }
}

extension UnixSignal {
    /// The signal's number, which a shell adds to 128 for the exit status.
    fileprivate var number: Int32 { self == .sigint ? SIGINT : SIGTERM }
}

/// The action that starts a graceful shutdown. After a signal that arrives early, it runs as soon as it is set.
actor ShutdownTarget {
    private var action: (@Sendable () async -> Void)?
    private var hasBegun = false

    func set(_ action: @escaping @Sendable () async -> Void) async {
        self.action = action
        if hasBegun { await action() }
    }

    func begin() async {
        hasBegun = true
        await action?()
    }
}
