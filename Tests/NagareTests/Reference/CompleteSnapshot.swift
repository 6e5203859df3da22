import Access
import Base
import ChannelTypes
import EventLoop
import Forwarding
import History
import MediaTypes
import Metrics
import Operators
import Room
import SRTP
import Signaling
import Telemetry

@testable import Cluster
@testable import Media
@testable import Web
@testable import nagare

extension NodeSnapshot {
    /// A scrape that has every metric: that of a node in a cluster, with media over TCP and a TURN server.
    static var complete: NodeSnapshot {
        var snapshot = NodeSnapshot(srtpBackend: .openssl)
        snapshot.process = ProcessMetrics.current()
        snapshot.certificateExpiresAt = ["http": 0, "admin": 0]
        snapshot.keySet = RemoteKeySet.Counts()
        snapshot.keySet?.age = .zero
        var channel = ChannelActivity(channel: ChannelName("lobby")!, createdAt: 0, counts: ChannelCounts())
        var media = ChannelActivity.Media()
        media.lossMax = 0
        media.roundTripMax = 0
        channel.media = media
        snapshot.channels = [channel]
        snapshot.history = ConnectionHistory.Counts(live: 0, stored: 0, lost: 0)
        snapshot.traces = Tracer.Counts()
        snapshot.signaling.counts.signalingErrors = ["INVALID-JSON": 1]
        snapshot.loops = [
            MediaMetrics(
                loop: LoopCounters(),
                forwarder: ForwarderCounters(),
                gauges: ForwarderGauges(),
                iterationTime: .shortTimes,
                forwardingLatency: .shortTimes,
                queuedDatagrams: 0,
                batchOverflows: 0,
                turn: TURNMetrics(),
                tcp: TCPMetrics(),
                relay: TransferCounters(),
                mediaLinks: MediaLinkMetrics()
            )
        ]
        snapshot.tlsAcceptor = TLSAcceptorMetrics()
        let member = ClusterView.Member(
            instance: NodeInstance(node: NodeID(rawValue: "node-b")!, incarnation: .standalone),
            record: NodeRecord(state: .ready)
        )
        snapshot.cluster = ClusterMetrics(
            isStoreUp: true,
            storeIncidents: [:],
            isFenced: false,
            own: member,
            neighbours: [
                ClusterNode.Neighbour(
                    member: member,
                    media: .standalone,
                    link: LinkTable.Status(state: .up, roundTrip: .milliseconds(1))
                )
            ],
            links: LinkCounters(),
            rooms: ClusterChannelsCounters(),
            channels: 0
        )
        return snapshot
    }
}
