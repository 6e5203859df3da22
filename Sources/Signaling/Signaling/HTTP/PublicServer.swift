package import Access
package import Ayame
package import Base
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
package import Room
import ServiceLifecycle
package import Sora
package import Web
package import Webhooks

/// The public listener: WHIP, WHEP, Sora signaling, the 1:1 relay, the channel API and the built-in page.
///
/// At a graceful shutdown it stops accepting connections, refuses new participants on open connections, ends event streams,
/// and returns when the pending requests are answered.
package struct PublicServer: Service {
    private let application: Application<PublicResponder>
    private let configuration: SignalingConfiguration
    private let directory: ChannelDirectory
    private let responder: PublicResponder

    /// - Parameters:
    ///   - cluster: The other nodes; `nil` outside of a cluster.
    ///   - mediaLoops: The number of the node's media loops. In a cluster it decides on how many clients may join at once.
    ///   - now: The clock for how many clients may join at once; by default the one of the listeners.
    ///   - relayCalls: The registrations of the 1:1 relay.
    ///   - webhookClient: Posts to the operator's server for the 1:1 relay; `nil` without one.
    ///   - clientStatistics: Stores the statistics that clients report.
    ///   - signalingStatistics: Counts refused connections.
    ///   - traces: Makes a trace of each join; `nil` for none.
    ///   - queue: Handles the messages of WebSockets.
    ///   - logger: Logs for the HTTP server.
    ///   - signalingLogger: Logs refused connections; `logger` if `nil`.
    ///   - onRunning: Called with the bound port when the listener accepts connections.
    package init(
        configuration: SignalingConfiguration,
        directory: ChannelDirectory,
        authorizer: any Authorizer,
        cluster: (any OtherNodes)? = nil,
        mediaLoops: Int = 1,
        now: (@Sendable () -> Instant)? = nil,
        relayCalls: AyameCalls = AyameCalls(),
        webhookClient: WebhookClient? = nil,
        clientStatistics: ClientStatistics = ClientStatistics(),
        signalingStatistics: SignalingStatistics = SignalingStatistics(),
        traces: JoinTracer? = nil,
        queue: SignalingQueue = SignalingQueue(),
        logger: Logger,
        signalingLogger: Logger? = nil,
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.directory = directory
        let limits = configuration.limits
        // That of the HTTP server has no lines below level notice.
        let ownLogger = signalingLogger ?? logger
        let now = now ?? { DeadlineTimer.now }
        let limiter = AddressLimiter(limits, now: now, statistics: signalingStatistics, logger: ownLogger)
        let refusals = RefusalLog(ownLogger, now: now)
        let clients = ClientAddresses(
            configuration.proxies,
            limits,
            statistics: signalingStatistics,
            logger: ownLogger
        )
        let outbound = WaitingBudget(
            bytesMax: limits.waitingBytesMax,
            refusal: .slowReader,
            statistics: signalingStatistics
        )
        let inbound = WaitingBudget(
            bytesMax: limits.waitingBytesMax,
            refusal: .slowSender,
            statistics: signalingStatistics
        )
        let joins =
            cluster == nil
            ? nil : JoinGate(loops: mediaLoops, statistics: signalingStatistics, now: now)
        responder = PublicResponder(
            directory: directory,
            authorizer: authorizer,
            configuration: configuration,
            statistics: signalingStatistics,
            outbound: outbound,
            cluster: cluster,
            joins: joins,
            traces: traces,
            refusals: refusals,
            limiter: limiter,
            clients: clients,
            logger: ownLogger
        )
        let work = queue.work
        let ayame = AyameContext(
            configuration: configuration.ayame,
            admission: AyameAdmission(
                directory: directory,
                authorizer: authorizer,
                configuration: configuration.ayame,
                turn: configuration.sora.turn,
                transport: webhookClient,
                logger: ownLogger
            ),
            directory: directory,
            calls: relayCalls,
            statistics: signalingStatistics,
            logger: ownLogger,
            refusals: refusals,
            limiter: limiter,
            clients: clients,
            work: work
        )
        let webSockets = PublicWebSockets(
            sora: SoraContext(
                directory: directory,
                authorizer: authorizer,
                configuration: configuration.sora,
                clientStatistics: clientStatistics,
                signalingStatistics: signalingStatistics,
                logger: ownLogger,
                cluster: cluster,
                joins: joins,
                traces: traces,
                refusals: refusals,
                limiter: limiter,
                clients: clients,
                work: work
            ),
            ayame: ayame,
            limiter: limiter,
            clients: clients
        )
        let costs = UpgradableHTTPChannel.Costs(
            statistics: signalingStatistics,
            outbound: outbound,
            inbound: inbound,
            clients: clients,
            refusals: refusals,
            limiter: limiter
        )
        application = Application(
            responder: responder,
            server: Self.server(configuration, webSockets, costs),
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.host, port: configuration.port),
                serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(configuration.limits.connectionsMax)
            ),
            onServerRunning: { await onRunning(listenerStarted($0) ?? configuration.port) },
            logger: logger
        )
    }

    /// Answers a request that another node of the cluster passed on. It is not passed on again.
    ///
    /// It needs no listener of its own: the link between the nodes brings the request and takes the response back.
    /// - Parameter question: a ``ForwardedRequest``.
    /// - Returns: a ``ForwardedResponse``; `nil` for other bytes.
    package func answer(forwarded question: [UInt8]) async -> [UInt8]? {
        guard let request = ForwardedRequest(encoded: question) else { return nil }
        return await respond(to: request).encoded
    }

    func respond(to request: ForwardedRequest) async -> ForwardedResponse { await responder.respond(to: request) }

    /// The application, for tests without a bound port.
    var testable: Application<PublicResponder> { application }

    package func run() async throws {
        let directory = directory
        try await withGracefulShutdownHandler {
            do {
                try await application.run()
            } catch let error as IOError {
                throw ServerStartError(binding: configuration.host, configuration.port, error)
            }
        } onGracefulShutdown: {
            Task { await directory.startDraining() }
        }
    }

    private static func server(
        _ configuration: SignalingConfiguration,
        _ webSockets: PublicWebSockets,
        _ costs: UpgradableHTTPChannel.Costs
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let http = UpgradableHTTPChannel(
                responder: responder,
                limits: configuration.limits,
                webSocketLimits: configuration.webSocketLimits,
                costs: costs,
                webSockets: webSockets,
                isSecure: configuration.certificate != nil
            )
            guard let certificate = configuration.certificate else { return http }
            return HTTPSChannel(
                base: http,
                certificate: certificate,
                sharedTURN: configuration.sharedTURN,
                admits: costs.admitsHandshake
            )
        }
    }
}
