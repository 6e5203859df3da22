import Glibc
import Synchronization

/// Runs `body` on a thread of its own: two of them meet as two loops do, which tasks of one pool need not.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        let context = unsafe Unmanaged.passRetained(ThreadBody { continuation.resume(returning: body()) })
        var thread = pthread_t()
        let result = unsafe pthread_create(
            &thread,
            nil,
            { context in
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        precondition(result == 0, "the system has no thread left")
        pthread_detach(thread)
    }
}

private final class ThreadBody {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
}

/// Holds threads up until it is opened: a loop that stands here stalls.
final class Gate: Sendable {
    private let isOpen = Atomic(false)
    private let waiting: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    init() { (waiting, arrival) = AsyncStream.makeStream() }

    /// Blocks the calling thread until ``open()``.
    func pass() {
        arrival.yield()
        while !isOpen.load(ordering: .acquiring) { sched_yield() }
    }

    /// Returns when a thread stands at the gate.
    func waitForArrival() async { for await _ in waiting { return } }

    func open() { isOpen.store(true, ordering: .releasing) }
}
