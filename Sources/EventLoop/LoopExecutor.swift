import Glibc
import Synchronization

/// Runs actors' jobs on one event loop's thread.
///
/// An actor whose `unownedExecutor` is this one is pinned to the loop: calls between such actors do not change thread,
/// and callbacks of the loop may enter them with `assumeIsolated`. Jobs run in the order in which they were enqueued. A
/// burst of jobs wakes the loop once, and a turn of the loop runs `jobsPerTurnMax` jobs at most, so that a flood of
/// control work cannot starve the sockets.
///
/// The inbox has no other limit: a job is a task that somebody awaits, so it cannot be dropped, and whoever makes tasks
/// on behalf of a peer limits them. Jobs that come before the loop is started wait for it. Jobs that come after it was
/// stopped run one after the other on the global pool, so that nobody awaits an actor of a stopped loop in vain.
@safe
public final class LoopExecutor: SerialExecutor, @unchecked Sendable {
    /// Jobs that one turn of the loop runs. At up to 10 µs each, what a signaling step takes, 256 hold up a packet for
    /// no longer than a packet waits for its turn under load.
    public static let jobsPerTurnMax = 256

    private enum Phase {
        /// Before the loop starts: jobs wait.
        case waiting
        /// Jobs run on the loop's thread.
        case running
        /// The loop's thread has ended; jobs run on the global pool, where `draining` tells whether a task does.
        case detached(draining: Bool)
    }

    private struct Inbox {
        var jobs: [UnownedJob] = []
        var phase = Phase.waiting
        /// Wakes the loop. Called with the lock held, so that it cannot outlive the handle that it signals.
        var wake: (@Sendable () -> Void)?
        var wakeUps: UInt64 = 0

        mutating func wakeLoop() {
            guard let wake else { return }
            wakeUps &+= 1
            wake()
        }
    }

    private let inbox = Guarded(Inbox())
    private let ownerThread = Atomic<UInt>(0)

    // The rest is used by whoever runs jobs: the loop's thread, later the one draining task.
    private var backlog: [UnownedJob] = []
    private var backlogNext = 0
    private var turnBudget = LoopExecutor.jobsPerTurnMax
    private(set) var jobsRun: UInt64 = 0

    init() {}

    /// Takes a job from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isOnLoop = isOnOwnerThread
        let mustDrain = inbox.withLock { inbox in
            let wasEmpty = inbox.jobs.isEmpty
            inbox.jobs.append(job)
            switch inbox.phase {
            case .waiting:
                return false
            case .running:
                // The loop's own thread looks at the inbox before it sleeps.
                if wasEmpty, !isOnLoop { inbox.wakeLoop() }
                return false
            case .detached(let draining):
                inbox.phase = .detached(draining: true)
                return !draining
            }
        }
        if mustDrain { startDraining() }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    /// Whether the caller is on the loop's thread, and so may enter the actors that are pinned to it.
    public func isIsolatingCurrentContext() -> Bool? { isOnOwnerThread }

    /// Traps unless the caller is on the loop's thread.
    public func checkIsolated() {
        precondition(isOnOwnerThread, "not on the event loop's thread")
    }

    @inline(__always)
    private var isOnOwnerThread: Bool { ownerThread.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: For the loop

    /// Makes the calling thread the one that runs jobs. From now on `wake` is called when jobs arrive.
    func attach(wake: @escaping @Sendable () -> Void) {
        ownerThread.store(UInt(pthread_self()), ordering: .releasing)
        inbox.withLock { inbox in
            inbox.phase = .running
            inbox.wake = wake
        }
    }

    /// Calls `wake` if the loop runs.
    func wakeLoop() {
        inbox.withLock { inbox in inbox.wakeLoop() }
    }

    /// How often the loop was woken by another thread.
    var wakeUps: UInt64 { inbox.withLock { $0.wakeUps } }

    /// Gives the turn that begins its full number of jobs.
    func resetTurnBudget() { turnBudget = Self.jobsPerTurnMax }

    /// Runs what is queued, as far as the turn's budget goes.
    func runJobs() {
        while turnBudget > 0 {
            guard let job = nextJob() else { return }
            turnBudget -= 1
            run(job)
        }
    }

    /// Whether jobs wait that no wake-up is under way for.
    var hasJobs: Bool { backlogNext < backlog.count || inbox.withLock { !$0.jobs.isEmpty } }

    /// Runs all that is queued now, but not what these jobs enqueue in turn, which might never end.
    func runQueuedJobs() {
        let count = (backlog.count - backlogNext) + inbox.withLock { $0.jobs.count }
        for _ in 0..<count {
            guard let job = nextJob() else { return }
            run(job)
        }
    }

    /// After this call `wake` is not called again; jobs that come wait for `detach`.
    func silence() {
        inbox.withLock { inbox in inbox.wake = nil }
    }

    /// Ends the loop's part: from this call on jobs run on the global pool.
    func detach() {
        ownerThread.store(0, ordering: .releasing)
        let left = Array(backlog[backlogNext...])
        backlog.removeAll()
        backlogNext = 0
        let mustDrain = inbox.withLock { inbox in
            inbox.wake = nil
            inbox.jobs.insert(contentsOf: left, at: 0)
            inbox.phase = .detached(draining: !inbox.jobs.isEmpty)
            return !inbox.jobs.isEmpty
        }
        if mustDrain { startDraining() }
    }

    // MARK: Running

    private func nextJob() -> UnownedJob? {
        if backlogNext == backlog.count {
            backlog.removeAll(keepingCapacity: true)
            backlogNext = 0
            let spare = backlog
            backlog = inbox.withLock { inbox in
                let jobs = inbox.jobs
                inbox.jobs = spare
                return jobs
            }
            if backlog.isEmpty { return nil }
        }
        defer { backlogNext += 1 }
        return backlog[backlogNext]
    }

    private func run(_ job: UnownedJob) {
        jobsRun &+= 1
        unsafe job.runSynchronously(on: asUnownedSerialExecutor())
    }

    private func startDraining() {
        Task.detached { self.drainDetached() }
    }

    /// Runs jobs on the caller's thread until none is left. One task at a time is here, as the phase tells.
    private func drainDetached() {
        ownerThread.store(UInt(pthread_self()), ordering: .releasing)
        while true {
            while let job = nextJob() { run(job) }
            // The thread is given up before the phase says so: the next task may begin at once.
            ownerThread.store(0, ordering: .releasing)
            let isDone = inbox.withLock { inbox in
                if inbox.jobs.isEmpty { inbox.phase = .detached(draining: false) }
                return inbox.jobs.isEmpty
            }
            if isDone { return }
            ownerThread.store(UInt(pthread_self()), ordering: .releasing)
        }
    }
}
