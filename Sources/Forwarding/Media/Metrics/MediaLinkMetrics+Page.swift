import Base
import Forwarding
import Metrics

/// The relay between media loops of different nodes, as metrics.
extension MediaLinkMetrics {
    func add(to page: inout MetricsPage, labels: [MetricLabel]) {
        addTraffic(to: &page, labels)
        addRepairs(to: &page, labels)
        addLinks(to: &page, labels)
    }

    private func addTraffic(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        for (direction, traffic) in [("sent", counters.sent), ("received", counters.received)] {
            let labels = labels + [MetricLabel("direction", direction)]
            let kinds = [
                ("packet", traffic.packets), ("repair", traffic.repairs), ("message", traffic.messages),
                ("report", traffic.reports),
            ]
            for (kind, value) in kinds {
                page.addCounter(
                    "nagare_cluster_relay_packets_total",
                    help: "Packets and messages sent to and received from other nodes.",
                    labels: labels + [MetricLabel("kind", kind)],
                    value
                )
            }
            page.addCounter(
                "nagare_cluster_relay_datagrams_total",
                help: "Datagrams sent to and received from other nodes.",
                labels: labels,
                traffic.datagrams
            )
            page.addCounter(
                "nagare_cluster_relay_bytes_total",
                help: "Bytes of datagrams sent to and received from other nodes.",
                labels: labels,
                traffic.bytes
            )
        }
        page.addCounter(
            "nagare_cluster_relay_not_sent_total",
            help: "Packets and messages to other nodes dropped because the link was not ready.",
            labels: labels,
            counters.notSent
        )
    }

    private func addRepairs(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        for (state, value) in [("missing", counters.missing), ("late", counters.late)] {
            page.addCounter(
                "nagare_cluster_relay_disordered_total",
                help: "Datagrams from other nodes that did not arrive in order, and those of them that arrived late.",
                labels: labels + [MetricLabel("state", state)],
                value
            )
        }
        let results = [
            ("asked", counters.repairsAsked), ("late", counters.repairsLate), ("missed", counters.repairsMissed),
        ]
        for (result, value) in results {
            page.addCounter(
                "nagare_cluster_relay_repairs_total",
                help: "Packets that other nodes asked for again: all, those too late, those not kept.",
                labels: labels + [MetricLabel("result", result)],
                value
            )
        }
        page.addCounter(
            "nagare_cluster_relay_gaps_given_up_total",
            help: "Ranges of missing datagrams given up because there were too many.",
            labels: labels,
            counters.gapsGivenUp
        )
    }

    private func addLinks(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let used = links.filter(\.isUsed)
        let down = used.count { $0.isDown }
        for (state, value) in [("up", used.count - down), ("down", down), ("idle", links.count - used.count)] {
            page.addGauge(
                "nagare_cluster_relay_links",
                help: "Links to media loops of other nodes.",
                labels: labels + [MetricLabel("state", state)],
                value
            )
        }
        page.addGauge(
            "nagare_cluster_relay_round_trip_seconds_max",
            help: "Longest round trip of the links to other nodes.",
            labels: labels,
            used.compactMap { $0.roundTrip?.seconds }.max() ?? 0
        )
        page.addHistogram(
            "nagare_cluster_relay_hop_seconds",
            help: "Time of packets from their arrival at the publisher's node until they arrived here.",
            labels: labels,
            Histogram(counters.hops)
        )
    }
}

extension Histogram {
    /// The times as a Prometheus histogram.
    fileprivate init(_ times: HopTimes) {
        self.init(
            bounds: HopTimes.boundsNanoseconds.map { Double($0) / 1e9 },
            counts: times.counts,
            sum: Double(times.sumNanoseconds) / 1e9
        )
    }
}
