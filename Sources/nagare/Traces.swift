import Logging
import ServiceLifecycle
import Telemetry
import Web

/// Traces of joins, and their way to the collector.
struct Traces: Service {
    let joins: JoinTracer
    private let exporter: SpanExporter

    init(_ settings: TraceSettings, node: NodeIdentity, logger: Logger) {
        exporter = SpanExporter(settings.exporter(node), logger: logger)
        joins = JoinTracer(exporter.tracer)
    }

    var counts: Tracer.Counts { exporter.tracer.counts }

    func run() async throws {
        let joins = joins
        await exporter.run { joins.sweep() }
    }
}
