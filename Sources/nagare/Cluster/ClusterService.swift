import Admission
import ChannelTypes
import Cluster
import Logging
import MediaTypes
import Room
import ServiceLifecycle
import ToolCommands

/// A node's part in its cluster, from the start of the listeners to the end of the rooms.
struct ClusterService: Service {
    let cluster: ClusterNode
    let directory: ChannelDirectory
    /// What the other nodes are told.
    let state: @Sendable () async -> NodeState
    /// Called about once a second.
    let onTick: @Sendable () async -> Void
    /// A run of a node is gone.
    let onLeft: @Sendable (NodeIncarnation) -> Void
    let relay: CallObserver
    let answer: ClusterNode.RequestHandler

    /// Joins the cluster that the settings name; `nil` for a node on its own.
    static func join(
        _ settings: ClusterSettings?,
        security: ClusterSecurity?,
        logger: Logger
    ) async throws(CommandError) -> ClusterNode? {
        guard let settings, let security else { return nil }
        let incidents = StoreIncidents()
        let store: RedisStore
        do throws(RedisEndpointError) {
            store = try RedisStore(
                settings.store,
                cluster: settings.name,
                signer: security.records,
                certificateAuthority: settings.storeAuthority,
                incidents: incidents,
                logger: logger
            )
        } catch {
            throw .system("\(error) Check --cluster-store-ca.")
        }
        do throws(RecordTooLong) {
            return try await ClusterNode(
                settings.configuration(build: BuildInformation.version),
                store: store,
                security: security.links,
                incidents: incidents,
                logger: logger
            )
        } catch {
            throw .usage("--region, --zone, --public-url and --cluster-announce are too long together: shorten them.")
        }
    }

    func run() async throws {
        do {
            try await cluster.start(directory, measure: measure, onLeft: onLeft, relay: relay, answer: answer)
        } catch {
            throw CommandError.system(
                "The links of the cluster cannot listen at --cluster-link \(cluster.configuration.linkListener): \(error). Choose another port, or an "
                    + "address of this machine."
            )
        }
        try? await gracefulShutdown()
        await cluster.stop()
    }

    private var measure: @Sendable () async -> NodeMeasurements {
        { [cluster, directory, state, onTick] in
            // It waits for other nodes.
            Task { await onTick() }
            await cluster.setState(await state())
            let counts = await directory.counts
            return NodeMeasurements(
                load: directory.load,
                members: counts.publishers + counts.viewers,
                rooms: counts.channels
            )
        }
    }
}
