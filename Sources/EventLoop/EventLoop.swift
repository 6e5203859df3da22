internal import CDatagram
internal import CUV
import Glibc
import Synchronization
public import Wire

/// A loop on a thread of its own: UDP sockets, one timer, and the jobs of the actors that are pinned to it.
///
/// A turn begins when something is ready, takes in what arrived, runs the timer and the jobs, and ends with `onTurnEnd`,
/// where what the turn produced is sent in one go. Then the loop sleeps until something is ready again.
///
/// `start` and `stop` may be called from anywhere; everything under "On the loop" only on the loop's thread, which means
/// from an actor whose executor is `executor`, or from a callback; elsewhere it traps. The callbacks are called on the
/// loop's thread, so that such an actor may be entered with `assumeIsolated`.
@safe
public final class EventLoop: @unchecked Sendable {
    /// Sockets that a server's loop takes: IPv4 and IPv6 addresses of a machine with several networks.
    public static let socketsMaxDefault = 16
    /// Messages that one `recvmmsg` reads with GRO: each takes a slot of 64 KiB and may hold 64 datagrams.
    private static let coalescedSlots = 16
    /// Sockets that this loop takes.
    public let socketsMax: Int

    /// The loop's name, which is also its thread's (its first 15 bytes).
    public let name: String
    /// Runs actors' jobs on this loop.
    public let executor: LoopExecutor

    private enum Lifecycle {
        case idle
        case running(thread: pthread_t)
        case stopping(waiting: [CheckedContinuation<Void, Never>])
        case stopped
    }
    private let lifecycle = Guarded(Lifecycle.idle)
    private let mustStop = Atomic<Bool>(false)
    private let isSignalled = Atomic<Bool>(false)

    // What follows belongs to the loop's thread once that runs.
    let uvLoop: UnsafeMutablePointer<uv_loop_t>
    private let async: UnsafeMutablePointer<uv_async_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    /// One holder keeps each socket alive; whoever sends or reads takes it from the table, which retains nothing.
    private(set) var sockets: [UDPSocket] = []
    let socketTable: UnsafeMutablePointer<Unmanaged<UDPSocket>>
    /// The sockets that the batch being sent has datagrams for.
    let touched: UnsafeMutablePointer<UInt16>
    private(set) var socketCount = 0
    /// Behind a pointer, as the sockets count for each datagram.
    let counters: UnsafeMutablePointer<LoopCounters>
    /// Where the sockets with GRO read to, and those without.
    private(set) lazy var coalescedReceiver = Receiver(slots: Self.coalescedSlots, slotBytes: 1 << 16)
    private(set) lazy var plainReceiver = Receiver(slots: Receiver.slotsMax, slotBytes: DatagramBatch.slotBytes)
    /// Where the datagrams that have waited are put together to runs once more.
    private(set) lazy var resendBatch = DatagramBatch(capacity: UDPSocket.messagesMax)
    /// One message's datagrams, each on its own.
    let singles: UnsafeMutablePointer<nagare_outgoing>
    private(set) var isOpen = false
    private var turnStart: Instant?
    private var timerTargetMS: UInt64?

    /// Called with each datagram that arrives: its bytes, and nothing but them, since the next datagram may lie right
    /// behind; their count again, 1...`DatagramBatch.slotBytes`; where from; when it was read. The callee may write over
    /// the bytes. What is set while datagrams are being delivered is called from the next read on.
    public var onDatagram: ((inout MutableRawSpan, Int, NetworkPath, Instant) -> Void)?
    /// Tells whose media a datagram is that has to wait for the kernel, by its bytes and where it goes; not called for any
    /// other. Without it all media is of one share.
    public var shareOf: ((RawSpan, NetworkPath) -> SendShare)?
    /// Called in a turn after `signal`, once however often that was called since the last time.
    public var onSignal: ((Instant) -> Void)?
    /// Called when the instant given to `setTimer` has come, once.
    public var onTimer: ((Instant) -> Void)?
    /// Called at the end of every turn in which something happened.
    public var onTurnEnd: ((Instant) -> Void)?
    /// Called after each turn with the time from its first event to the end of `onTurnEnd`.
    public var onTurnMeasured: ((Interval) -> Void)?

    /// A loop that does not run yet. Jobs for its executor wait until it does.
    public init(name: String, socketsMax: Int = EventLoop.socketsMaxDefault) {
        precondition((1...4_096).contains(socketsMax), "a loop's sockets are bounded")
        self.name = name
        self.socketsMax = socketsMax
        executor = LoopExecutor()
        unsafe uvLoop = .allocate(capacity: 1)
        unsafe async = .allocate(capacity: 1)
        unsafe timer = .allocate(capacity: 1)
        unsafe prepare = .allocate(capacity: 1)
        unsafe socketTable = .allocate(capacity: socketsMax)
        unsafe touched = .allocate(capacity: socketsMax)
        unsafe touched.initialize(repeating: 0, count: socketsMax)
        unsafe counters = .allocate(capacity: 1)
        unsafe counters.initialize(to: LoopCounters())
        unsafe singles = .allocate(capacity: DatagramBatch.segmentsMax)
        unsafe uvLoop.initialize(to: uv_loop_t())
        unsafe async.initialize(to: uv_async_t())
        unsafe timer.initialize(to: uv_timer_t())
        unsafe prepare.initialize(to: uv_prepare_t())
    }

    /// The thread holds the loop, so this comes only when the loop never ran or has ended.
    deinit {
        unsafe uvLoop.deallocate()
        unsafe async.deallocate()
        unsafe timer.deallocate()
        unsafe prepare.deallocate()
        unsafe socketTable.deallocate()
        unsafe touched.deallocate()
        unsafe counters.deallocate()
        unsafe singles.deallocate()
    }

    /// The monotonic clock, CLOCK_MONOTONIC.
    @inline(__always)
    public static func now() -> Instant {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }

    /// The wall clock at `Instant(nanoseconds: 0)` of this process's monotonic clock, in nanoseconds since 1970, as the
    /// system has it now.
    public static func unixNanosecondsAtZero() -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) &- now().nanoseconds
    }

    // MARK: Lifecycle

    /// Starts the loop's thread. A loop that was started must be stopped, else it runs for the process's life.
    public func start() throws(EventLoopError) {
        let failure: EventLoopError? = lifecycle.withLock { state in
            switch state {
            case .idle: break
            case .running, .stopping: return .alreadyStarted
            case .stopped: return .stopped
            }
            if let failure = openLoop() { return failure }
            var thread = pthread_t()
            let context = unsafe Unmanaged.passRetained(self)
            let result = unsafe pthread_create(
                &thread,
                nil,
                { context in
                    guard let context = unsafe context else { return nil }
                    let loop = unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue()
                    loop.run()
                    return nil
                },
                context.toOpaque()
            )
            guard result == 0 else {
                unsafe context.release()
                closeLoop()
                return .loopFailed(message: systemMessage(result))
            }
            state = .running(thread: thread)
            return nil
        }
        if let failure { throw failure }
    }

    /// Stops the loop: runs the jobs that are queued, ends the turn, sends what waits as far as the kernel takes it,
    /// closes the sockets and ends the thread. Returns when all this is done. It can be called from any thread, from an
    /// actor of the loop too, and any number of times; every call returns when the loop has ended.
    ///
    /// Actors of the loop stay usable; their jobs run on the global pool from now on.
    public func stop() async {
        let thread: pthread_t? = lifecycle.withLock { state in
            switch state {
            case .idle:
                state = .stopped
                executor.detach()
                return nil
            case .running(let thread):
                state = .stopping(waiting: [])
                mustStop.store(true, ordering: .releasing)
                executor.wakeLoop()
                return thread
            case .stopping, .stopped:
                return nil
            }
        }
        await withCheckedContinuation { continuation in
            let isStopped = lifecycle.withLock { state in
                guard case .stopping(let waiting) = state else { return true }
                state = .stopping(waiting: waiting + [continuation])
                return false
            }
            if isStopped { continuation.resume() }
        }
        // The thread has nothing left to do, so this returns at once; the one call that began the end makes it.
        if let thread { pthread_join(thread, nil) }
    }

    /// Has `onSignal` called in a turn that begins soon. From any thread, the loop's own included, and at any time: before
    /// the start it waits for that, after the end it does nothing.
    ///
    /// Calls until then are one: the first wakes the loop, the others cost an atomic exchange.
    public func signal() {
        guard !isSignalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        executor.wakeLoop()
    }

    private func run() {
        unsafe nagare_name_thread(name)
        isOpen = true
        executor.attach { [self] in
            unsafe uv_async_send(async)
        }
        // A signal that came before had nothing to wake.
        if isSignalled.load(ordering: .acquiring) { unsafe uv_async_send(async) }
        while !mustStop.load(ordering: .acquiring) {
            unsafe uv_run(uvLoop, UV_RUN_DEFAULT)
        }
        beginTurn()
        takeSignal()
        executor.runQueuedJobs()
        endTurn()
        isOpen = false
        for socket in sockets { socket.close() }
        unsafe counters.pointee.jobs = executor.jobsRun
        unsafe counters.pointee.wakeUps = executor.wakeUps
        executor.silence()
        closeLoop()
        socketCount = 0
        sockets = []
        onDatagram = nil
        shareOf = nil
        onSignal = nil
        onTimer = nil
        onTurnEnd = nil
        onTurnMeasured = nil
        executor.detach()
        let waiting: [CheckedContinuation<Void, Never>] = lifecycle.withLock { state in
            defer { state = .stopped }
            if case .stopping(let waiting) = state { return waiting }
            return []
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Makes the libuv loop and its handles; undoes everything if one fails.
    private func openLoop() -> EventLoopError? {
        var result = unsafe uv_loop_init(uvLoop)
        guard result == 0 else { return .loopFailed(message: systemMessage(-result)) }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        result = unsafe uv_async_init(uvLoop, async) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<EventLoop>.fromOpaque(data).takeUnretainedValue().woken()
        }
        guard result == 0 else {
            unsafe uv_loop_close(uvLoop)
            return .loopFailed(message: systemMessage(-result))
        }
        unsafe async.pointee.data = context
        // These three cannot fail: they only fill in the handle.
        unsafe uv_timer_init(uvLoop, timer)
        unsafe timer.pointee.data = context
        unsafe uv_prepare_init(uvLoop, prepare)
        unsafe prepare.pointee.data = context
        unsafe uv_prepare_start(prepare) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<EventLoop>.fromOpaque(data).takeUnretainedValue().beforeSleep()
        }
        return nil
    }

    /// Closes the handles, the sockets' too once `close` was called on them, and the loop.
    private func closeLoop() {
        unsafe uv_close(UnsafeMutableRawPointer(async).assumingMemoryBound(to: uv_handle_t.self), nil)
        unsafe uv_close(UnsafeMutableRawPointer(timer).assumingMemoryBound(to: uv_handle_t.self), nil)
        unsafe uv_close(UnsafeMutableRawPointer(prepare).assumingMemoryBound(to: uv_handle_t.self), nil)
        while unsafe uv_run(uvLoop, UV_RUN_DEFAULT) != 0 {}
        let result = unsafe uv_loop_close(uvLoop)
        precondition(result == 0, "every handle of the loop is closed")
    }

    // MARK: The turn

    /// Called first by every callback of libuv: a turn begins with the first event.
    func beginTurn() {
        guard turnStart == nil else { return }
        turnStart = Self.now()
        executor.resetTurnBudget()
    }

    private func woken() {
        if mustStop.load(ordering: .acquiring) { unsafe uv_stop(uvLoop) }
        takeSignal()
        guard executor.hasJobs else { return }
        beginTurn()
        executor.runJobs()
    }

    /// Called before the loop sleeps: the turn's end.
    private func beforeSleep() {
        if executor.hasJobs {
            beginTurn()
            executor.runJobs()
        }
        endTurn()
        // More jobs than one turn runs, or such as the turn's end brought: do not sleep.
        if executor.hasJobs { unsafe uv_async_send(async) }
    }

    private func endTurn() {
        guard let start = turnStart else { return }
        onTurnEnd?(Self.now())
        // libuv counts its sleep from the time that it saw when the turn began.
        unsafe uv_update_time(uvLoop)
        turnStart = nil
        unsafe counters.pointee.turns &+= 1
        onTurnMeasured?(Self.now() - start)
    }

    private func takeSignal() {
        // Cleared before the callback looks: what is signalled from then on is worth another call.
        guard isSignalled.exchange(false, ordering: .acquiringAndReleasing) else { return }
        beginTurn()
        onSignal?(Self.now())
    }

    private func timerFired() {
        beginTurn()
        timerTargetMS = nil
        onTimer?(Self.now())
    }

    // MARK: On the loop

    /// Adds a socket, whose index is the count of those before it.
    func append(_ socket: UDPSocket) {
        precondition(socketCount < socketsMax, "a loop's sockets are bounded")
        sockets.append(socket)
        unsafe (socketTable + socketCount).initialize(to: Unmanaged.passUnretained(socket))
        socketCount += 1
    }

    func socket(at index: Int) -> UDPSocket { sockets[index] }

    /// Sets the loop's one timer, in place of what it was set to; `nil` turns it off.
    ///
    /// `onTimer` is called at the first whole millisecond of the clock that is not before `deadline`, and at least one
    /// millisecond from now: a deadline that has passed already cannot make the loop spin.
    public func setTimer(at deadline: Instant?) {
        executor.checkIsolated()
        guard isOpen else { return }
        guard let deadline else {
            if timerTargetMS != nil { unsafe uv_timer_stop(timer) }
            timerTargetMS = nil
            return
        }
        let nanoseconds = max(deadline.nanoseconds, 1)
        let wanted = UInt64((nanoseconds - 1) / 1_000_000 + 1)
        if wanted == timerTargetMS { return }
        let nowMS = unsafe uv_now(uvLoop)
        let target = max(wanted, nowMS + 1)
        if target == timerTargetMS { return }
        timerTargetMS = target
        unsafe uv_timer_start(
            timer,
            { handle in
                guard let data = unsafe handle?.pointee.data else { return }
                unsafe Unmanaged<EventLoop>.fromOpaque(data).takeUnretainedValue().timerFired()
            },
            target - nowMS,
            0
        )
    }

    /// What the loop has counted so far.
    public var statistics: LoopCounters {
        executor.checkIsolated()
        var counted = unsafe counters.pointee
        if isOpen {
            counted.jobs = executor.jobsRun
            counted.wakeUps = executor.wakeUps
            for socket in sockets { counted.kernelReceiveDrops &+= socket.kernelDrops }
        }
        return counted
    }
}

/// The system's message for an errno.
func systemMessage(_ code: Int32) -> String {
    guard let text = unsafe strerror(code) else { return "error \(code)" }
    return unsafe String(cString: text)
}
