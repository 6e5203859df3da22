import Forwarding
import MediaTypes
import Metrics
import Wire

/// What viewers are sent, what they report of it, and how long it took until it began.
extension MediaMetrics {
    /// What the network of each viewer carries, and what it is sent.
    func addSending(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let sending = forwarder.sending
        for (measure, name, help) in Self.sendingHistograms {
            let histogram = Histogram(
                bounds: measure.bounds,
                counts: sending.counts(of: measure),
                sum: sending.sum(of: measure)
            )
            page.addHistogram(name, help: "For each second of each viewer: \(help)", labels: labels, histogram)
        }
        for state in SendingStatistics.State.allCases {
            page.addCounter(
                "nagare_send_state_seconds_total",
                help: "Seconds that viewers spent in each state of bandwidth estimation; the rate is their number.",
                labels: labels + [MetricLabel("state", state.rawValue)],
                sending[state]
            )
        }
        for limit in SendingStatistics.Limit.allCases {
            page.addCounter(
                "nagare_send_limit_seconds_total",
                help: "Seconds that viewers spent with each limit of their send rate; the rate is their number.",
                labels: labels + [MetricLabel("limit", limit.rawValue)],
                sending[limit]
            )
        }
        page.addCounter(
            "nagare_send_probes_total",
            help: "Probe clusters sent to find out whether a viewer's network carries more.",
            labels: labels,
            sending.probes
        )
        page.addCounter(
            "nagare_send_padding_bytes_total",
            help: "Bytes of padding and of copies in probe clusters.",
            labels: labels,
            sending.paddingBytes
        )
    }

    private static let sendingHistograms: [(SendingCounters.Measure, name: String, help: String)] = [
        (.target, "nagare_send_target_bytes_per_second", "the rate that all its media together may take."),
        (.deliveredShare, "nagare_send_delivered_ratio", "the rate that arrives, as a share of that rate."),
        (.demandShare, "nagare_send_demand_ratio", "that rate as a share of what its layers take, at most 1."),
        (.queueDelay, "nagare_send_queue_delay_seconds", "the standing queue of its network path."),
        (.pacerDelay, "nagare_send_pacer_delay_seconds", "the time that its packets wait to leave the node."),
        (.lossRatio, "nagare_send_loss_ratio", "the share of its packets that are lost."),
        (.retransmissionShare, "nagare_send_retransmission_ratio", "the share of its bytes that are retransmissions."),
    ]

    /// What viewers report of the media that they are sent.
    func addReports(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let downlink = forwarder.downlink
        for (measure, name, help) in Self.reportHistograms {
            for kind in MediaKind.allCases {
                page.addHistogram(
                    name,
                    help: help,
                    labels: labels + [MetricLabel("kind", kind.rawValue)],
                    Histogram(
                        bounds: measure.bounds,
                        counts: downlink.counts(of: measure, kind),
                        sum: downlink.sum(of: measure, kind)
                    )
                )
            }
        }
    }

    private static let reportHistograms: [(DownlinkCounters.Measure, name: String, help: String)] = [
        (
            .lossRatio, "nagare_downlink_loss_ratio",
            "For each receiver report on a track, at most one a second: the share of packets lost on the way to the viewer."
        ),
        (
            .roundTrip, "nagare_downlink_round_trip_seconds",
            "For each viewer that reports, at most once a second and kind: the round trip."
        ),
        (
            .jitter, "nagare_downlink_jitter_seconds",
            "For each receiver report on a track, at most one a second: the interarrival jitter."
        ),
    ]

    /// The phases of the set-up, of all loops together.
    func addSetup(to page: inout MetricsPage) {
        let setup = forwarder.setup
        for (phase, name) in [(SetupCounters.Phase.ice, "ice"), (.dtls, "dtls"), (.firstFrame, "first_frame")] {
            page.addHistogram(
                Self.setupName,
                help: Self.setupHelp,
                labels: [MetricLabel("phase", name)],
                Histogram(bounds: SetupCounters.bounds, counts: setup.counts(of: phase), sum: setup.sum(of: phase))
            )
        }
    }

    package static let setupName = "nagare_setup_phase_seconds"
    package static let setupHelp = """
        Time of each phase of a participant's set-up: from the request to the node's description, to ICE, to DTLS, and to \
        the first video frame sent.
        """
}
