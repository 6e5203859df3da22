/// One finished operation of a trace.
package struct Span: Hashable, Sendable {
    /// OpenTelemetry's `SpanKind`, with its numbers in OTLP.
    package enum Kind: Int, Hashable, Sendable {
        case `internal` = 1
        case server = 2
        case client = 3
    }

    package enum Value: Hashable, Sendable {
        case string(String)
        case integer(Int64)
        case boolean(Bool)
    }

    package let context: TraceContext
    /// `nil` for the first span of a trace.
    package let parent: TraceContext.SpanID?
    package let name: String
    package let kind: Kind
    /// In nanoseconds since 1970 UTC.
    package let start: Int64
    /// In nanoseconds since 1970 UTC.
    package let end: Int64
    package let attributes: [String: Value]
    /// What went wrong; `nil` for a success.
    package let error: String?

    /// - Parameters:
    ///   - context: from ``Tracer/begin(after:)`` or ``Tracer/child(of:)``.
    ///   - end: at least `start`; an earlier end counts as `start`.
    package init(
        _ name: String,
        context: TraceContext,
        parent: TraceContext.SpanID?,
        kind: Kind = .internal,
        start: Int64,
        end: Int64,
        attributes: [String: Value] = [:],
        error: String? = nil
    ) {
        self.name = name
        self.context = context
        self.parent = parent
        self.kind = kind
        self.start = max(start, 0)
        self.end = max(end, self.start)
        self.attributes = attributes
        self.error = error
    }
}
