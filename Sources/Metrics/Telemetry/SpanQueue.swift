import Synchronization

/// Finished spans that wait for the exporter, and what became of the others.
final class SpanQueue: Sendable {
    struct State {
        var waiting: [Span] = []
        var counts = Tracer.Counts()
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// - Parameter capacity: the most spans that wait.
    init(capacity: Int) { self.capacity = capacity }

    var counts: Tracer.Counts { state.withLock(\.counts) }

    /// Adds the spans of one trace, all or none.
    func add(_ spans: [Span]) {
        state.withLock { state in
            guard state.waiting.count + spans.count <= capacity else {
                state.counts.dropped[.queueFull, default: 0] &+= UInt64(spans.count)
                return
            }
            state.waiting += spans
        }
    }

    /// The spans that have waited longest. They wait on until ``exported(_:)`` or ``refused(_:)``.
    func first(_ most: Int) -> [Span] { state.withLock { Array($0.waiting.prefix(most)) } }

    func exported(_ count: Int) {
        state.withLock { state in
            state.waiting.removeFirst(min(count, state.waiting.count))
            state.counts.exported &+= UInt64(count)
        }
    }

    func refused(_ count: Int, _ reason: Tracer.DropReason) {
        state.withLock { state in
            state.waiting.removeFirst(min(count, state.waiting.count))
            state.counts.dropped[reason, default: 0] &+= UInt64(count)
        }
    }

    func dropped(_ count: Int, _ reason: Tracer.DropReason) {
        state.withLock { $0.counts.dropped[reason, default: 0] &+= UInt64(count) }
    }

    /// Counts what still waits as lost.
    func dropAll(_ reason: Tracer.DropReason) {
        state.withLock { state in
            guard !state.waiting.isEmpty else { return }
            state.counts.dropped[reason, default: 0] &+= UInt64(state.waiting.count)
            state.waiting = []
        }
    }
}
