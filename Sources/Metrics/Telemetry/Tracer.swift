/// Begins traces, and hands finished spans to the ``SpanExporter``. No call of it blocks.
package struct Tracer: Sendable {
    /// Why spans were not exported.
    package enum DropReason: String, Hashable, Sendable, CaseIterable {
        /// Too many waited for the collector, or too many joins were under way.
        case queueFull = "queue_full"
        /// The collector refused them for good.
        case refused
        /// The node ended before the collector took them.
        case shutdown
    }

    package struct Counts: Hashable, Sendable {
        package var exported: UInt64 = 0
        package var dropped: [DropReason: UInt64] = [:]
        package init() {}
    }

    let queue: SpanQueue
    private let sampleRatio: Double
    private let random: @Sendable () -> UInt64

    init(queue: SpanQueue, sampleRatio: Double, random: @escaping @Sendable () -> UInt64 = { .random(in: 0...(.max)) })
    {
        self.queue = queue
        self.sampleRatio = sampleRatio
        self.random = random
    }

    package var counts: Counts { queue.counts }

    /// The first span of this node in a trace.
    /// - Parameter parent: the span of the client; `nil` for a trace that begins here. It decides whether the trace is sampled.
    /// - Returns: `nil` for a trace that is not sampled.
    package func begin(after parent: TraceContext?) -> TraceContext? {
        if let parent { return parent.isSampled ? child(of: parent) : nil }
        let trace = TraceContext.TraceID(high: random(), low: random())
        // The first 53 bits, which a `Double` holds exactly.
        let draw = Double(random() >> 11) / Double(UInt64(1) << 53)
        guard let trace, let span = TraceContext.SpanID(random()), draw < sampleRatio else { return nil }
        return TraceContext(trace: trace, span: span, isSampled: true)
    }

    /// Another span of the trace.
    package func child(of context: TraceContext) -> TraceContext {
        // Zero is no identifier.
        let span = TraceContext.SpanID(random()) ?? context.span
        return TraceContext(trace: context.trace, span: span, isSampled: context.isSampled)
    }

    /// Takes the finished spans of one trace: all of them, or none when too many wait.
    package func finish(_ spans: [Span]) { queue.add(spans) }

    /// Counts spans that are not recorded because too many traces are under way.
    package func dropped(_ count: Int) { queue.dropped(count, .queueFull) }
}
