import EventLoop
import Logging
import Media
import MediaTypes
import Room
import ServiceLifecycle
import Signaling
import Synchronization

/// Waits once a second where packets, joins and messages of clients wait, for the probes and the service manager: a process
/// that serves nobody any more has to be restarted, whatever else still answers.
struct LoopWatch: Service {
    private let probes: [@Sendable () async -> Void]
    private let turns: LoopTurns
    private let serviceManager: ServiceManager?
    private let logger: Logger

    /// - Parameter serviceManager: Learns each second that nothing has stalled; `nil` for none.
    init(
        media: MediaLoops,
        rooms: Rooms,
        signaling: SignalingQueue,
        serviceManager: ServiceManager?,
        logger: Logger
    ) {
        var probes: [@Sendable () async -> Void] = []
        var names: [String] = []
        for loop in media.loops {
            let probe = LoopProbe(loop.eventLoop.executor)
            names.append("media-\(loop.location.loop.rawValue)")
            probes.append { await probe.turn() }
        }
        if let acceptor = media.tlsAcceptor {
            let probe = LoopProbe(acceptor.eventLoop.executor)
            names.append("tls")
            probes.append { await probe.turn() }
        }
        for (index, probe) in rooms.controlLoopProbes.enumerated() {
            names.append("control-\(index)")
            probes.append(probe)
        }
        names.append("signaling")
        probes.append { await signaling.probe() }
        self.probes = probes
        turns = LoopTurns(names: names)
        self.serviceManager = serviceManager
        self.logger = logger
    }

    /// The names of the loops that serve nobody.
    var stalledLoops: [String] { turns.stalled(at: .now) }

    /// Tells the service manager that the node accepts clients.
    func ready() { serviceManager?.notify(.ready) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var logged: [String] = []
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                for (index, probe) in probes.enumerated() where turns.ask(index, at: .now) {
                    // Nobody waits for a loop that hangs.
                    Task {
                        await probe()
                        turns.turned(index)
                    }
                }
                let stalled = stalledLoops
                if stalled.isEmpty { serviceManager?.notify(.watchdog) }
                if stalled != logged { log(stalled) }
                logged = stalled
            }
        }
    }
}

extension LoopWatch {
    private func log(_ stalled: [String]) {
        if stalled.isEmpty {
            logger.notice("no loop is stalled any more")
        } else {
            logger.error(
                "loops have stalled: the service manager restarts the node if they stay so",
                metadata: ["loops": "\(stalled.joined(separator: " "))"]
            )
        }
    }
}

/// Runs on one media loop.
private actor LoopProbe {
    private nonisolated let executor: any SerialExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func turn() {}
}

/// Which loops owe a turn, and since when. Each owes one at most.
final class LoopTurns: Sendable {
    /// A loop that owes a turn for so long has stalled.
    static let stalledAfter = Duration.seconds(5)

    private let names: [String]
    private let askedAt: Mutex<[ContinuousClock.Instant?]>

    init(names: [String]) {
        self.names = names
        askedAt = Mutex(Array(repeating: nil, count: names.count))
    }

    /// Returns whether to ask the loop for a turn: not while it owes one.
    func ask(_ index: Int, at now: ContinuousClock.Instant) -> Bool {
        askedAt.withLock { askedAt in
            guard askedAt[index] == nil else { return false }
            askedAt[index] = now
            return true
        }
    }

    func turned(_ index: Int) { askedAt.withLock { $0[index] = nil } }

    /// The names of the loops that owe a turn for too long.
    func stalled(at now: ContinuousClock.Instant) -> [String] {
        let askedAt = askedAt.withLock(\.self)
        return zip(names, askedAt).filter { _, askedAt in
            askedAt.map { now - $0 > Self.stalledAfter } ?? false
        }.map(\.0)
    }
}
