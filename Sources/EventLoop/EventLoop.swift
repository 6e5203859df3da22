package import Base
internal import CDatagram
internal import CUV
import Glibc
import Synchronization
package import Wire

/// An event loop on its own thread: UDP sockets, one timer, and the jobs of the actors that are pinned to it.
///
/// A turn starts when an event is ready. It reads the sockets, runs the timer and the jobs, and ends with `onTurnEnd`,
/// where the output of the turn is sent in one batch. Then the loop sleeps until the next event.
///
/// `start`, `stop` and `signal` may be called on any thread. The members under "On the loop" must be called on the
/// loop's thread, from an actor whose executor is `executor` or from a callback; elsewhere they trap. Callbacks run on
/// the loop's thread, so they can enter such an actor with `assumeIsolated`.
@safe
package final class EventLoop: @unchecked Sendable {
    /// The default limit of sockets: enough for the IPv4 and IPv6 addresses of a machine with several networks.
    package static let socketsMaxDefault = 16
    /// Messages that one `recvmmsg` call reads with GRO. Each needs a slot of 64 KiB and may hold 64 datagrams.
    private static let coalescedSlots = 16
    /// The most sockets of this loop.
    package let socketsMax: Int

    /// The name of the loop and, cut to 15 bytes, of its thread.
    package let name: String
    /// Runs actors' jobs on this loop.
    package let executor: LoopExecutor

    private enum Lifecycle {
        case idle
        case running(thread: pthread_t)
        case stopping(waiting: [CheckedContinuation<Void, Never>])
        case stopped
    }
    private let lifecycle = LockedValue(Lifecycle.idle)
    private let mustStop = Atomic<Bool>(false)
    private let isSignalled = Atomic<Bool>(false)

    // Everything below belongs to the loop's thread once it runs.
    let uvLoop: UnsafeMutablePointer<uv_loop_t>
    private let async: UnsafeMutablePointer<uv_async_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    /// Keeps the sockets alive. The hot path uses the unretained references in `socketTable`.
    private(set) var sockets: [UDPSocket] = []
    let socketTable: UnsafeMutablePointer<Unmanaged<UDPSocket>>
    /// The indices of the sockets that the current batch has datagrams for.
    let socketsToFlush: UnsafeMutablePointer<UInt16>
    private(set) var socketCount = 0
    /// A pointer, because the sockets update the counters for each datagram.
    let counters: UnsafeMutablePointer<LoopCounters>
    /// Reads the sockets with GRO.
    private(set) lazy var coalescedReader = DatagramReader(slots: Self.coalescedSlots, slotBytes: 1 << 16)
    private(set) lazy var plainReader = DatagramReader(
        slots: DatagramReader.slotsMax,
        slotBytes: DatagramBatch.slotBytes
    )
    /// Groups queued datagrams into runs again.
    private(set) lazy var resendBatch = DatagramBatch(capacity: UDPSocket.messagesMax)
    private let slice: Interval?
    /// The TCP listeners and connections of the loop.
    package private(set) lazy var tcp = TCPSockets(self)
    /// The datagrams of one message as single messages.
    let singles: UnsafeMutablePointer<nagare_outgoing>
    private(set) var isOpen = false
    private var turnStart: Instant?
    private var timerTargetMS: UInt64?

    /// Called with each received datagram: its bytes, which the callee may overwrite; their count,
    /// 1...`DatagramBatch.slotBytes`; its path; the time of the read. A callback that is set during the delivery of
    /// datagrams takes effect with the next read.
    package var onDatagram: ((inout MutableRawSpan, Int, NetworkPath, Instant) -> Void)?
    /// Returns the share that a datagram belongs to, by its bytes and its path. Called only for datagrams that are
    /// queued. Without it all media belongs to one share.
    package var shareOf: ((RawSpan, NetworkPath) -> SendShare)?
    /// Called by `send` for each run of datagrams whose path does not begin at a UDP socket of the loop. Returns whether
    /// the callee took them; otherwise they are dropped. It must not call `send`.
    package var onOtherRun: ((DatagramBatch.Run, DatagramBatch) -> Bool)?
    /// Called in a turn after `signal`, once for all calls of `signal` since the last time.
    package var onSignal: ((Instant) -> Void)?
    /// Called once when the deadline of `setTimer` has passed.
    package var onTimer: ((Instant) -> Void)?
    /// Called at the end of every turn in which something happened.
    package var onTurnEnd: ((Instant) -> Void)?
    /// Called after each turn with its duration, from its first event to the end of `onTurnEnd`.
    package var onTurnMeasured: ((Interval) -> Void)?

    /// The slice of loops that carry media. Beside busy programs, the scheduler runs a thread that asks for so little at a time
    /// earlier: measured with two busy loops for each processor, the 99th percentile of the latency of sound fell from 4.5 to
    /// 6.0 ms to 1.3 to 3.9.
    package static let mediaSlice = Interval.microseconds(100)

    /// Creates a loop that does not run yet. Jobs for its executor wait until it does.
    /// - Parameters:
    ///   - socketsMax: 1...4,096.
    ///   - slice: the time that the loop's thread asks for at once, 0.1 to 100 ms; `nil` for that of the system.
    package init(name: String, socketsMax: Int = EventLoop.socketsMaxDefault, slice: Interval? = nil) {
        precondition((1...4_096).contains(socketsMax), "a loop's sockets are bounded")
        self.name = name
        self.slice = slice
        self.socketsMax = socketsMax
        executor = LoopExecutor()
        unsafe uvLoop = .allocate(capacity: 1)
        unsafe async = .allocate(capacity: 1)
        unsafe timer = .allocate(capacity: 1)
        unsafe prepare = .allocate(capacity: 1)
        unsafe socketTable = .allocate(capacity: socketsMax)
        unsafe socketsToFlush = .allocate(capacity: socketsMax)
        unsafe socketsToFlush.initialize(repeating: 0, count: socketsMax)
        unsafe counters = .allocate(capacity: 1)
        unsafe counters.initialize(to: LoopCounters())
        unsafe singles = .allocate(capacity: DatagramBatch.segmentsMax)
        unsafe uvLoop.initialize(to: uv_loop_t())
        unsafe async.initialize(to: uv_async_t())
        unsafe timer.initialize(to: uv_timer_t())
        unsafe prepare.initialize(to: uv_prepare_t())
    }

    /// The thread retains the loop, so this runs only when the loop never started or has ended.
    deinit {
        unsafe uvLoop.deallocate()
        unsafe async.deallocate()
        unsafe timer.deallocate()
        unsafe prepare.deallocate()
        unsafe socketTable.deallocate()
        unsafe socketsToFlush.deallocate()
        unsafe counters.deallocate()
        unsafe singles.deallocate()
    }

    /// The monotonic clock, CLOCK_MONOTONIC.
    @inline(__always)
    package static func now() -> Instant {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }

    /// The current wall clock time of `Instant(nanoseconds: 0)`, in nanoseconds since 1970.
    package static func unixNanosecondsAtZero() -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) &- now().nanoseconds
    }

    // MARK: Lifecycle

    /// Starts the loop's thread, which runs until ``stop()``.
    /// - Throws: ``EventLoopError/loopFailed(message:)``, ``EventLoopError/alreadyStarted`` or
    ///   ``EventLoopError/stopped``.
    package func start() throws(EventLoopError) {
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

    /// Stops the loop: runs the queued jobs, ends the turn, sends as many queued datagrams as the kernel accepts,
    /// closes the sockets and ends the thread. Returns when the loop has ended. It may be called on any thread, also
    /// from an actor of the loop, and several times.
    ///
    /// Actors of the loop stay usable; their jobs then run on the global pool.
    package func stop() async {
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
        // The thread has nothing left to do, so this returns at once. Only the call that started the stop joins it.
        if let thread { pthread_join(thread, nil) }
    }

    /// Schedules a call of `onSignal` on the loop. It may be called on any thread and at any time: before the start it
    /// takes effect at the start, after the end it does nothing.
    ///
    /// Calls coalesce: the first one wakes the loop, the others cost one atomic exchange.
    package func signal() {
        guard !isSignalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        executor.wakeLoop()
    }

    private func run() {
        unsafe nagare_name_thread(name)
        // A sandbox may forbid it: the loop then has the system's slice.
        if let slice { _ = nagare_request_slice(UInt64(clamping: slice.nanoseconds)) }
        isOpen = true
        executor.attach { [self] in
            unsafe uv_async_send(async)
        }
        // A signal before the start could not wake the loop.
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
        tcp.closeAll()
        unsafe counters.pointee.jobs = executor.jobsRun
        unsafe counters.pointee.wakeUps = executor.wakeUps
        executor.disableWakeUps()
        closeLoop()
        socketCount = 0
        sockets = []
        onDatagram = nil
        shareOf = nil
        onOtherRun = nil
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

    /// Creates the libuv loop and its handles; undoes everything on a failure.
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
        // The next calls cannot fail: they only initialize the handle.
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

    /// Closes the loop and its handles, including those of closed sockets.
    private func closeLoop() {
        unsafe uv_close(UnsafeMutableRawPointer(async).assumingMemoryBound(to: uv_handle_t.self), nil)
        unsafe uv_close(UnsafeMutableRawPointer(timer).assumingMemoryBound(to: uv_handle_t.self), nil)
        unsafe uv_close(UnsafeMutableRawPointer(prepare).assumingMemoryBound(to: uv_handle_t.self), nil)
        while unsafe uv_run(uvLoop, UV_RUN_DEFAULT) != 0 {}
        let result = unsafe uv_loop_close(uvLoop)
        precondition(result == 0, "every handle of the loop is closed")
    }

    // MARK: The turn

    /// Called first by every libuv callback: the first event starts the turn.
    func beginTurn() {
        guard turnStart == nil else { return }
        let now = Self.now()
        turnStart = now
        executor.beginTurn(at: now)
    }

    private func woken() {
        if mustStop.load(ordering: .acquiring) { unsafe uv_stop(uvLoop) }
        takeSignal()
        guard executor.hasJobs else { return }
        beginTurn()
        executor.runJobs()
    }

    /// Called before the loop sleeps: ends the turn.
    private func beforeSleep() {
        if executor.hasJobs {
            beginTurn()
            executor.runJobs()
        }
        endTurn()
        // Jobs remain after the turn's limit, or `onTurnEnd` added some: do not sleep.
        if executor.hasJobs { unsafe uv_async_send(async) }
    }

    private func endTurn() {
        guard let start = turnStart else { return }
        onTurnEnd?(Self.now())
        // libuv computes its sleep from its cached time, which is that of the turn's start.
        unsafe uv_update_time(uvLoop)
        turnStart = nil
        unsafe counters.pointee.turns &+= 1
        onTurnMeasured?(Self.now() - start)
    }

    private func takeSignal() {
        // Cleared before the callback, so that a signal during the callback causes another call.
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

    /// Adds a socket; its index is the number of earlier sockets.
    func append(_ socket: UDPSocket) {
        precondition(socketCount < socketsMax, "a loop's sockets are bounded")
        sockets.append(socket)
        unsafe (socketTable + socketCount).initialize(to: Unmanaged.passUnretained(socket))
        socketCount += 1
    }

    func socket(at index: Int) -> UDPSocket { sockets[index] }

    /// Sets the loop's only timer, which replaces an earlier deadline; `nil` stops it.
    ///
    /// `onTimer` is called at the first whole millisecond not before `deadline`, and at least one millisecond from now,
    /// so that a past deadline cannot make the loop spin.
    package func setTimer(at deadline: Instant?) {
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

    /// The counters of the loop.
    package var statistics: LoopCounters {
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
