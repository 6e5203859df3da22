import Forwarding
import MediaTypes
import Metrics

extension MediaMetrics {
    /// Data channels.
    func addData(to page: inout MetricsPage, _ labels: [MetricLabel]) {
        let data = forwarder.data
        let counts: [(String, String, UInt64)] = [
            ("nagare_data_associations_total", "SCTP associations that were established.", data.associations),
            ("nagare_data_packets_received_total", "SCTP packets received.", data.packetsReceived),
            ("nagare_data_packets_sent_total", "SCTP packets sent.", data.packetsSent),
            ("nagare_data_retransmissions_total", "Chunks of data that were sent again.", data.retransmissions),
            ("nagare_data_messages_received_total", "Messages of data channels received.", data.messagesReceived),
            ("nagare_data_received_bytes_total", "Bytes in messages of data channels received.", data.bytesReceived),
            (
                "nagare_data_messages_sent_total", "Messages queued for data channels, once for each receiver.",
                data.messagesSent
            ),
            ("nagare_data_sent_bytes_total", "Bytes in messages queued for data channels.", data.bytesSent),
            (
                "nagare_data_messages_dropped_total",
                "Messages dropped because their receivers are slower.",
                data.messagesDropped
            ),
            (
                "nagare_data_channels_overflowed_total",
                "Channels of signaling closed because their clients did not keep up.", data.channelsOverflowed
            ),
            ("nagare_data_channels_refused_total", "Channels of clients that were refused.", data.channelsRefused),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, labels: labels, value) }
        for reason in DataAssociationEnd.allCases {
            page.addCounter(
                "nagare_data_associations_ended_total",
                help: "SCTP associations that the node ended.",
                labels: labels + [MetricLabel("reason", reason.rawValue)],
                data[reason]
            )
        }
    }
}
