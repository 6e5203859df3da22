import Glibc
import Logging
import ServiceLifecycle
import UnixSignals

/// Turns SIGTERM and SIGINT into the end of the node: the first asks for an orderly one, the second ends it at once.
struct Shutdown: Sendable {
    let signals: UnixSignalsSequence
    let graceSeconds: Int
    let logger: Logger

    /// Catches the signals from now on, so that one that arrives during the start is not lost.
    init(graceSeconds: Int, logger: Logger) async {
        // A closed pipe on standard output or a socket is an error of the call, not the end of the process.
        _ = signal(SIGPIPE, SIG_IGN)
        signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        self.graceSeconds = graceSeconds
        self.logger = logger
    }

    /// Calls `begin` at the first signal. Ends the process when a second one comes or the grace is over. Returns when
    /// cancelled.
    func watch(begin: @Sendable () async -> Void) async {
        var hasBegun = false
        await withTaskGroup { group in
            for await signal in signals {
                if hasBegun {
                    logger.warning("second signal: ending at once", metadata: ["signal": "\(signal)"])
                    _exit(128 + signal.number)
                }
                hasBegun = true
                logger.info("shutting down", metadata: ["signal": "\(signal)", "grace_seconds": "\(graceSeconds)"])
                await begin()
                group.addTask {
                    guard (try? await Task.sleep(for: .seconds(graceSeconds))) != nil else { return }
                    logger.warning("the grace is over: ending with connections open")
                    _exit(0)
                }
            }
            group.cancelAll()
        }
    }
}

extension UnixSignal {
    /// The number that the shell adds to 128.
    fileprivate var number: Int32 { self == .sigint ? SIGINT : SIGTERM }
}

/// What an orderly shutdown begins with. A signal may come before the services are there: then it begins with them.
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
