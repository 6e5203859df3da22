internal import AsyncHTTPClient
import JSON
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import ServiceLifecycle

/// Sends finished spans to an OpenTelemetry collector: OTLP/HTTP with JSON encoding, in batches.
///
/// What waits is bounded. While the collector is away, the exporter tries again after pauses that grow to a minute, and logs only
/// the change.
package final class SpanExporter: Sendable {
    /// How to reach the collector, and what it is told of this node.
    package struct Configuration: Sendable {
        /// The base of the collector's URLs, as in `OTEL_EXPORTER_OTLP_ENDPOINT`: `http://HOST:4318`.
        package var endpoint: String
        /// The share of traces that are sampled, 0…1, of those that no client began.
        package var sampleRatio: Double
        /// The attributes of the resource, such as `service.name`.
        package var resource: [String: String]
        /// Of the program, as the scope of its spans.
        package var version: String
        /// The most spans that wait.
        package var queueMax = 8_192
        /// The most spans of one request.
        var batchMax = 512
        /// Between two looks at the queue.
        var interval: Duration = .seconds(1)
        /// The first pause after a failure, and the longest.
        var pause: Duration = .seconds(1)
        var pauseMax: Duration = .seconds(60)
        /// For one request.
        var timeout: Duration = .seconds(10)
        /// For the last request, at the end.
        var lastTimeout: Duration = .seconds(2)

        package init(endpoint: String, sampleRatio: Double, resource: [String: String], version: String) {
            self.endpoint = endpoint
            self.sampleRatio = sampleRatio
            self.resource = resource
            self.version = version
        }
    }

    /// What became of a batch.
    private enum Outcome {
        case accepted
        /// It may succeed later.
        case unavailable(String)
        /// It never will.
        case refused(String)
    }

    private static let answerBytesMax = 65_536

    package let tracer: Tracer
    private let configuration: Configuration
    private let queue: SpanQueue
    private let client: HTTPClient
    private let logger: Logger

    /// - Parameter logger: Logs when the collector goes away and comes back.
    package init(_ configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        queue = SpanQueue(capacity: configuration.queueMax)
        tracer = Tracer(queue: queue, sampleRatio: configuration.sampleRatio)
        var settings = HTTPClient.Configuration()
        settings.redirectConfiguration = .disallow
        settings.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    }

    /// Exports until a graceful shutdown, and then what waits, once. It can run once.
    /// - Parameter onTick: Called about once a second, whatever the collector does, and at the end.
    package func run(onTick: @escaping @Sendable () -> Void = {}) async {
        await cancelWhenGracefulShutdown {
            // A request to a collector that does not answer must not delay the ticks.
            async let ticks: Void = self.tick(onTick)
            await self.export()
            await ticks
        }
        onTick()
        await exportRest(within: configuration.lastTimeout)
        queue.dropAll(.shutdown)
        try? await client.shutdown()
    }

    private func tick(_ onTick: @Sendable () -> Void) async {
        while (try? await Task.sleep(for: configuration.interval)) != nil { onTick() }
    }

    private func export() async {
        var pause: Duration?
        var resumeAt = ContinuousClock.now
        while (try? await Task.sleep(for: configuration.interval)) != nil {
            var sent = ContinuousClock.now >= resumeAt
            while sent, !Task.isCancelled {
                let batch = queue.first(configuration.batchMax)
                guard !batch.isEmpty else { break }
                switch await post(batch, within: configuration.timeout) {
                case .accepted:
                    queue.exported(batch.count)
                    if pause != nil { logger.notice("the trace collector is back") }
                    pause = nil
                case .refused(let reason):
                    queue.refused(batch.count, .refused)
                    logger.warning("the trace collector refused spans", metadata: ["reason": "\(reason)"])
                    // One batch and one log line in each interval.
                    sent = false
                case .unavailable(let reason):
                    // The end of the node interrupts the request.
                    guard !Task.isCancelled else { return }
                    if pause == nil {
                        logger.warning("the trace collector does not take spans", metadata: ["reason": "\(reason)"])
                    }
                    let next = min(pause.map { $0 * 2 } ?? configuration.pause, configuration.pauseMax)
                    pause = next
                    resumeAt = ContinuousClock.now + next
                    sent = false
                }
            }
        }
    }

    private func exportRest(within time: Duration) async {
        let deadline = ContinuousClock.now + time
        while ContinuousClock.now < deadline {
            let batch = queue.first(configuration.batchMax)
            guard !batch.isEmpty else { return }
            guard case .accepted = await post(batch, within: deadline - ContinuousClock.now) else { return }
            queue.exported(batch.count)
        }
    }

    private func post(_ spans: [Span], within time: Duration) async -> Outcome {
        let document = OTLPDocument(
            resource: configuration.resource,
            scope: ("nagare", configuration.version),
            spans: spans
        )
        var request = HTTPClientRequest(url: configuration.endpoint + "/v1/traces")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: "Nagare/\(configuration.version)")
        request.body = .bytes(ByteBuffer(bytes: document.json.bytes))
        do {
            let response = try await client.execute(request, timeout: TimeAmount(time))
            // Read, so that the connection can be used again.
            _ = try? await response.body.collect(upTo: Self.answerBytesMax)
            let code = response.status.code
            // OTLP/HTTP: these may be tried again.
            if [408, 429, 502, 503, 504].contains(code) { return .unavailable("It answered with status \(code).") }
            return (200..<300).contains(code)
                ? .accepted
                : .refused(
                    "It answered with status \(code) instead of 2xx. Check --otlp-endpoint, and that it takes OTLP/HTTP."
                )
        } catch {
            return .unavailable("The request failed: \(error). Check --otlp-endpoint, and that the collector runs.")
        }
    }
}
