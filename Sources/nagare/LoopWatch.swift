import EventLoop
import Media
import MediaTypes
import ServiceLifecycle
import Synchronization

/// Asks each loop once a second to run a job, for the liveness probe: a process whose loop does not turn any more has to be
/// restarted, whatever else still answers.
struct LoopWatch: Service {
    private let probes: [LoopProbe]
    private let turns: LoopTurns

    init(media: [MediaLoop], control: ControlLoops) {
        probes =
            media.map { LoopProbe(name: "media-\($0.location.loop.rawValue)", executor: $0.eventLoop.executor) }
            + control.executors.enumerated().map { LoopProbe(name: "control-\($0.offset)", executor: $0.element) }
        turns = LoopTurns(names: probes.map(\.name))
    }

    /// The names of the loops that do not turn.
    var stalledLoops: [String] { turns.stalled(at: .now) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                for (index, probe) in probes.enumerated() where turns.ask(index, at: .now) {
                    // Nobody waits for a loop that hangs.
                    Task {
                        await probe.turn()
                        turns.turned(index)
                    }
                }
            }
        }
    }
}

/// Runs on one loop.
private actor LoopProbe {
    nonisolated let name: String
    private nonisolated let executor: any SerialExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    init(name: String, executor: any SerialExecutor) {
        self.name = name
        self.executor = executor
    }

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
