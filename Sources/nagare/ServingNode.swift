import Access
import Ayame
import Base
import ChannelTypes
import Cluster
import Forwarding
import Foundation
import History
import Logging
import Media
import MediaTypes
import Metrics
import Operators
import Room
import SRTP
import ServiceLifecycle
import Signaling
import Sora
import ToolCommands
import Web
import Webhooks
import Wire

/// A node that serves clients and operators, until the end of its shutdown.
struct ServingNode: Sendable {
    let configuration: NodeConfiguration
    let loops: MediaLoops
    let directory: ChannelDirectory
    /// `nil` for a node on its own.
    let cluster: ClusterNode?
    let services: ControlServices
    let reload: Reload
    let logger: Logger
    /// Of the two listeners.
    let status = NodeStatus(listeners: 2)
    let drain: NodeDrain
    private let queue = SignalingQueue()
    let watch: LoopWatch

    static let httpLabel = "nagare.http"

    init(
        configuration: NodeConfiguration,
        loops: MediaLoops,
        directory: ChannelDirectory,
        cluster: ClusterNode?,
        services: ControlServices,
        reload: Reload,
        logger: Logger
    ) {
        self.configuration = configuration
        self.loops = loops
        self.directory = directory
        self.cluster = cluster
        self.services = services
        self.reload = reload
        self.logger = logger
        drain = NodeDrain(
            directory: directory,
            relayCalls: services.relayCalls,
            logger: logger,
            hasStarted: { [status] in status.hasStarted }
        )
        watch = LoopWatch(
            media: loops,
            directory: directory,
            signaling: queue,
            serviceManager: ServiceManager(socket: ProcessInfo.processInfo.environment["NOTIFY_SOCKET"]),
            logger: logger
        )
    }

    /// Serves until the target of signals begins the shutdown, and that is over.
    func run(_ target: SignalTarget) async throws(CommandError) {
        let group = serviceGroup()
        await target.set(
            SignalTarget.Actions(
                drain: drain,
                shutDown: {
                    await drain.stop()
                    await group.triggerGracefulShutdown()
                },
                abandon: {
                    await directory.endAll()
                    await services.history?.flush()
                },
                reload: { _ = try? await reload.perform() }
            )
        )
        do {
            try await group.run()
        } catch let error as ServerStartError {
            throw .system(error.message)
        } catch is CancellationError {
            logger.warning("requests were cut short by the shutdown")
        } catch {
            throw .system("The node ended: \(error).")
        }
    }

    /// Notes that a listener accepts, and says once that all do.
    /// - Parameter pagePort: that of the public listener.
    private func listening(pagePort: Int? = nil) {
        guard let port = status.listening(pagePort: pagePort) else { return }
        let url = configuration.pageURL(port: UInt16(clamping: port))
        logger.info(
            "ready",
            metadata: [
                "page": "\(url)", "loops": "\(loops.loops.count)", "srtp": "\(configuration.srtpBackend.rawValue)",
            ]
        )
        FileHandle.standardOutput.write(Data("Nagare \(BuildInformation.version) is ready: open \(url)\n".utf8))
        watch.ready()
    }

    // MARK: Services

    /// Services shut down in reverse order: the public listener first, the admin listener with its probes last.
    private func serviceGroup() -> ServiceGroup {
        let quiet = Logger(label: Self.httpLabel)
        let api = services.api(
            directory,
            drain: drain,
            cluster: cluster,
            reload: { () async throws(ReloadFailure) in try await reload.perform() },
            media: { await snapshot().mediaTotals }
        )
        let server = publicServer(quiet)
        var group: [any Service] = [adminServer(api, quiet), watch, MemoryRelease()]
        if let cluster { group.append(clusterService(cluster, api, server)) }
        group +=
            [
                services.subscriptions, StatisticsWebhookService(services.statisticsWebhook, directory),
                WebhooksService(services.webhooks, directory), services.reports,
            ] as [any Service]
        if let traces = services.traces { group.append(traces) }
        if let history = services.history {
            group.append(
                HistorySampler(
                    history: history,
                    directory: directory,
                    clients: services.clientStatistics,
                    webhooks: cluster == nil ? services.webhooks : nil
                )
            )
        }
        group += [RoomsService(directory), LoadSampler(directory: directory, drain: drain), server] as [any Service]
        var groupConfiguration = ServiceGroupConfiguration(
            services: group.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
            logger: quiet
        )
        // Leaves time to notify the peers within the grace period, however slow a request is.
        groupConfiguration.maximumGracefulShutdownDuration = .milliseconds(configuration.graceSeconds * 700)
        return ServiceGroup(configuration: groupConfiguration)
    }

    private func adminServer(_ api: AdminAPI, _ quiet: Logger) -> AdminServer {
        AdminServer(
            host: configuration.admin.ip.description,
            port: Int(configuration.admin.port),
            certificate: services.certificates.admin,
            api: api,
            token: services.access.current.adminToken?.secret,
            readToken: services.access.current.adminReadToken?.secret,
            hostNames: configuration.adminHostNames,
            origins: configuration.adminOrigins,
            logger: quiet,
            metrics: { await snapshot().page.text },
            whyNotReady: { await whyNotReady() },
            stalledLoops: { watch.stalledLoops },
            onRunning: { port in
                logger.info("admin", metadata: ["port": "\(port)"])
                listening()
            }
        )
    }

    private func publicServer(_ quiet: Logger) -> PublicServer {
        var sora = configuration.sora.configuration
        sora.embeddedTURN = configuration.turn
        return PublicServer(
            configuration: SignalingConfiguration(
                host: configuration.http.ip.description,
                port: Int(configuration.http.port),
                certificate: services.certificates.https,
                sharedTURN: sharedTURN,
                limits: configuration.limits.http,
                webSocketLimits: configuration.limits.webSocket,
                proxies: configuration.proxies,
                sora: sora,
                ayame: configuration.webhooks.ayame
            ),
            directory: directory,
            authorizer: services.authorizer,
            cluster: cluster,
            mediaLoops: loops.loops.count,
            relayCalls: services.relayCalls,
            webhookClient: services.client,
            clientStatistics: services.clientStatistics,
            signalingStatistics: services.statistics,
            traces: services.traces?.joins,
            queue: queue,
            logger: quiet,
            signalingLogger: logger,
            onRunning: { listening(pagePort: $0) }
        )
    }

    /// TURN over TLS on the port of the HTTPS listener; `nil` without.
    private var sharedTURN: SharedTURN? {
        guard configuration.sharesHTTPSPort, let name = configuration.turnTLS?.name, let acceptor = loops.tlsAcceptor
        else { return nil }
        return SharedTURN(name: name) { acceptor.take($0, received: $1) }
    }

    private func clusterService(_ cluster: ClusterNode, _ api: AdminAPI, _ server: PublicServer) -> ClusterService {
        let calls = services.relayCalls
        return ClusterService(
            cluster: cluster,
            directory: directory,
            state: { await drain.state },
            onTick: { await loops.renewRemoteTracks() },
            onLeft: { run in Task { await loops.remoteNodeLeft(run) } },
            relay: CallObserver(
                received: { message, node in
                    calls.received(message, from: node) { directory.blockRefusal(of: $0, in: $1, as: .sendrecv) }
                },
                lost: { calls.lost($0) }
            ),
            answer: { request, run in
                switch request.kind {
                case .export: await request.answered(from: run) { await export($0, to: run) }
                case .forward: await server.answer(forwarded: request.body)
                case .connections: await api.answer(connections: request.body)
                case .callRoom: await calls.answer(request.body)
                case .hostingNodes, .canReach, .records, .unknown: nil
                }
            }
        )
    }

    /// Lets a track be sent to another node.
    /// - Returns: `nil` when it is not sent.
    private func export(_ request: RemoteExport, to node: NodeIncarnation) async -> RemoteExportAnswer? {
        do {
            return try await loops.export(request)
        } catch ForwarderError.unknownTrack {
            // Its publisher has left meanwhile.
            return nil
        } catch {
            logger.warning(
                "a track is not sent to another node",
                metadata: ["track": "\(request.track)", "node": "\(node)", "reason": "\(error)"]
            )
            return nil
        }
    }

    /// Why a load balancer should send no new clients, for `/readyz`; `nil` when it should. It should while existing sessions
    /// accept new members, even if no new session may begin, because those sessions are on this node only.
    func whyNotReady() async -> String? {
        let late = watch.lateLoops
        guard late.isEmpty else {
            return "takes no new clients: they would wait for more than 5 s at \(late.joined(separator: " "))"
        }
        switch await drain.state {
        case .starting: return "takes no new clients: it starts, and not all listeners are up"
        case .draining: return "takes no new clients: it drains"
        case .stopping: return "takes no new clients: it stops"
        case .ready: break
        }
        if directory.isReplaced {
            return "takes no new channels: a later start has its --node-name in the cluster; stop one of the two"
        }
        return await directory.mode == .blockNewConnections
            ? "takes no new clients: its mode refuses new connections" : nil
    }
}
