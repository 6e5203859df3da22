import Hummingbird
import HummingbirdTesting
import JSON
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import Telemetry

@Suite(.timeLimit(.minutes(5)))
struct SpanExporterTests {
    /// A collector that answers with the given statuses in turn, and with 200 after them.
    private actor Collector {
        private var statuses: [HTTPResponse.Status]
        nonisolated let requests: AsyncStream<JSONValue>
        private let continuation: AsyncStream<JSONValue>.Continuation

        init(_ statuses: [HTTPResponse.Status]) {
            self.statuses = statuses
            (requests, continuation) = AsyncStream.makeStream()
        }

        func answer(_ body: [UInt8]) -> HTTPResponse.Status {
            continuation.yield((try? JSONValue(parsing: body)) ?? nil)
            return statuses.isEmpty ? .ok : statuses.removeFirst()
        }
    }

    private static func spans(_ request: JSONValue) -> Int {
        request["resourceSpans"]?.array?.first?["scopeSpans"]?.array?.first?["spans"]?.array?.count ?? 0
    }

    /// Exports `count` spans to a collector, until it got `requestCount` requests and the counts are as expected.
    private static func export(
        _ count: Int,
        answering statuses: [HTTPResponse.Status] = [],
        requestCount: Int,
        until isDone: @escaping @Sendable (Tracer.Counts) -> Bool
    ) async throws -> (sizes: [Int], counts: Tracer.Counts) {
        let collector = Collector(statuses)
        let router = Router()
        router.post("/v1/traces") { request, _ in
            let body = try await request.body.collect(upTo: 1 << 20)
            return await collector.answer(Array(body.readableBytesView))
        }
        return try await Application(router: router).test(.live) { client in
            let port = try #require(client.port)
            var configuration = SpanExporter.Configuration(
                endpoint: "http://localhost:\(port)",
                sampleRatio: 1,
                resource: ["service.name": "nagare"],
                version: "1"
            )
            configuration.batchMax = 10
            configuration.interval = .milliseconds(1)
            configuration.pause = .milliseconds(1)
            configuration.lastTimeout = .zero
            let exporter = SpanExporter(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let context = try #require(exporter.tracer.begin(after: nil))
            let span = Span("one", context: context, parent: nil, start: 1, end: 2)
            exporter.tracer.finish(Array(repeating: span, count: count))
            let run = Task { await exporter.run() }
            var sizes: [Int] = []
            for await request in collector.requests {
                sizes.append(spans(request))
                if sizes.count == requestCount { break }
            }
            try await eventually("the counts are complete") { isDone(exporter.tracer.counts) }
            run.cancel()
            await run.value
            return (sizes, exporter.tracer.counts)
        }
    }

    @Test func `spans arrive in batches`() async throws {
        let (sizes, counts) = try await Self.export(25, requestCount: 3) { $0.exported == 25 }
        #expect(sizes == [10, 10, 5] && counts.dropped.isEmpty)
    }

    @Test func `a collector that is away gets the same spans later`() async throws {
        let away: [HTTPResponse.Status] = [.serviceUnavailable, .tooManyRequests]
        let (sizes, counts) = try await Self.export(5, answering: away, requestCount: 3) { $0.exported == 5 }
        #expect(sizes == [5, 5, 5] && counts.dropped.isEmpty)
    }

    @Test func `what the collector refuses is dropped and counted`() async throws {
        let (sizes, counts) = try await Self.export(15, answering: [.badRequest], requestCount: 2) { $0.exported == 5 }
        #expect(sizes == [10, 5] && counts.dropped == [.refused: 10])
    }

    @Test func `a collector that does not answer does not delay the ticks`() async throws {
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let requests = Mutex(0)
        let router = Router()
        router.post("/v1/traces") { request, _ in
            _ = try await request.body.collect(upTo: 1 << 20)
            requests.withLock { $0 += 1 }
            var passed = 0
            for await _ in ticks {
                passed += 1
                if passed == 3 { break }
            }
            return HTTPResponse.Status.ok
        }
        try await Application(router: router).test(.live) { client in
            let port = try #require(client.port)
            var configuration = SpanExporter.Configuration(
                endpoint: "http://localhost:\(port)",
                sampleRatio: 1,
                resource: [:],
                version: "1"
            )
            configuration.interval = .milliseconds(1)
            configuration.timeout = .seconds(60)
            configuration.lastTimeout = .zero
            let exporter = SpanExporter(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let context = try #require(exporter.tracer.begin(after: nil))
            exporter.tracer.finish([Span("one", context: context, parent: nil, start: 1, end: 2)])
            let run = Task { await exporter.run { tick.yield() } }
            try await eventually("the span is exported, or there is a second request") {
                exporter.tracer.counts.exported > 0 || requests.withLock { $0 } >= 2
            }
            run.cancel()
            await run.value
            #expect(exporter.tracer.counts.exported == 1 && requests.withLock { $0 } == 1)
        }
    }
}
