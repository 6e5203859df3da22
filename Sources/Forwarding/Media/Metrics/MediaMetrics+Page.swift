import EventLoop
import Forwarding
import MediaTypes
package import Metrics

/// One media loop's part of a scrape.
extension MediaMetrics {
    package func add(to page: inout MetricsPage, labels: [MetricLabel]) {
        addDatagrams(to: &page, labels)
        addSegmentation(to: &page, labels)
        addPackets(to: &page, labels)
        addFeedback(to: &page, labels)
        addPeers(to: &page, labels)
        addSending(to: &page, labels)
        addReports(to: &page, labels)
        addSetup(to: &page)
        addData(to: &page, labels)
        addRelay(to: &page, labels)
        mediaLinks.add(to: &page, labels: labels)
        tcp?.add(to: &page, labels: labels)
        turn?.add(to: &page, labels: labels)
        addTurns(to: &page, labels)
    }

    /// UDP, as the sockets see it.
    private func addDatagrams(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let counts: [(String, String, UInt64)] = [
            ("nagare_datagrams_received_total", "UDP datagrams received.", loop.datagramsReceived),
            ("nagare_datagrams_received_bytes_total", "Bytes in UDP datagrams received.", loop.bytesReceived),
            ("nagare_datagrams_sent_total", "UDP datagrams sent.", loop.datagramsSent),
            ("nagare_datagrams_sent_bytes_total", "Bytes in UDP datagrams sent.", loop.bytesSent),
            ("nagare_receive_calls_total", "Calls of recvmmsg that returned datagrams.", loop.receiveCalls),
            ("nagare_send_calls_total", "Calls of sendmmsg that sent datagrams.", loop.sendCalls),
            (
                "nagare_send_queued_total", "Datagrams queued because the kernel's send buffer was full.",
                loop.sendQueued
            ),
            ("nagare_socket_errors_total", "Errors that the sockets reported.", loop.socketErrors),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
        page.addGauge(
            "nagare_send_queue_datagrams",
            help: "Datagrams in the send queue.",
            labels: labels,
            queuedDatagrams
        )
        let drops: [(String, UInt64)] = [
            ("receive_buffer", loop.kernelReceiveDrops), ("size", loop.receiveSizeDrops),
            ("source_address", loop.receiveSourceDrops),
            ("send_queue", loop.sendQueueDrops &- loop.sendQueueControlDrops &- loop.sendQueueAudioDrops),
            ("send_queue_audio", loop.sendQueueAudioDrops),
            ("send_queue_control", loop.sendQueueControlDrops), ("send_queue_late", loop.sendQueueLateDrops),
            ("send_error", loop.sendErrorDrops), ("send_endpoint", loop.sendEndpointDrops),
            ("batch", UInt64(clamping: batchOverflows)),
        ]
        for (reason, value) in drops {
            page.addCounter(
                "nagare_datagrams_dropped_total",
                help: "UDP datagrams dropped at the sockets.",
                labels: labels + [MetricLabel("reason", reason)],
                value
            )
        }
    }

    /// UDP GSO and GRO: datagrams per message and per system call.
    private func addSegmentation(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let sizes: [(String, String, SizeHistogram)] = [
            (
                "nagare_send_message_datagrams",
                "For each message sent: its datagrams, 1 or as many as the kernel splits it into (GSO).",
                loop.segmentsPerSend
            ),
            (
                "nagare_receive_message_datagrams",
                "For each message received: its datagrams, 1 or as many as the kernel coalesced (GRO).",
                loop.segmentsPerRead
            ),
            (
                "nagare_receive_call_datagrams", "For each call of recvmmsg that returned datagrams: their number.",
                loop.datagramsPerReceiveCall
            ),
        ]
        for (name, help, value) in sizes {
            page.addHistogram(name, help: help, labels: labels, Histogram(value))
        }
        let counts: [(String, String, UInt64)] = [
            ("nagare_send_messages_total", "Messages sent, each of one or more datagrams.", loop.messagesSent),
            (
                "nagare_gso_fallbacks_total",
                "Messages that the kernel refused to split; their datagrams were sent one by one.", loop.gsoFallbacks
            ),
            (
                "nagare_gso_path_pauses_total", "Times that GSO was not used to one address for a while.",
                loop.gsoPathPauses
            ),
            ("nagare_gso_pauses_total", "Times that a socket stopped using GSO for a while.", loop.gsoPauses),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
        page.addGauge(
            "nagare_gso_paused_sockets",
            help: "Sockets that do not use GSO because the kernel refused it.",
            labels: labels,
            Int(clamping: loop.gsoPausedSockets)
        )
    }

    /// RTP and RTCP packets.
    private func addPackets(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let packets: [(String, String, String, UInt64)] = [
            ("nagare_packets_received_total", "Packets received.", "rtp", forwarder.rtpReceived),
            ("nagare_packets_received_total", "Packets received.", "rtcp", forwarder.rtcpReceived),
            ("nagare_packets_sent_total", "Packets sent, without retransmissions.", "rtp", forwarder.rtpSent),
            ("nagare_packets_sent_total", "Packets sent, without retransmissions.", "rtcp", forwarder.rtcpSent),
        ]
        for (name, help, kind, value) in packets {
            page.addCounter(name, help: help, labels: labels + [MetricLabel("protocol", kind)], value)
        }
        page.addCounter(
            "nagare_rtp_sent_bytes_total",
            help: "Bytes in RTP packets sent to viewers, without retransmissions.",
            labels: labels,
            forwarder.rtpBytesSent
        )
        for reason in DropReason.allCases {
            page.addCounter(
                "nagare_packets_dropped_total",
                help: "Datagrams and packets dropped.",
                labels: labels + [MetricLabel("reason", reason.label)],
                forwarder[reason]
            )
        }
        for reason in KeyFrameThrottle.allCases {
            page.addCounter(
                "nagare_key_frame_requests_throttled_total",
                help: "Key frame requests of viewers that were delayed or dropped.",
                labels: labels + [MetricLabel("reason", reason.label)],
                forwarder[reason]
            )
        }
        page.addHistogram(
            "nagare_forwarding_latency_seconds",
            help:
                "Upper bound of the time from receiving a datagram to handing it to the kernel, for each datagram sent.",
            labels: labels,
            forwardingLatency
        )
    }

    /// Loss, retransmission and key frames.
    private func addFeedback(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let counts: [(String, String, UInt64)] = [
            (
                "nagare_publisher_packets_lost_total", "Packets from publishers that were lost.",
                forwarder.packetsLostByPublishers
            ),
            ("nagare_nacks_sent_total", "NACK messages sent to publishers.", forwarder.nacksSent),
            (
                "nagare_nacked_packets_total", "Packets requested in NACK messages to publishers.",
                forwarder.nackedPacketsRequested
            ),
            ("nagare_nacks_received_total", "NACK messages received from viewers.", forwarder.nacksReceived),
            (
                "nagare_retransmissions_received_total", "Retransmitted packets received from publishers.",
                forwarder.retransmissionsReceived
            ),
            ("nagare_retransmissions_sent_total", "Packets retransmitted to viewers.", forwarder.retransmissionsSent),
            (
                "nagare_retransmissions_missed_total",
                "Packets in NACK messages of viewers that were no longer in the history.",
                forwarder.retransmissionsMissed
            ),
            ("nagare_plis_sent_total", "Key frame requests (PLI) sent to publishers.", forwarder.pliSent),
            (
                "nagare_key_frame_requests_received_total", "Key frame requests (PLI, FIR) received from viewers.",
                forwarder.keyFrameRequestsReceived
            ),
            (
                "nagare_layers_shed_total", "Video layers dropped because the publisher exceeded its bit rate.",
                forwarder.layersShed
            ),
            ("nagare_overloads_total", "Times that a media loop became overloaded.", forwarder.overloads),
            (
                "nagare_overload_shed_total", "Video layers dropped because the media loop was overloaded.",
                forwarder.overloadLayersShed
            ),
            ("nagare_key_frames_received_total", "Key frames received.", forwarder.keyFramesReceived),
            (
                "nagare_transport_feedback_sent_total", "Transport-wide feedback messages sent.",
                forwarder.transportFeedbackSent
            ),
            (
                "nagare_transport_feedback_received_total", "Transport-wide feedback messages received.",
                forwarder.transportFeedbackReceived
            ),
            (
                "nagare_congestion_control_feedback_received_total", "RFC 8888 feedback messages received.",
                forwarder.congestionControlFeedbackReceived
            ),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
    }

    private func addPeers(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        page.addCounter("nagare_peers_added_total", help: "Transports created.", labels: labels, forwarder.peersAdded)
        page.addCounter(
            "nagare_ice_connected_total",
            help: "Transports on which ICE connected.",
            labels: labels,
            forwarder.iceConnected
        )
        page.addCounter(
            "nagare_dtls_connected_total",
            help: "Transports whose DTLS handshake completed.",
            labels: labels,
            forwarder.dtlsConnected
        )
        let paths: [(String, String, UInt64)] = [
            ("nagare_path_changes_total", "Changes of a peer's address.", forwarder.pathChanges),
            (
                "nagare_unproved_nominations_total",
                "Nominations of unverified addresses; media stayed on the previous one.",
                forwarder.unprovedNominations
            ),
            (
                "nagare_path_checks_sent_total",
                "Checks sent to verify nominated addresses.",
                forwarder.pathChecksSent
            ),
            (
                "nagare_path_checks_answered_total", "Answers to those checks; each verifies an address.",
                forwarder.pathChecksAnswered
            ),
            (
                "nagare_consent_checks_sent_total",
                "Checks that ask whether a peer still receives what it is sent.",
                forwarder.consentChecksSent
            ),
            (
                "nagare_consent_checks_answered_total",
                "Answers to those checks; after 30 s without one, sending stops.",
                forwarder.consentChecksAnswered
            ),
            (
                "nagare_handshake_datagrams_held_total",
                "Handshake datagrams held back by the limit against amplification.",
                forwarder.handshakeDatagramsHeld
            ),
        ]
        for (name, help, value) in paths { page.addCounter(name, help: help, labels: labels, value) }
        for reason in PeerCloseReason.allCases {
            page.addCounter(
                "nagare_peers_closed_total",
                help: "Transports closed.",
                labels: labels + [MetricLabel("reason", reason.rawValue)],
                forwarder[reason]
            )
        }
        let present: [(String, String, Int)] = [
            ("nagare_peers", "Transports that exist.", gauges.peers),
            ("nagare_peers_connected", "Transports that are connected.", gauges.connectedPeers),
            ("nagare_tracks_received", "Tracks published.", gauges.receivedTracks),
            ("nagare_slots", "Tracks that viewers negotiated.", gauges.slots),
            ("nagare_slots_playing", "Tracks that viewers receive.", gauges.connectedSlots),
            (
                "nagare_tracks_mirrored", "Tracks of other loops that viewers of this loop receive.",
                gauges.mirroredTracks
            ),
            (
                "nagare_loop_overloaded", "1 while a media loop is overloaded or drops video layers.",
                gauges.isOverloaded ? 1 : 0
            ),
            ("nagare_overload_layers", "Video layers that the loop drops because of overload.", gauges.heldLayers),
            ("nagare_history_bytes", "Memory of packets kept for retransmission.", gauges.historyBytes),
            ("nagare_send_state_bytes", "Memory of the send state of viewers' tracks.", gauges.stateBytes),
        ]
        for (name, help, value) in present { page.addGauge(name, help: help, labels: labels, value) }
    }

    /// The relay between loops.
    private func addRelay(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let counts: [(String, String, UInt64)] = [
            ("nagare_relay_records_sent_total", "Packets and messages sent to other loops.", relay.recordsSent),
            ("nagare_relay_sent_bytes_total", "Bytes of packets and messages sent to other loops.", relay.bytesSent),
            (
                "nagare_relay_records_received_total", "Packets and messages received from other loops.",
                relay.recordsReceived
            ),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
        for (kind, value) in [("packet", relay.packetDrops), ("control", relay.controlDrops)] {
            page.addCounter(
                "nagare_relay_dropped_total",
                help: "Packets and messages dropped because the other loop did not keep up.",
                labels: labels + [MetricLabel("kind", kind)],
                value
            )
        }
        let levels: [(String, String, Int)] = [
            ("nagare_relay_waiting_bytes", "Bytes in the rings to other loops.", relay.waitingBytes),
            ("nagare_relay_waiting_bytes_max", "Maximum of the bytes in the ring to one loop.", relay.waitingBytesMax),
            ("nagare_relay_ring_bytes", "Memory of the rings to other loops.", relay.allocatedBytes),
        ]
        for (name, help, value) in levels { page.addGauge(name, help: help, labels: labels, value) }
    }

    private func addTurns(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        page.addCounter("nagare_loop_jobs_total", help: "Actor jobs run.", labels: labels, loop.jobs)
        page.addCounter(
            "nagare_loop_wakeups_total",
            help: "Times that another thread woke the loop.",
            labels: labels,
            loop.wakeUps
        )
        page.addHistogram(
            "nagare_loop_turn_duration_seconds",
            help: "Time of a loop's turn, from its first event to the end of its flush.",
            labels: labels,
            iterationTime
        )
    }
}

extension Histogram {
    /// The sizes as a Prometheus histogram.
    fileprivate init(_ sizes: SizeHistogram) {
        self.init(bounds: SizeHistogram.bounds.map(Double.init), counts: sizes.counts, sum: Double(sizes.sum))
    }
}
