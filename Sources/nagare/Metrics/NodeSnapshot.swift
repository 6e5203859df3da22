import Access
import Admission
import Base
import ChannelTypes
import Cluster
import Forwarding
import History
import Media
import Metrics
import Operators
import Room
import SRTP
import Telemetry
import Web

/// The values of one scrape.
struct NodeSnapshot: Sendable {
    let srtpBackend: SRTPBackend
    var uptimeSeconds = 0.0
    var isReady = false
    var drain = DrainReport(state: .starting, clients: 0)
    /// Indexed by loop.
    var loops: [MediaMetrics] = []
    /// `nil` without TURN over TLS.
    var tlsAcceptor: TLSAcceptorMetrics?
    var rooms = RoomCounts()
    /// Of single channels, if asked for.
    var channels: [ChannelActivity] = []
    var admissions = AdmissionCounts()
    var droppedMessages: [MessageDropReason: UInt64] = [:]
    var limitedChanges: [ChangeLimit: UInt64] = [:]
    var signaling = SignalingSnapshot()
    /// `nil` without a history of connections.
    var history: ConnectionHistory.Counts?
    /// `nil` without a collector of traces.
    var traces: Tracer.Counts?
    var process: ProcessMetrics?
    /// When the certificates of the listeners with HTTPS expire, in seconds since 1970, by the label of the listener.
    var certificateExpiresAt: [String: Int] = [:]
    /// Of the keys of tokens at a URL; `nil` without one.
    var keySet: RemoteKeySet.Counts?
    /// `nil` for a node on its own.
    var cluster: ClusterMetrics?

    init(srtpBackend: SRTPBackend) { self.srtpBackend = srtpBackend }

    /// The scrape in the Prometheus text format.
    var page: MetricsPage {
        var page = MetricsPage()
        page.addGauge(
            "nagare_build_info",
            help: "The running program; always 1.",
            labels: [
                MetricLabel("version", BuildInformation.version), MetricLabel("mode", BuildInformation.mode),
                MetricLabel("compiler", BuildInformation.compiler),
            ],
            1
        )
        page.addGauge(
            "nagare_srtp_backend_info",
            help: "The SRTP backend; always 1.",
            labels: [MetricLabel("backend", srtpBackend.rawValue)],
            1
        )
        for (listener, time) in certificateExpiresAt.sorted(by: { $0.key < $1.key }) {
            page.addGauge(
                "nagare_certificate_expiry_timestamp_seconds",
                help: "When the certificate of a listener with HTTPS expires, since 1970.",
                labels: [MetricLabel("listener", listener)],
                time
            )
        }
        page.addGauge("nagare_uptime_seconds", help: "Time since the node was ready.", uptimeSeconds)
        page.addGauge("nagare_ready", help: "Whether the node accepts new clients.", isReady ? 1 : 0)
        for state in NodeState.allCases {
            page.addGauge(
                "nagare_state",
                help: "Whether the node is in this state.",
                labels: [MetricLabel("state", state.rawValue)],
                drain.state == state ? 1 : 0
            )
        }
        page.addGauge(
            "nagare_drain_remaining_clients",
            help: "Clients that have not left a draining node; 0 without a drain.",
            drain.phase == nil ? 0 : drain.clients
        )
        page.addGauge(
            "nagare_drain_remaining_seconds",
            help: "Time until the deadline of the drain; 0 without one.",
            drain.remaining.seconds
        )
        page.addGauge("nagare_rooms", help: "Channels with participants.", rooms.channels)
        page.addGauge("nagare_publishers", help: "Participants that publish.", rooms.publishers)
        page.addGauge("nagare_viewers", help: "Participants that watch.", rooms.viewers)
        page.addGauge("nagare_event_streams", help: "Event streams of channels.", rooms.listeners)
        for refusal in JoinRefusal.allCases {
            page.addCounter(
                "nagare_joins_refused_total",
                help: "Joins refused because of a limit.",
                labels: [MetricLabel("reason", refusal.rawValue)],
                admissions.refused[refusal] ?? 0
            )
        }
        for reason in AbandonedSetup.allCases {
            page.addCounter(
                "nagare_setups_abandoned_total",
                help: "Participants removed before they connected.",
                labels: [MetricLabel("reason", reason.rawValue)],
                admissions.abandoned[reason] ?? 0
            )
        }
        for reason in MessageDropReason.allCases {
            page.addCounter(
                "nagare_messages_dropped_total",
                help: "Messages between participants that were dropped.",
                labels: [MetricLabel("reason", reason.rawValue)],
                droppedMessages[reason] ?? 0
            )
        }
        for limit in ChangeLimit.allCases {
            page.addCounter(
                "nagare_member_changes_limited_total",
                help: "Changes of members' mutes, roles and metadata beyond their budgets.",
                labels: [MetricLabel("result", limit.rawValue)],
                limitedChanges[limit] ?? 0
            )
        }
        for (index, loop) in loops.enumerated() {
            loop.add(to: &page, labels: [MetricLabel("loop", "\(index)")])
        }
        if let tlsAcceptor {
            tlsAcceptor.tcp.add(to: &page, labels: [MetricLabel("loop", "tls")])
            tlsAcceptor.turn.add(to: &page, labels: [MetricLabel("loop", "tls")])
        }
        if let history {
            page.addCounter(
                "nagare_history_stored_total",
                help: "Ended connections whose history was stored.",
                history.stored
            )
            page.addCounter(
                "nagare_history_lost_total",
                help: "Ended connections whose history could not be stored.",
                history.lost
            )
        }
        keySet?.add(to: &page)
        traces?.add(to: &page)
        for channel in channels { channel.add(to: &page) }
        signaling.add(to: &page, media: mediaTotals, version: BuildInformation.version)
        page.addHistogram(
            MediaMetrics.setupName,
            help: MediaMetrics.setupHelp,
            labels: [MetricLabel("phase", "answer")],
            signaling.counts.answerTimes
        )
        cluster?.add(to: &page)
        process?.add(to: &page)
        return page
    }

    /// The totals of all loops.
    var mediaTotals: AdminAPI.MediaTotals {
        var totals = AdminAPI.MediaTotals()
        var otherNodes = AdminAPI.Traffic()
        for loop in loops {
            let (data, links) = (loop.forwarder.data, loop.mediaLinks.counters)
            totals.data.add(
                AdminAPI.Traffic(
                    packetsReceived: data.packetsReceived,
                    bytesReceived: data.bytesReceived,
                    packetsSent: data.packetsSent,
                    bytesSent: data.bytesSent
                )
            )
            otherNodes.add(
                AdminAPI.Traffic(
                    packetsReceived: links.received.packets,
                    bytesReceived: links.received.bytes,
                    packetsSent: links.sent.packets,
                    bytesSent: links.sent.bytes
                )
            )
            totals.packetsReceived &+= loop.forwarder.rtpReceived
            totals.bytesReceived &+= loop.forwarder.bytesReceived
            totals.packetsSent &+= loop.forwarder.rtpSent
            totals.bytesSent &+= loop.forwarder.rtpBytesSent
        }
        if cluster != nil { totals.otherNodes = otherNodes }
        return totals
    }
}
