import Base
import ChannelTypes
import Cluster
import EventLoop
import Glibc
import Logging
import Media
import MediaTypes
import NodeLog
import Room
import Signaling
import ToolCommands
import Web

/// A node before it starts: its settings. It goes through phases, each of which opens what the next one needs: settings, media
/// loops, control services, ``ServingNode``. What was opened is closed in reverse order, after a failed start too.
struct Node {
    let configuration: NodeConfiguration
    let logger: Logger
    private let threshold: Replaceable<Logger.Level>
    private let settings: LoadedSettings
    private let source: SettingSource

    /// Sets up the process's logging, so there can be one node a process.
    /// - Parameter source: where a reload reads the settings again.
    init(_ settings: LoadedSettings, rereading source: SettingSource) {
        configuration = settings.configuration
        self.settings = settings
        self.source = source
        let threshold = Replaceable(configuration.logLevel)
        self.threshold = threshold
        let format = configuration.logFormat
        LoggingSystem.bootstrap { label in
            // Hummingbird's log lines repeat ours.
            let floor: Logger.Level = label == ServingNode.httpLabel ? .notice : .trace
            return NodeLogHandler(label: label, threshold: threshold, floor: floor, format: format)
        }
        logger = Logger(label: "nagare")
    }

    /// Starts the node, runs it until a signal, and shuts it down.
    /// - Throws: when the node cannot start, such as for a port that is taken. Nothing is left running then.
    func run() async throws(CommandError) {
        var opened = OpenedParts()
        do throws(CommandError) {
            try await run(&opened)
        } catch {
            await opened.close()
            throw error
        }
        await opened.close()
        logger.info("stopped")
    }

    private func run(_ opened: inout OpenedParts) async throws(CommandError) {
        let signals = await Signals(configuration, logger: logger)
        try Preflight.check(configuration)
        let certificates = try NodeCertificates(configuration)
        let access = try NodeAccess(configuration, logger: logger)
        let security = try configuration.cluster?.security()
        FileDescriptorLimit.raise()
        let cluster = try await ClusterService.join(configuration.cluster, security: security, logger: logger)

        // The grace period and the second signal hold until everything is closed.
        let target = SignalTarget()
        let watch = Task { await signals.watch(target) }
        opened.add { watch.cancel() }

        let incarnation = cluster?.media ?? Self.randomIncarnation()
        let loops = try await startLoops(certificates.turn, of: incarnation)
        opened.add { await loops.shutdown() }
        for warning in configuration.warnings { logger.warning("\(warning)") }
        logCandidates(loops)

        let records = cluster.map { ClusterRecords(records: $0.records, logger: logger) }
        let relays = configuration.turnSettings() == nil ? nil : MediaPlaneTURNServers(loops.loops)
        let services = try controlServices(access, certificates, cluster, records, relays)
        opened.add { await services.shutdown() }
        let controlLoops = try await startControlLoops()
        opened.add { await controlLoops.stop() }
        let log = logNotices(to: logger)
        let directory = ChannelDirectory(
            planes: loops.loops,
            node: incarnation,
            limits: configuration.limits.rooms,
            controlLoops: controlLoops.executors,
            cluster: cluster?.channels,
            observers: services.observers(telling: records)
        ) { notice in
            log(notice)
            services.take(notice)
        }
        if let records {
            await records.deliver(to: directory, services.subscriptions)
            let telling = Task { await records.run() }
            opened.add { telling.cancel() }
        }
        if let cluster { await loops.setRemoteOrigins(cluster) }
        let reload = try Reload(
            settings,
            source: source,
            parts: Reload.Parts(
                services: services,
                directory: directory,
                cluster: cluster,
                tlsAcceptor: loops.tlsAcceptor,
                threshold: threshold
            ),
            logger: logger
        )
        let serving = ServingNode(
            configuration: configuration,
            loops: loops,
            directory: directory,
            cluster: cluster,
            services: services,
            reload: reload,
            logger: logger
        )
        try await serving.run(target)
    }

    /// Distinguishes this start of a node on its own from every other one. In a cluster the store assigns it.
    private static func randomIncarnation() -> NodeIncarnation {
        var generator = SystemRandomNumberGenerator()
        return NodeIncarnation(using: &generator)
    }

    private func controlServices(
        _ access: NodeAccess,
        _ certificates: NodeCertificates,
        _ cluster: ClusterNode?,
        _ records: ClusterRecords?,
        _ relays: MediaPlaneTURNServers?
    ) throws(CommandError) -> ControlServices {
        do throws(ServerStartError) {
            return try ControlServices(
                configuration,
                access: access,
                certificates: certificates,
                cluster: cluster,
                records: records,
                relays: relays,
                logger: logger
            )
        } catch {
            throw .system(error.message)
        }
    }

    private func startControlLoops() async throws(CommandError) -> ControlLoops {
        do throws(EventLoopError) {
            return try await ControlLoops.start(count: configuration.controlLoops)
        } catch {
            throw .system(error.message)
        }
    }
}

/// What a node has opened.
struct OpenedParts {
    private var closers: [@Sendable () async -> Void] = []

    /// - Parameter close: called once, after what is opened later is closed.
    mutating func add(_ close: @escaping @Sendable () async -> Void) { closers.append(close) }

    mutating func close() async {
        while let close = closers.popLast() { await close() }
    }
}
