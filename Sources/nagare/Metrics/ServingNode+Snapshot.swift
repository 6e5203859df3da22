import Cluster
import History
import Media
import MediaTypes
import Metrics
import Operators
import Room
import SRTP
import Signaling
import Telemetry
import Web

extension ServingNode {
    /// What a scrape tells.
    func snapshot() async -> NodeSnapshot {
        var snapshot = NodeSnapshot(srtpBackend: configuration.srtpBackend)
        snapshot.uptimeSeconds = status.uptimeSeconds
        snapshot.isReady = await whyNotReady() == nil
        snapshot.drain = await drain.report
        for loop in loops.loops { snapshot.loops.append(await loop.metrics()) }
        snapshot.tlsAcceptor = await loops.tlsAcceptor?.metrics()
        snapshot.rooms = await directory.counts
        snapshot.admissions = await directory.admissions
        snapshot.droppedMessages = await directory.droppedMessages
        snapshot.limitedChanges = await directory.limitedChanges
        if configuration.metricsChannels > 0 {
            snapshot.channels = await directory.busiestChannels(configuration.metricsChannels)
        }
        snapshot.signaling = await services.snapshot()
        snapshot.history = services.history?.counts
        snapshot.traces = services.traces?.counts
        snapshot.process = ProcessMetrics.current()
        snapshot.certificateExpiresAt["http"] = services.certificates.https?.facts.expiresAt
        snapshot.certificateExpiresAt["admin"] = services.certificates.admin?.facts.expiresAt
        snapshot.keySet = await services.keySetCounts
        snapshot.cluster = cluster.map(ClusterMetrics.init)
        return snapshot
    }
}
