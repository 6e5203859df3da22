package import Metrics

extension Tracer.Counts {
    package func add(to page: inout MetricsPage) {
        page.addCounter(
            "nagare_trace_spans_exported_total",
            help: "Spans of traces that the collector took.",
            exported
        )
        for reason in Tracer.DropReason.allCases {
            page.addCounter(
                "nagare_trace_spans_dropped_total",
                help: "Spans of traces that were not exported.",
                labels: [MetricLabel("reason", reason.rawValue)],
                dropped[reason] ?? 0
            )
        }
    }
}
