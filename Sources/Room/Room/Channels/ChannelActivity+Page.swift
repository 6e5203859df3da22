import ChannelTypes
package import Metrics

/// One channel in a scrape.
extension ChannelActivity {
    package func add(to page: inout MetricsPage) {
        let label = [MetricLabel("channel", channel.value)]
        page.addGauge(
            "nagare_channel_start_time_seconds",
            help: "When the channel's session began, since 1970.",
            labels: label,
            Double(createdAt) / 1e9
        )
        for (role, members) in [
            ("sendrecv", counts.sendrecv), ("sendonly", counts.sendonly), ("recvonly", counts.recvonly),
        ] {
            page.addGauge(
                "nagare_channel_members",
                help: "Connected members of the channel on this node.",
                labels: label + [MetricLabel("role", role)],
                members
            )
        }
        for (direction, members) in [("up", poorUplinks), ("down", poorDownlinks)] {
            page.addGauge(
                "nagare_channel_members_poor",
                help: "Members of the channel whose network carries the media poorly or not at all.",
                labels: label + [MetricLabel("direction", direction)],
                members
            )
        }
        guard let media else { return }
        for (direction, rate) in [("received", media.receivedBytesPerSecond), ("sent", media.sentBytesPerSecond)] {
            page.addGauge(
                "nagare_channel_bytes_per_second",
                help: "RTP of the channel's members over the last second.",
                labels: label + [MetricLabel("direction", direction)],
                rate
            )
        }
        if let roundTrip = media.roundTripMax {
            page.addGauge(
                "nagare_channel_round_trip_seconds_max",
                help: "The longest round trip of a member of the channel.",
                labels: label,
                roundTrip
            )
        }
        if let loss = media.lossMax {
            page.addGauge(
                "nagare_channel_loss_ratio_max",
                help: "The highest share of lost packets that a member of the channel reported on a track.",
                labels: label,
                loss
            )
        }
    }
}
