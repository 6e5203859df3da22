package import Base
import Glibc
import Synchronization

/// Runs actors' jobs on one event loop's thread.
///
/// An actor whose `unownedExecutor` is this one is pinned to the loop: calls between such actors do not switch threads,
/// and callbacks of the loop can enter them with `assumeIsolated`. Jobs run in the order in which they were enqueued. A
/// burst of jobs wakes the loop once. A turn runs at most ``jobsPerTurnMax`` jobs, for about as long as its datagrams took or
/// ``jobTimePerTurn``, so that control work cannot starve the sockets, nor they the control work.
///
/// The inbox is not bounded: a job cannot be dropped, because a task awaits it. Code that creates tasks for a peer
/// limits them. Jobs before the start wait for it. Jobs after the stop run one after the other on the global pool, so
/// that calls of an actor of a stopped loop still return.
@safe
package final class LoopExecutor: SerialExecutor, @unchecked Sendable {
    /// The most jobs of one turn. At 10 µs per signaling step, 256 jobs delay a packet by less than a turn under load.
    package static let jobsPerTurnMax = 256
    /// How long a turn begins jobs, unless its datagrams took longer. To add a peer takes 0.3 ms, most of it in OpenSSL: a crowd
    /// that joins would delay packets by as much for each of its members.
    package static let jobTimePerTurn = Interval.microseconds(500)

    private enum Phase {
        /// Before the loop starts: jobs wait.
        case waiting
        /// Jobs run on the loop's thread.
        case running
        /// The loop's thread has ended; jobs run on the global pool. `draining`: whether a task runs them now.
        case detached(draining: Bool)
    }

    private struct Inbox {
        var jobs: [UnownedJob] = []
        var phase = Phase.waiting
        /// Wakes the loop. Called with the lock held, so that the handle that it signals still exists.
        var wake: (@Sendable () -> Void)?
        var wakeUps: UInt64 = 0

        mutating func wakeLoop() {
            guard let wake else { return }
            wakeUps &+= 1
            wake()
        }
    }

    private let inbox = LockedValue(Inbox())
    private let ownerThread = Atomic<UInt>(0)

    // The rest belongs to the thread that runs jobs: the loop's thread, later that of the draining task.
    private var backlog: [UnownedJob] = []
    private var backlogNext = 0
    private var turnStart = EventLoop.now()
    private var turnBudget = LoopExecutor.jobsPerTurnMax
    private(set) var jobsRun: UInt64 = 0

    init() {}

    /// Enqueues a job; on any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isOnLoop = isOnOwnerThread
        let mustDrain = inbox.withLock { inbox in
            let wasEmpty = inbox.jobs.isEmpty
            inbox.jobs.append(job)
            switch inbox.phase {
            case .waiting:
                return false
            case .running:
                // The loop's own thread checks the inbox before it sleeps.
                if wasEmpty, !isOnLoop { inbox.wakeLoop() }
                return false
            case .detached(let draining):
                inbox.phase = .detached(draining: true)
                return !draining
            }
        }
        if mustDrain { startDraining() }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    /// Whether the caller is on the loop's thread and can enter the actors that are pinned to it.
    package func isIsolatingCurrentContext() -> Bool? { isOnOwnerThread }

    /// Traps unless the caller is on the loop's thread.
    package func checkIsolated() {
        precondition(isOnOwnerThread, "not on the event loop's thread")
    }

    @inline(__always)
    private var isOnOwnerThread: Bool { ownerThread.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: For the loop

    /// Makes the calling thread the one that runs jobs. `wake` is then called when jobs arrive.
    func attach(wake: @escaping @Sendable () -> Void) {
        ownerThread.store(UInt(pthread_self()), ordering: .releasing)
        inbox.withLock { inbox in
            inbox.phase = .running
            inbox.wake = wake
        }
    }

    /// Wakes the loop if it runs.
    func wakeLoop() {
        inbox.withLock { inbox in inbox.wakeLoop() }
    }

    /// How often other threads woke the loop.
    var wakeUps: UInt64 { inbox.withLock { $0.wakeUps } }

    /// Begins a turn with a new budget of jobs.
    func beginTurn(at now: Instant) {
        turnStart = now
        turnBudget = Self.jobsPerTurnMax
    }

    /// Runs queued jobs within the turn's budget. A loop with too little of a processor gives its jobs as much time as its
    /// datagrams, because jobs come at the rate of the clients, not of its turns.
    func runJobs() {
        let began = EventLoop.now()
        let end = began + max(Self.jobTimePerTurn, began - turnStart)
        while turnBudget > 0 {
            guard let job = nextJob() else { return }
            turnBudget -= 1
            run(job)
            if EventLoop.now() >= end { return }
        }
    }

    /// Whether jobs are queued.
    var hasJobs: Bool { backlogNext < backlog.count || inbox.withLock { !$0.jobs.isEmpty } }

    /// Runs the jobs that are queued now, but not the jobs that these enqueue, which might never end.
    func runQueuedJobs() {
        let count = (backlog.count - backlogNext) + inbox.withLock { $0.jobs.count }
        for _ in 0..<count {
            guard let job = nextJob() else { return }
            run(job)
        }
    }

    /// After this call `wake` is not called again. New jobs wait for ``detach()``.
    func disableWakeUps() {
        inbox.withLock { inbox in inbox.wake = nil }
    }

    /// Detaches the loop: jobs then run on the global pool.
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

    /// Runs jobs on the caller's thread until none is left. The phase ensures that only one task runs this at a time.
    private func drainDetached() {
        ownerThread.store(UInt(pthread_self()), ordering: .releasing)
        while true {
            while let job = nextJob() { run(job) }
            // Released before the phase changes, because the next task may start at once.
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
