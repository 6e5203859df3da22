import JSON
import Testing

@testable import Telemetry

@Suite struct TracerTests {
    private static func tracer(_ ratio: Double, capacity: Int = 100) -> Tracer {
        Tracer(queue: SpanQueue(capacity: capacity), sampleRatio: ratio)
    }

    private static let parent = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

    private static func span(_ tracer: Tracer) throws -> Span {
        Span("one", context: try #require(tracer.begin(after: nil)), parent: nil, start: 1, end: 2)
    }

    @Test func `the parent decides whether its trace is sampled, and the ratio on others`() throws {
        let sampled = try #require(TraceContext(traceparent: ["00-\(Self.parent)-01"]))
        let unsampled = try #require(TraceContext(traceparent: ["00-\(Self.parent)-00"]))
        for ratio in [0, 1.0] {
            let tracer = Self.tracer(ratio)
            let child = try #require(tracer.begin(after: sampled))
            #expect(child.trace == sampled.trace && child.span != sampled.span && child.isSampled)
            #expect(tracer.begin(after: unsampled) == nil)
            #expect((0..<50).count { _ in tracer.begin(after: nil) != nil } == (ratio == 0 ? 0 : 50))
        }
        let half = Self.tracer(0.5)
        let count = (0..<1_000).count { _ in half.begin(after: nil) != nil }
        #expect((300...700).contains(count))
    }

    @Test func `a random number of zero makes no identifier`() {
        let tracer = Tracer(queue: SpanQueue(capacity: 1), sampleRatio: 1) { 0 }
        #expect(tracer.begin(after: nil) == nil)
    }

    @Test func `what waits is bounded, and a trace waits whole or not at all`() throws {
        let tracer = Self.tracer(1, capacity: 5)
        let span = try Self.span(tracer)
        tracer.finish([span, span, span])
        tracer.finish([span, span, span])
        tracer.finish([span, span])
        #expect(tracer.queue.first(10).count == 5 && tracer.counts.dropped == [.queueFull: 3])
        #expect(tracer.queue.first(2).count == 2)
        tracer.queue.exported(2)
        tracer.queue.refused(1, .refused)
        tracer.queue.dropAll(.shutdown)
        #expect(tracer.counts.exported == 2)
        #expect(tracer.counts.dropped == [.queueFull: 3, .refused: 1, .shutdown: 2])
        #expect(tracer.queue.first(10).isEmpty)
    }

    @Test func `spans have the JSON shape of OTLP`() throws {
        let parent = try #require(TraceContext(traceparent: ["00-\(Self.parent)-01"]))
        let context = Self.tracer(1).child(of: parent)
        let span = Span(
            "join",
            context: context,
            parent: parent.span,
            kind: .server,
            start: 1_700_000_000_123_456_789,
            end: 1_700_000_000_123_456_788,
            attributes: ["a": .string("x"), "c": .boolean(true), "b": .integer(.max)],
            error: "It failed."
        )
        let document = OTLPDocument(resource: ["service.name": "nagare"], scope: ("nagare", "1.2"), spans: [span]).json
        let expected: JSONValue = [
            "resourceSpans": [
                [
                    "resource": ["attributes": [["key": "service.name", "value": ["stringValue": "nagare"]]]],
                    "scopeSpans": [
                        [
                            "scope": ["name": "nagare", "version": "1.2"],
                            "spans": [
                                [
                                    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                                    "spanId": .string(context.span.text), "parentSpanId": "00f067aa0ba902b7",
                                    "flags": 1, "name": "join", "kind": 2,
                                    "startTimeUnixNano": "1700000000123456789",
                                    "endTimeUnixNano": "1700000000123456789",
                                    "attributes": [
                                        ["key": "a", "value": ["stringValue": "x"]],
                                        ["key": "b", "value": ["intValue": "9223372036854775807"]],
                                        ["key": "c", "value": ["boolValue": true]],
                                    ],
                                    "status": ["code": 2, "message": "It failed."],
                                ]
                            ],
                        ]
                    ],
                ]
            ]
        ]
        #expect(document == expected)
        let first = Span("join", context: context, parent: nil, start: 0, end: 0)
        let plain = OTLPDocument(resource: [:], scope: ("nagare", ""), spans: [first]).json
        let sent = plain["resourceSpans"]?.array?.first?["scopeSpans"]?.array?.first?["spans"]?.array?.first
        #expect(sent?["parentSpanId"] == nil && sent?["status"] == [:] && sent?["kind"] == 1)
    }
}
