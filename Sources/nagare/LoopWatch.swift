import EventLoop
import Logging
import Media
import MediaTypes
import Room
import ServiceLifecycle
import Sora
import Synchronization

/// Waits once a second where packets, joins and messages of clients wait, for the probes and the service manager: a process
/// that serves nobody any more has to be restarted, whatever else still answers.
struct LoopWatch: Service {
    /// Each calls its argument after a part of what it waits for.
    private typealias Probe = @Sendable (@Sendable () -> Void) async -> Void

    private let probes: [Probe]
    private let turns: LoopTurns
    private let serviceManager: ServiceManager?
    private let logger: Logger

    /// - Parameter serviceManager: Learns each second that nothing has stalled; `nil` for none.
    init(
        media: MediaLoops,
        directory: ChannelDirectory,
        signaling: SignalingQueue,
        serviceManager: ServiceManager?,
        logger: Logger
    ) {
        var probes: [Probe] = []
        var names: [String] = []
        for loop in media.loops {
            let probe = LoopProbe(loop.eventLoop.executor)
            names.append("media-\(loop.location.loop.rawValue)")
            probes.append { _ in await probe.turn() }
        }
        if let acceptor = media.tlsAcceptor {
            let probe = LoopProbe(acceptor.eventLoop.executor)
            names.append("tls")
            probes.append { _ in await probe.turn() }
        }
        for (index, probe) in directory.controlLoopProbes.enumerated() {
            names.append("control-\(index)")
            probes.append(probe)
        }
        names.append("signaling")
        probes.append { _ in await signaling.probe() }
        self.probes = probes
        turns = LoopTurns(names: names)
        self.serviceManager = serviceManager
        self.logger = logger
    }

    /// The names of the loops that serve nobody: the process has to be restarted.
    var stalledLoops: [String] { turns.stalled(at: .now) }
    /// The names of the loops whose clients wait too long, those that serve nobody included: newcomers are better off elsewhere.
    var lateLoops: [String] { turns.late(at: .now) }

    /// Tells the service manager that the node accepts clients.
    func ready() { serviceManager?.notify(.ready) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var logged: [String] = []
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                for (index, probe) in probes.enumerated() where turns.ask(index, at: .now) {
                    // Nobody waits for a loop that hangs.
                    Task {
                        await probe { turns.moved(index, at: .now) }
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

    /// Counted, because the compiler removes the change to the loop before a call that does nothing.
    private var turns: UInt64 = 0

    func turn() { turns &+= 1 }
}

/// Which loops owe a turn, and since when. Each owes one at most.
final class LoopTurns: Sendable {
    /// A loop that gets no further for so long has stalled, and one that owes a turn for so long is late.
    static let patience = Duration.seconds(5)

    private struct Turn {
        let askedAt: ContinuousClock.Instant
        /// When a part of it was done last. A loop with much to do moves on, a hung one does not.
        var movedAt: ContinuousClock.Instant
    }

    private let names: [String]
    private let turns: Mutex<[Turn?]>

    init(names: [String]) {
        self.names = names
        turns = Mutex(Array(repeating: nil, count: names.count))
    }

    /// Returns whether to ask the loop for a turn: not while it owes one.
    func ask(_ index: Int, at now: ContinuousClock.Instant) -> Bool {
        turns.withLock { turns in
            guard turns[index] == nil else { return false }
            turns[index] = Turn(askedAt: now, movedAt: now)
            return true
        }
    }

    /// A part of the turn is done.
    func moved(_ index: Int, at now: ContinuousClock.Instant) { turns.withLock { $0[index]?.movedAt = now } }

    func turned(_ index: Int) { turns.withLock { $0[index] = nil } }

    /// The names of the loops that got no further for too long.
    func stalled(at now: ContinuousClock.Instant) -> [String] { names { now - $0.movedAt > Self.patience } }

    /// The names of the loops that owe a turn for too long.
    func late(at now: ContinuousClock.Instant) -> [String] { names { now - $0.askedAt > Self.patience } }

    private func names(where isBad: (Turn) -> Bool) -> [String] {
        let turns = turns.withLock(\.self)
        return zip(names, turns).filter { _, turn in turn.map(isBad) ?? false }.map(\.0)
    }
}
