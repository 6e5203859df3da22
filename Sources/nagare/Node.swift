import Access
import Cluster
import DTLS
import EventLoop
import Foundation
import Glibc
import History
import Logging
import Media
import MediaTypes
import Metrics
import Room
import SRTP
import ServiceLifecycle
import Signaling
import TLS
import Wire

/// A node from start to shutdown: media loops, rooms and listeners.
struct Node {
    let configuration: NodeConfiguration
    /// Distinguishes this start of the node from every other one. In a cluster the store assigns it.
    private var incarnation: NodeIncarnation
    /// `nil` for a node on its own.
    private var cluster: ClusterNode?
    private let logger: Logger
    private let threshold: LogThreshold
    private let settings: LoadedSettings
    private let source: SettingSource

    /// Sets up the process's logging, so there can be one node a process.
    /// - Parameter source: where a reload reads the settings again.
    init(_ settings: LoadedSettings, rereading source: SettingSource) {
        configuration = settings.configuration
        self.settings = settings
        self.source = source
        var generator = SystemRandomNumberGenerator()
        incarnation = NodeIncarnation(using: &generator)
        let threshold = LogThreshold(configuration.logLevel)
        self.threshold = threshold
        let format = configuration.logFormat
        LoggingSystem.bootstrap { label in
            // Hummingbird's log lines repeat ours.
            let floor: Logger.Level = label == Self.httpLabel ? .notice : .trace
            return NodeLogHandler(label: label, threshold: threshold, floor: floor, format: format)
        }
        logger = Logger(label: "nagare")
    }

    private static let httpLabel = "nagare.http"

    /// Starts the node, runs it until a signal, and shuts it down.
    /// - Throws: when the node cannot start, such as for a port that is taken. Nothing is left running then.
    func run() async throws(StartupError) {
        let signals = await Signals(configuration, logger: logger)
        try Preflight.check(configuration)
        let certificates = try NodeCertificates(configuration)
        let access = try NodeAccess(configuration, logger: logger)
        let security = try configuration.cluster?.security()
        FileDescriptorLimit.raise()
        var node = self
        node.cluster = try await ClusterService.join(configuration.cluster, security: security, logger: logger)
        if let cluster = node.cluster { node.incarnation = cluster.media }
        try await node.run(signals, certificates, access)
    }

    private func run(
        _ signals: Signals,
        _ certificates: NodeCertificates,
        _ access: NodeAccess
    ) async throws(StartupError) {
        let loops = try await startLoops(certificates.turn)
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let group = ShutdownTarget()
        let reload: Reload
        do throws(StartupError) {
            reload = try Reload(
                settings,
                source: source,
                certificates: certificates,
                tlsAcceptor: loops.tlsAcceptor,
                threshold: threshold,
                logger: logger
            )
        } catch {
            await loops.shutdown()
            throw error
        }
        let watch = Task {
            await signals.watch(group, reload: { _ = try? await reload.perform() })
        }
        // The grace period and the second signal also cover the loops' shutdown.
        defer { watch.cancel() }
        do throws(StartupError) {
            try await serve(loops, group, access, certificates, reload)
        } catch {
            await loops.shutdown()
            throw error
        }
        await loops.shutdown()
        logger.info("stopped")
    }

    // MARK: Media

    private func startLoops(
        _ turnCertificate: TLSCertificate?
    ) async throws(StartupError) -> MediaLoops {
        let certificate: DTLSCertificate
        do {
            certificate = try DTLSCertificate.generate()
        } catch {
            throw .system("No certificate for media could be made: \(error).")
        }
        let tcp = TCPAdmission(configuration.limits.tcp)
        let turn = configuration.turnSettings()
        let acceptor = try await startTLSAcceptor(turnCertificate, tcp)
        var loops: [MediaLoop] = []
        for index in 0..<configuration.loops {
            do throws(EventLoopError) {
                loops.append(
                    try await MediaLoop.start(
                        MediaLoopConfiguration(
                            name: "media-\(index)",
                            certificate: certificate,
                            location: MediaLocation(node: incarnation, loop: LoopIndex(rawValue: UInt16(index))),
                            socketOptions: configuration.socketOptions,
                            srtpBackend: configuration.srtpBackend,
                            sendRate: configuration.sendRate,
                            pausesUnusedLayers: configuration.pausesUnusedLayers,
                            candidates: configuration.candidates(bound:),
                            turn: turn,
                            turnTLS: turnTLS(loop: index, acceptor),
                            tcp: configuration.usesICETCP ? tcp : nil
                        ),
                        listeningOn: configuration.mediaAddresses(loop: index)
                    )
                )
            } catch {
                await acceptor?.shutdown()
                for loop in loops { await loop.shutdown() }
                throw .system(error.sentence)
            }
        }
        let shortfalls = await loops.first?.sockets.first?.shortfalls ?? []
        for shortfall in shortfalls { logger.warning("\(shortfall.sentence)") }
        for loop in loops {
            for failure in await loop.tcpFailures {
                logger.warning(
                    "\(failure.sentence) Until then, clients whose network blocks UDP cannot connect there; --ice-tcp off ends this warning."
                )
            }
        }
        return await MediaLoops(linking: loops, tlsAcceptor: acceptor)
    }

    /// `nil` without TURN over TLS.
    private func startTLSAcceptor(
        _ certificate: TLSCertificate?,
        _ admission: TCPAdmission
    ) async throws(StartupError) -> TLSAcceptor? {
        guard let certificate else { return nil }
        do throws(EventLoopError) {
            return try await TLSAcceptor.start(certificate, admission)
        } catch {
            throw .system(error.sentence)
        }
    }

    private func turnTLS(loop: Int, _ acceptor: TLSAcceptor?) -> TURNTLSSettings? {
        guard let acceptor, let listener = configuration.turnTLS else { return nil }
        return TURNTLSSettings(
            acceptor: acceptor,
            port: configuration.sharesHTTPSPort ? listener.port : configuration.turnTLSPorts[loop],
            isShared: configuration.sharesHTTPSPort,
            name: listener.name
        )
    }

    /// TURN over TLS on the port of the HTTPS listener; `nil` without.
    private func sharedTURN(_ loops: MediaLoops) -> SharedTURN? {
        guard configuration.sharesHTTPSPort, let name = configuration.turnTLS?.name, let acceptor = loops.tlsAcceptor
        else { return nil }
        return SharedTURN(name: name) { acceptor.take($0, received: $1) }
    }

    private func logCandidates(_ loops: MediaLoops) async {
        for loop in loops.loops {
            let transport = await loop.transport()
            let candidates = transport.candidates.map(\.description)
            let tcpCandidates = transport.tcpCandidates.map(\.description)
            logger.info(
                "media",
                metadata: [
                    "loop": "\(loop.location.loop.rawValue)",
                    "candidates": "\(candidates.joined(separator: " "))",
                    "tcp": "\(tcpCandidates.joined(separator: " "))",
                ]
            )
        }
    }

    // MARK: Signaling

    /// Runs the rooms and the listeners until the end of the shutdown.
    private func serve(
        _ loops: MediaLoops,
        _ shutdown: ShutdownTarget,
        _ access: NodeAccess,
        _ certificates: NodeCertificates,
        _ reload: Reload
    ) async throws(StartupError) {
        let operations: ControlServices
        do throws(ServerStartError) {
            operations = try ControlServices(
                configuration,
                access: access,
                certificates: certificates,
                relayCluster: cluster.map(ClusterRelay.init),
                logger: logger
            ) { () async throws(ReloadFailure) in try await reload.perform() }
        } catch {
            throw .system(error.sentence)
        }
        do throws(StartupError) {
            try await serve(loops, shutdown, operations, reload)
        } catch {
            await operations.shutdown()
            throw error
        }
        await operations.shutdown()
    }

    private func serve(
        _ loops: MediaLoops,
        _ shutdown: ShutdownTarget,
        _ operations: ControlServices,
        _ reload: Reload
    ) async throws(StartupError) {
        let controlLoops: ControlLoops
        do throws(EventLoopError) {
            controlLoops = try await ControlLoops.start(count: configuration.controlLoops)
        } catch {
            throw .system(error.sentence)
        }
        do throws(StartupError) {
            try await serve(loops, controlLoops, shutdown, operations, reload)
        } catch {
            await controlLoops.stop()
            throw error
        }
        await controlLoops.stop()
    }

    private func serve(
        _ loops: MediaLoops,
        _ controlLoops: ControlLoops,
        _ shutdown: ShutdownTarget,
        _ operations: ControlServices,
        _ reload: Reload
    ) async throws(StartupError) {
        let log = logNotices(to: logger)
        await logCandidates(loops)
        let rooms = Rooms(
            planes: loops.loops,
            node: incarnation,
            limits: configuration.limits.rooms,
            controlLoops: controlLoops.executors,
            cluster: cluster?.rooms
        ) { notice in
            log(notice)
            operations.take(notice)
        }
        if let cluster { await loops.setRemoteOrigins(ClusterMedia(cluster: cluster)) }
        operations.webhooks.connect(to: rooms)
        await reload.connect(to: Reload.Parts(operations: operations, rooms: rooms, cluster: cluster))
        let status = NodeStatus(listeners: 2)
        let drain = NodeDrain(
            rooms: rooms,
            relayCalls: operations.relayCalls,
            logger: logger,
            hasStarted: { status.hasStarted }
        )
        let queue = SignalingQueue()
        let watch = LoopWatch(
            media: loops,
            rooms: rooms,
            signaling: queue,
            serviceManager: ServiceManager(socket: ProcessInfo.processInfo.environment["NOTIFY_SOCKET"]),
            logger: logger
        )
        let group = serviceGroup(loops, rooms, status, drain, operations, queue, watch)
        await shutdown.set(
            ShutdownTarget.Actions(
                drain: drain,
                shutDown: {
                    drain.stop()
                    await group.triggerGracefulShutdown()
                },
                abandon: {
                    await rooms.endAll()
                    await operations.history?.flush()
                }
            )
        )
        do {
            try await group.run()
        } catch let error as ServerStartError {
            throw .system(error.sentence)
        } catch is CancellationError {
            logger.warning("requests were cut short by the shutdown")
        } catch {
            throw .system("The node ended: \(error).")
        }
    }

    private func serviceGroup(
        _ loops: MediaLoops,
        _ rooms: Rooms,
        _ status: NodeStatus,
        _ drain: NodeDrain,
        _ operations: ControlServices,
        _ queue: SignalingQueue,
        _ watch: LoopWatch
    ) -> ServiceGroup {
        let announce: @Sendable (Int) -> Void = { [configuration, logger] port in
            let url = configuration.pageURL(port: UInt16(clamping: port))
            logger.info(
                "ready",
                metadata: [
                    "page": "\(url)", "loops": "\(loops.loops.count)",
                    "srtp": "\(configuration.srtpBackend.rawValue)",
                ]
            )
            FileHandle.standardOutput.write(Data("Nagare \(BuildInformation.version) is ready: open \(url)\n".utf8))
            watch.ready()
        }
        let quiet = Logger(label: Self.httpLabel)
        let signaling = cluster.flatMap { cluster in
            configuration.cluster.map { ClusterSignaling(cluster: cluster, rooms: rooms, settings: $0) }
        }
        let scrape: @Sendable () async -> NodeSnapshot = {
            await snapshot(loops, rooms, status, drain, operations, watch)
        }
        let api = operations.api(rooms, drain: drain, cluster: signaling) { await scrape().mediaTotals }
        let admin = AdminServer(
            host: configuration.admin.ip.description,
            port: Int(configuration.admin.port),
            certificate: operations.certificates.admin,
            api: api,
            token: operations.access.access.adminToken?.secret,
            readToken: operations.access.access.adminReadToken?.secret,
            hostNames: configuration.adminHostNames,
            origins: configuration.adminOrigins,
            logger: quiet,
            metrics: { await scrape().page.text },
            whyNotReady: { await Self.whyNotReady(drain, rooms, watch) },
            stalledLoops: { watch.stalledLoops },
            onRunning: { port in
                logger.info("admin", metadata: ["port": "\(port)"])
                if let page = status.listening() { announce(page) }
            }
        )
        var sora = configuration.sora.configuration
        sora.embeddedTURN = configuration.turn
        let server = PublicServer(
            configuration: SignalingConfiguration(
                host: configuration.http.ip.description,
                port: Int(configuration.http.port),
                certificate: operations.certificates.https,
                sharedTURN: sharedTURN(loops),
                limits: configuration.limits.http,
                webSocketLimits: configuration.limits.webSocket,
                proxies: configuration.proxies,
                sora: sora,
                ayame: configuration.webhooks.ayame
            ),
            rooms: rooms,
            authorizer: operations.authorizer,
            cluster: signaling,
            mediaLoops: loops.loops.count,
            relayCalls: operations.relayCalls,
            webhookClient: operations.client,
            clientStatistics: operations.clientStatistics,
            signalingStatistics: operations.statistics,
            traces: operations.traces?.joins,
            queue: queue,
            logger: quiet,
            signalingLogger: logger,
            onRunning: { port in
                if let page = status.listening(pagePort: port) { announce(page) }
            }
        )
        // Services shut down in reverse order: the public listener first, the admin listener with its probes last.
        var services: [any Service] = [admin, watch, MemoryRelease()]
        if let signaling {
            ClusterRecords.connect(rooms, operations.subscriptions, to: signaling.cluster.records, logger: logger)
            services.append(
                ClusterService(
                    cluster: signaling.cluster,
                    rooms: rooms,
                    settings: signaling.settings,
                    state: { NodeRecord.State(drain.state) },
                    onTick: { await loops.renewRemoteTracks() },
                    onLeft: { run in Task { await loops.remoteNodeLeft(run) } },
                    relay: RelayObserver(operations.relayCalls),
                    answer: { request, run in
                        switch request.kind {
                        case .export: await ClusterMedia.answer(request.body, from: run, loops, logger: logger)
                        case .forward: await ClusterSignaling.answer(request.body, server)
                        case .connections: await api.answer(connections: request.body)
                        case .callRoom: operations.relayCalls.answer(request.body)
                        case .hostingNodes, .canReach, .records, .unknown: nil
                        }
                    }
                )
            )
        }
        services += [operations.subscriptions, operations.webhooks] as [any Service]
        if let traces = operations.traces { services.append(traces) }
        if let history = operations.history {
            services.append(HistorySampler(history: history, rooms: rooms, clients: operations.clientStatistics))
        }
        services += [RoomsService(rooms), LoadSampler(rooms: rooms, drain: drain), server] as [any Service]
        var groupConfiguration = ServiceGroupConfiguration(
            services: services.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
            logger: quiet
        )
        // Leaves time to notify the peers within the grace period, however slow a request is.
        groupConfiguration.maximumGracefulShutdownDuration = .milliseconds(configuration.graceSeconds * 700)
        return ServiceGroup(configuration: groupConfiguration)
    }

    /// Why a load balancer should send no new clients, for `/readyz`; `nil` when it should. It should while existing sessions accept
    /// new members, even if no new session may begin, because those sessions are on this node only.
    private static func whyNotReady(_ drain: NodeDrain, _ rooms: Rooms, _ watch: LoopWatch) async -> String? {
        let late = watch.lateLoops
        guard late.isEmpty else {
            return "takes no new clients: they would wait for more than 5 s at \(late.joined(separator: " "))"
        }
        switch drain.state {
        case .starting: return "takes no new clients: it starts, and not all listeners are up"
        case .draining: return "takes no new clients: it drains"
        case .stopping: return "takes no new clients: it stops"
        case .ready: break
        }
        if rooms.isReplaced {
            return "takes no new channels: a later start has its --node-name in the cluster; stop one of the two"
        }
        return await rooms.mode == .blockNewConnections ? "takes no new clients: its mode refuses new connections" : nil
    }

    // MARK: Metrics

    private func snapshot(
        _ loops: MediaLoops,
        _ rooms: Rooms,
        _ status: NodeStatus,
        _ drain: NodeDrain,
        _ operations: ControlServices,
        _ watch: LoopWatch
    ) async -> NodeSnapshot {
        var snapshot = NodeSnapshot(srtpBackend: configuration.srtpBackend)
        snapshot.uptimeSeconds = status.uptimeSeconds
        snapshot.isReady = await Self.whyNotReady(drain, rooms, watch) == nil
        snapshot.drain = await drain.report
        for loop in loops.loops { snapshot.loops.append(await loop.metrics()) }
        snapshot.tlsAcceptor = await loops.tlsAcceptor?.metrics()
        snapshot.rooms = await rooms.counts
        snapshot.admissions = await rooms.admissions
        snapshot.droppedMessages = await rooms.droppedMessages
        snapshot.limitedChanges = await rooms.limitedChanges
        if configuration.metricsChannels > 0 {
            snapshot.channels = await rooms.busiestChannels(configuration.metricsChannels)
        }
        snapshot.signaling = operations.snapshot
        snapshot.history = operations.history?.counts
        snapshot.traces = operations.traces?.counts
        snapshot.process = ProcessMetrics.current()
        snapshot.certificateExpiresAt["http"] = operations.certificates.https?.facts.expiresAt
        snapshot.certificateExpiresAt["admin"] = operations.certificates.admin?.facts.expiresAt
        snapshot.keySet = operations.keySetCounts
        snapshot.cluster = cluster.map(ClusterMetrics.init)
        return snapshot
    }
}

/// The limit on open files. Every HTTP connection uses one.
enum FileDescriptorLimit {
    /// Raises the soft limit to the hard one, which needs no privilege.
    static func raise() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(resource, &limit)
    }
}
