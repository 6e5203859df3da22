import Base
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
    var stalledLoops: [String] { turns.stalled(at: EventLoop.now()) }
    /// The names of the loops whose clients wait too long, those that serve nobody included: newcomers are better off elsewhere.
    var lateLoops: [String] { turns.late(at: EventLoop.now()) }

    /// Tells the service manager that the node accepts clients.
    func ready() { serviceManager?.notify(.ready) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var logged: [String] = []
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                for (index, probe) in probes.enumerated() where turns.ask(index, at: EventLoop.now()) {
                    // Nobody waits for a loop that hangs.
                    Task {
                        await probe { turns.moved(index, at: EventLoop.now()) }
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
    static let patience = Interval.seconds(5)
    /// When a loop was asked that owes no turn: later than any instant.
    private static let never = Int64.max

    /// Of one loop, in nanoseconds.
    private final class Turn: Sendable {
        let askedAt = Atomic(never)
        /// When a part of it was done last. A loop with much to do moves on, a hung one does not.
        let movedAt = Atomic(never)
    }

    private let turns: [(name: String, turn: Turn)]

    init(names: [String]) { turns = names.map { ($0, Turn()) } }

    /// Returns whether to ask the loop for a turn: not while it owes one.
    func ask(_ index: Int, at now: Instant) -> Bool {
        let turn = turns[index].turn
        guard turn.askedAt.load(ordering: .acquiring) == Self.never else { return false }
        turn.movedAt.store(now.nanoseconds, ordering: .relaxed)
        turn.askedAt.store(now.nanoseconds, ordering: .releasing)
        return true
    }

    /// A part of the turn is done.
    func moved(_ index: Int, at now: Instant) { turns[index].turn.movedAt.store(now.nanoseconds, ordering: .relaxed) }

    func turned(_ index: Int) { turns[index].turn.askedAt.store(Self.never, ordering: .releasing) }

    /// The names of the loops that got no further for too long.
    func stalled(at now: Instant) -> [String] {
        names { Self.isOver($0.askedAt, at: now) && Self.isOver($0.movedAt, at: now) }
    }

    /// The names of the loops that owe a turn for too long.
    func late(at now: Instant) -> [String] { names { Self.isOver($0.askedAt, at: now) } }

    private static func isOver(_ start: borrowing Atomic<Int64>, at now: Instant) -> Bool {
        now - Instant(nanoseconds: start.load(ordering: .acquiring)) > patience
    }

    private func names(where isBad: (Turn) -> Bool) -> [String] { turns.filter { isBad($0.turn) }.map(\.name) }
}
