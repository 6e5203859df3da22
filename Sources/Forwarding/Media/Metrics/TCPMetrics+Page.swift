package import Metrics
import Wire

/// One media loop's TCP connections in a scrape.
extension TCPMetrics {
    package func add(to page: inout MetricsPage, labels: [MetricLabel]) {
        page.addGauge(
            "nagare_tcp_connections",
            help: "TCP connections of the media port (ICE over TCP).",
            labels: labels,
            connections
        )
        let counts: [(String, String, UInt64)] = [
            ("nagare_tcp_accepted_total", "TCP connections accepted on the media port.", accepted),
            ("nagare_tcp_accept_errors_total", "Failures of the system to accept a TCP connection.", acceptErrors),
            ("nagare_tcp_received_bytes_total", "Bytes received over TCP on the media port.", bytesReceived),
            ("nagare_tcp_sent_bytes_total", "Bytes sent over TCP from the media port.", bytesSent),
            ("nagare_tcp_packets_received_total", "Packets received over TCP on the media port.", packetsReceived),
            ("nagare_tcp_packets_queued_total", "Packets queued for TCP connections.", packetsQueued),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
        for reason in TCPRefusal.allCases {
            page.addCounter(
                "nagare_tcp_refused_total",
                help: "TCP connections refused on the media port.",
                labels: labels + [MetricLabel("reason", reason.rawValue)],
                refused[reason] ?? 0
            )
        }
        for reason in TCPEndReason.allCases {
            page.addCounter(
                "nagare_tcp_ended_total",
                help: "TCP connections of the media port that ended.",
                labels: labels + [MetricLabel("reason", reason.rawValue)],
                ended[reason] ?? 0
            )
        }
        let drops =
            StreamDropReason.allCases.map { ($0.label, dropped[$0] ?? 0) }
            + [("no_connection", packetsWithoutConnection)]
        for (reason, value) in drops {
            page.addCounter(
                "nagare_tcp_packets_dropped_total",
                help: "Packets for TCP connections that were dropped.",
                labels: labels + [MetricLabel("reason", reason)],
                value
            )
        }
    }
}

extension StreamDropReason {
    /// The `reason` label.
    fileprivate var label: String {
        switch self {
        case .blocked: "blocked"
        case .awaitsKeyFrame: "awaits_key_frame"
        case .late: "late"
        case .full: "full"
        }
    }
}
