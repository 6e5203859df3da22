import Base
import ChannelTypes
import MediaTypes
package import Metrics
import Room

/// The cluster in a scrape.
package struct ClusterMetrics: Sendable {
    let isStoreUp: Bool
    let storeIncidents: [StoreIncident: UInt64]
    let isFenced: Bool
    let own: ClusterView.Member
    let neighbours: [ClusterNode.Neighbour]
    let links: LinkCounters
    let rooms: ClusterChannelsCounters
    let channels: Int

    package func add(to page: inout MetricsPage) {
        page.addGauge(
            "nagare_cluster_store_up",
            help: "Whether the cluster's store answered the last heartbeat.",
            isStoreUp ? 1 : 0
        )
        for incident in StoreIncident.allCases {
            page.addCounter(
                "nagare_cluster_store_incidents_total",
                help: "Times that the cluster's store failed or had lost data.",
                labels: [MetricLabel("case", incident.rawValue)],
                storeIncidents[incident] ?? 0
            )
        }
        page.addGauge(
            "nagare_cluster_replaced",
            help: "Whether a later start with this node's name is in the cluster; this one takes no new channels then.",
            isFenced ? 1 : 0
        )
        page.addGauge(
            "nagare_cluster_incarnation",
            help: "The number of this start of the node in the cluster.",
            Int(own.instance.incarnation.rawValue)
        )
        page.addGauge("nagare_cluster_channels", help: "Channels of this node in the cluster.", channels)
        for state in NodeState.allCases {
            page.addGauge(
                "nagare_cluster_nodes",
                help: "The other nodes by what the store tells of them, without those that are absent.",
                labels: [MetricLabel("state", state.rawValue)],
                neighbours.filter { $0.member.record.state == state && !$0.member.isAbsent && !$0.isIgnored }.count
            )
        }
        page.addGauge(
            "nagare_cluster_nodes_absent",
            help: "The other nodes without a heartbeat for six seconds.",
            neighbours.filter(\.member.isAbsent).count
        )
        page.addGauge(
            "nagare_cluster_nodes_ignored",
            help: "Nodes that are ignored because the cluster's secret did not sign their records in the store.",
            neighbours.filter(\.isIgnored).count
        )
        page.addGauge(
            "nagare_cluster_nodes_unsigned",
            help: "The other nodes whose records in the store have no signature and are accepted nevertheless.",
            neighbours.filter { $0.member.signature == .missing && !$0.isIgnored }.count
        )
        for state in LinkState.allCases {
            page.addGauge(
                "nagare_cluster_links",
                help: "Control links to other nodes.",
                labels: [MetricLabel("state", state.rawValue)],
                neighbours.filter { $0.link?.state == state }.count
            )
        }
        for neighbour in neighbours {
            guard let roundTrip = neighbour.link?.roundTrip else { continue }
            page.addGauge(
                "nagare_cluster_link_rtt_seconds",
                help: "The round trip of the control link, at its last ping.",
                labels: [MetricLabel("node", neighbour.member.instance.node.rawValue)],
                roundTrip.seconds
            )
        }
        let answers =
            [("answered", links.answered)]
            + NodeRequestError.allCases.map { ($0.rawValue, links.unanswered[$0] ?? 0) }
        for (result, count) in answers {
            page.addCounter(
                "nagare_cluster_requests_total",
                help: "Questions to other nodes by what became of them.",
                labels: [MetricLabel("result", result)],
                count
            )
        }
        let counts: [(String, String, UInt64)] = [
            ("nagare_cluster_link_frames_sent_total", "Frames sent over control links.", links.framesSent),
            ("nagare_cluster_link_sent_bytes_total", "Bytes sent over control links.", links.bytesSent),
            ("nagare_cluster_link_frames_received_total", "Frames received over control links.", links.framesReceived),
            (
                "nagare_cluster_link_strangers_total",
                "Connections to the link listener or from it that ended before both nodes knew each other.",
                links.strangers
            ),
            ("nagare_cluster_link_malformed_total", "Links closed for bytes that are no message.", links.malformed),
            (
                "nagare_cluster_link_crowded_total",
                "Connections to the link listener that were closed because too many had not said hello.",
                links.crowded
            ),
            (
                "nagare_cluster_link_incompatible_total",
                "Links to nodes of another cluster or without a common version of the protocol.",
                links.incompatible
            ),
            ("nagare_cluster_link_barred_total", "Nodes that were refused for 30 s after such bytes.", links.barred),
            (
                "nagare_cluster_link_unknown_total",
                "Frames and questions of later versions, which were ignored.",
                links.unknown
            ),
            ("nagare_cluster_link_overflows_total", "Links closed because too much waited.", links.overflows),
            ("nagare_cluster_links_up_total", "Links that came up.", links.linksUp),
            ("nagare_cluster_links_down_total", "Links that were lost or closed.", links.linksDown),
            (
                "nagare_cluster_nodes_given_up_total", "Nodes that were given up with all their members.",
                links.nodesDead
            ),
            ("nagare_cluster_messages_sent_total", "Messages about channels that were sent.", rooms.sent),
            ("nagare_cluster_messages_unsent_total", "Messages about channels without a link.", rooms.unsent),
            ("nagare_cluster_messages_received_total", "Messages about channels that were received.", rooms.received),
            (
                "nagare_cluster_messages_malformed_total", "Messages that were not understood, or not in all parts.",
                rooms.malformed
            ),
            (
                "nagare_cluster_messages_overflowed_total",
                "Messages that a channel did not take in time; the channel is told again.",
                rooms.overflows
            ),
            (
                "nagare_cluster_channels_unshared_total",
                "Channels that were not shared with other nodes because there were too many.",
                rooms.refused
            ),
            (
                "nagare_cluster_commands_refused_total",
                "Commands of other nodes about participants of this one that were refused.", rooms.commandsRefused
            ),
            (
                "nagare_cluster_command_refusals_total",
                "Commands of this node that other nodes refused for their participants; its log says which.",
                rooms.refusals
            ),
        ]
        for (name, help, value) in counts { page.addCounter(name, help: help, value) }
    }
}

extension ClusterMetrics {
    package init(_ cluster: ClusterNode) {
        self.init(
            isStoreUp: cluster.isStoreUp,
            storeIncidents: Dictionary(
                uniqueKeysWithValues: StoreIncident.allCases.map { ($0, cluster.storeIncidents.count(of: $0)) }
            ),
            isFenced: cluster.isFenced,
            own: cluster.own,
            neighbours: cluster.neighbours,
            links: cluster.linkCounters,
            rooms: cluster.roomCounters,
            channels: cluster.channelCount
        )
    }
}
