import Base
import ChannelTypes
import EventLoop
import MediaTypes
import Metrics
import Operators
import SRTP
import Testing
import Webhooks
import Wire

@testable import Forwarding
@testable import Media
@testable import Web
@testable import nagare

/// The metrics' names, which dashboards and alerts depend on.
@Suite struct NodeSnapshotTests {
    private static func snapshot() -> NodeSnapshot {
        var snapshot = NodeSnapshot(srtpBackend: .openssl)
        snapshot.process = ProcessMetrics.current()
        for _ in 0..<2 {
            snapshot.loops.append(
                MediaMetrics(
                    loop: LoopCounters(),
                    forwarder: ForwarderCounters(),
                    gauges: ForwarderGauges(),
                    iterationTime: .shortTimes,
                    forwardingLatency: .shortTimes,
                    queuedDatagrams: 3,
                    batchOverflows: 0,
                    tcp: TCPMetrics(),
                    relay: TransferCounters(),
                    mediaLinks: MediaLinkMetrics()
                )
            )
        }
        return snapshot
    }

    @Test func `the totals of the admin API are those of all loops, with other nodes only in a cluster`() {
        var snapshot = Self.snapshot()
        for index in snapshot.loops.indices {
            snapshot.loops[index].forwarder.data.packetsReceived = 2
            snapshot.loops[index].forwarder.data.bytesSent = 50
            snapshot.loops[index].mediaLinks.counters.sent.bytes = 9
        }
        let totals = snapshot.mediaTotals
        #expect(totals.data == AdminAPI.Traffic(packetsReceived: 4, bytesSent: 100))
        #expect(totals.otherNodes == nil)
        #expect(NodeSnapshot.complete.mediaTotals.otherNodes != nil)
    }

    /// Each family's name and kind.
    private static func families() -> [(name: String, kind: String)] {
        snapshot().page.text.matches(of: /# TYPE (\w+) (\w+)/).map { (String($0.1), String($0.2)) }
    }

    @Test func `names follow Prometheus' conventions`() {
        let families = Self.families()
        #expect(families.count > 40)
        for (name, kind) in families {
            // Those are an exporter's names, which are not ours to choose.
            if name.hasPrefix("sora_") { continue }
            #expect(name.hasPrefix("nagare_") || name.hasPrefix("process_"), "\(name)")
            #expect((kind == "counter") == name.hasSuffix("_total"), "\(name)")
            let units = ["_seconds", "_datagrams", "_ratio", "_bytes_per_second"]
            if kind == "histogram" { #expect(units.contains { name.hasSuffix($0) }, "\(name)") }
        }
    }

    @Test func `every drop reason and every end has a series for each loop`() {
        let text = Self.snapshot().page.text
        for loop in 0..<2 {
            for reason in DropReason.allCases {
                #expect(
                    text.contains("\nnagare_packets_dropped_total{loop=\"\(loop)\",reason=\"\(reason.label)\"} 0\n")
                )
            }
            for reason in PeerCloseReason.allCases {
                #expect(
                    text.contains("\nnagare_peers_closed_total{loop=\"\(loop)\",reason=\"\(reason.rawValue)\"} 0\n")
                )
            }
            for reason in TCPEndReason.allCases {
                #expect(
                    text.contains("\nnagare_tcp_ended_total{loop=\"\(loop)\",reason=\"\(reason.rawValue)\"} 0\n")
                )
            }
            for (name, reason) in [
                ("refused", "node_limit"), ("refused", "address_limit"), ("refused", "unauthenticated_limit"),
                ("refused", "handshake_rate"), ("refused", "address_handshake_rate"),
                ("packets_dropped", "awaits_key_frame"), ("packets_dropped", "no_connection"),
            ] {
                #expect(text.contains("\nnagare_tcp_\(name)_total{loop=\"\(loop)\",reason=\"\(reason)\"} 0\n"))
            }
            #expect(text.contains("\nnagare_send_queue_datagrams{loop=\"\(loop)\"} 3\n"))
        }
    }

    @Test func `histograms of sizes have the recorded values`() {
        var snapshot = Self.snapshot()
        for size in [1, 1, 16, 64] { snapshot.loops[0].loop.segmentsPerSend.record(size) }
        let text = snapshot.page.text
        let name = "nagare_send_message_datagrams"
        for (bound, count) in [("1", 2), ("8", 2), ("16", 3), ("64", 4), ("+Inf", 4)] {
            #expect(text.contains("\n\(name)_bucket{loop=\"0\",le=\"\(bound)\"} \(count)\n"))
        }
        #expect(text.contains("\n\(name)_sum{loop=\"0\"} 82\n"))
    }

    @Test func `what viewers are sent is counted by state and limit, with the shares of their rates`() {
        var snapshot = Self.snapshot()
        var statistics = SendingStatistics(
            state: .steady,
            limit: .delay,
            target: 800_000,
            demand: 2_500_000,
            delivered: 720_000,
            queueDelay: .milliseconds(15),
            pacerDelay: .milliseconds(2),
            lossRatio: 0.02,
            retransmissionShare: 0.004
        )
        snapshot.loops[0].forwarder.noteSending(statistics, probes: 2, paddingBytes: 9_000)
        snapshot.loops[0].forwarder.noteSending(statistics, probes: 0, paddingBytes: 0)
        // Nothing is known of a peer without estimation.
        statistics = SendingStatistics(lossRatio: .nan)
        snapshot.loops[0].forwarder.noteSending(statistics, probes: 0, paddingBytes: 0)
        let text = snapshot.page.text
        for line in [
            "state_seconds_total{loop=\"0\",state=\"steady\"} 2",
            "state_seconds_total{loop=\"0\",state=\"unlimited\"} 1",
            "limit_seconds_total{limit=\"delay\",loop=\"0\"} 2", "limit_seconds_total{limit=\"demand\",loop=\"0\"} 1",
            "limit_seconds_total{limit=\"loss\",loop=\"0\"} 0", "probes_total{loop=\"0\"} 2",
            "padding_bytes_total{loop=\"0\"} 9000",
            "target_bytes_per_second_bucket{loop=\"0\",le=\"62500\"} 0",
            "target_bytes_per_second_bucket{loop=\"0\",le=\"125000\"} 2",
            "target_bytes_per_second_sum{loop=\"0\"} 200000", "delivered_ratio_bucket{loop=\"0\",le=\"0.9\"} 2",
            "demand_ratio_bucket{loop=\"0\",le=\"0.3\"} 0", "demand_ratio_bucket{loop=\"0\",le=\"0.4\"} 2",
            "queue_delay_seconds_bucket{loop=\"0\",le=\"0.01\"} 1",
            "queue_delay_seconds_bucket{loop=\"0\",le=\"0.02\"} 3",
            "pacer_delay_seconds_bucket{loop=\"0\",le=\"0.005\"} 3", "loss_ratio_bucket{loop=\"0\",le=\"0.02\"} 2",
            "loss_ratio_count{loop=\"0\"} 2", "retransmission_ratio_bucket{loop=\"0\",le=\"0.005\"} 3",
            "retransmission_ratio_bucket{loop=\"0\",le=\"0\"} 1",
        ] {
            #expect(text.contains("\nnagare_send_\(line)\n"), "\(line)")
        }
    }

    @Test func `connections, clients and webhooks have the metric names of Sora's exporter`() {
        var snapshot = Self.snapshot()
        snapshot.signaling.counts.connectionsCreated = 5
        snapshot.signaling.counts.connectionsDestroyed = 2
        snapshot.signaling.counts.successfulClients = [.python: 4]
        snapshot.signaling.counts.signalingErrors = ["INVALID-JSON": 7]
        snapshot.signaling.allowed = 3
        snapshot.signaling.subscriptions = 2
        snapshot.signaling.waiting = ["subscription": 6]
        var subscription = WebhookCounters.Counts()
        (subscription.successful, subscription.failed, subscription.drops[.full]) = (8, 1, 4)
        snapshot.signaling.webhooks["subscription"] = subscription
        let text = snapshot.page.text
        for line in [
            "sora_up 1", "sora_connections_total{state=\"created\"} 5", "sora_ongoing_connections 3",
            "sora_client_type_total{client=\"sora_python_sdk\",state=\"successful\"} 4",
            "sora_client_type_total{client=\"unknown\",state=\"failed\"} 0",
            "sora_connection_error_total{reason=\"INVALID-JSON\"} 7", "sora_auth_webhook_total{state=\"allowed\"} 3",
            "sora_event_webhook_total{state=\"ignored\"} 0", "nagare_webhook_waiting{webhook=\"event\"} 0",
            "nagare_event_subscriptions 2", "nagare_subscription_events_total{state=\"delivered\"} 8",
            "nagare_subscription_events_total{state=\"failed\"} 1",
            "nagare_subscription_events_total{state=\"dropped\"} 4",
            "nagare_webhook_waiting{webhook=\"subscription\"} 6",
            "nagare_webhook_dropped_total{reason=\"full\",webhook=\"subscription\"} 4",
            "sora_session_total{state=\"created\"} 0", "sora_srtp_sent_packets_total 0",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test func `the metrics name the SRTP backend`() {
        #expect(Self.snapshot().page.text.contains("\nnagare_srtp_backend_info{backend=\"openssl\"} 1\n"))
    }

    @Test func `drop reasons are labelled in lower case`() {
        for reason in DropReason.allCases {
            #expect(reason.label.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F }, "\(reason.label)")
        }
        #expect(Set(DropReason.allCases.map(\.label)).count == DropReason.allCases.count)
    }

    @Test func `the phases of the set-up are of all loops, and reports of viewers by kind`() {
        var snapshot = Self.snapshot()
        snapshot.loops[0].forwarder.setup.note(.ice, .milliseconds(30))
        snapshot.loops[1].forwarder.setup.note(.ice, .milliseconds(300))
        snapshot.loops[1].forwarder.setup.note(.firstFrame, .milliseconds(-1))
        snapshot.signaling.counts.answerTimes.observe(nanoseconds: 15_000_000)
        snapshot.loops[1].forwarder.downlink.note(.lossRatio, .audio, 0.03)
        snapshot.loops[1].forwarder.downlink.note(.jitter, .video, .nan)
        let text = snapshot.page.text
        for line in [
            "setup_phase_seconds_bucket{phase=\"ice\",le=\"0.05\"} 1", "setup_phase_seconds_count{phase=\"ice\"} 2",
            "setup_phase_seconds_count{phase=\"dtls\"} 0", "setup_phase_seconds_sum{phase=\"first_frame\"} 0",
            "setup_phase_seconds_bucket{phase=\"answer\",le=\"0.02\"} 1",
            "downlink_loss_ratio_bucket{kind=\"audio\",loop=\"1\",le=\"0.02\"} 0",
            "downlink_loss_ratio_bucket{kind=\"audio\",loop=\"1\",le=\"0.05\"} 1",
            "downlink_loss_ratio_count{kind=\"video\",loop=\"1\"} 0",
            "downlink_jitter_seconds_count{kind=\"video\",loop=\"1\"} 0",
        ] {
            #expect(text.contains("\nnagare_\(line)\n"), "\(line)")
        }
    }

    @Test func `channels and the certificate have series only when there are such`() throws {
        var snapshot = Self.snapshot()
        #expect(!snapshot.page.text.contains("nagare_channel_") && !snapshot.page.text.contains("nagare_certificate_"))
        snapshot.certificateExpiresAt = ["http": 2_000_000_000, "admin": 1_900_000_000]
        var activity = ChannelActivity(
            channel: try #require(ChannelName("a\"b")),
            createdAt: 1_500_000_000,
            counts: ChannelCounts(sendrecv: 2, recvonly: 5)
        )
        activity.poorDownlinks = 1
        snapshot.channels = [activity]
        let text = snapshot.page.text
        for line in [
            "certificate_expiry_timestamp_seconds{listener=\"http\"} 2000000000",
            "certificate_expiry_timestamp_seconds{listener=\"admin\"} 1900000000",
            "channel_start_time_seconds{channel=\"a\\\"b\"} 1.5",
            "channel_members{channel=\"a\\\"b\",role=\"recvonly\"} 5",
            "channel_members_poor{channel=\"a\\\"b\",direction=\"down\"} 1",
        ] {
            #expect(text.contains("\nnagare_\(line)\n"), "\(line)")
        }
        #expect(!text.contains("nagare_channel_bytes_per_second"), "its media was not measured")
        snapshot.channels[0].media = ChannelActivity.Media()
        #expect(
            snapshot.page.text.contains("nagare_channel_bytes_per_second{channel=\"a\\\"b\",direction=\"sent\"} 0\n")
        )
    }
}
