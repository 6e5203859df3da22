import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import Room

/// What becomes of a request for a WebSocket.
enum WebSocketAnswer {
    case granted
    /// There are no WebSockets at its path: it is answered as any other request.
    case unknown
    /// It is answered with this, and its connection ends.
    case refused(HTTPFailure)
}

/// What takes WebSockets at the public listener.
protocol WebSocketEndpoint: Sendable {
    /// Whether a request that asks for a WebSocket gets one.
    ///
    /// Asked once at most for each connection, about a complete opening handshake. Called on the channel's event loop;
    /// it must not block.
    func answer(to head: HTTPRequestHead, on channel: any Channel) -> WebSocketAnswer

    /// Speaks on a WebSocket until its end. What it sends goes out by `channel.writeAndFlush`.
    func serve(
        _ input: NIOAsyncChannelInboundStream<WebSocketInput>,
        on channel: any Channel,
        logger: Logger
    ) async
}

/// An HTTP/1.1 connection whose first request may turn it into a WebSocket.
struct UpgradableHTTPChannel: HTTPChannelHandler {
    /// What a connection became.
    enum Negotiated: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case webSocket(NIOAsyncChannel<WebSocketInput, WebSocketOutput>)
    }
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let negotiated: EventLoopFuture<Negotiated>
    }

    /// What bounds the cost of connections to others.
    struct Costs: Sendable {
        let statistics: SignalingStatistics
        let outbound: OutboundBudget
        let clients: ClientAddresses
        let shares: ConnectionShares
    }
    /// The connection's network has more of them than its share.
    struct ShareExceeded: Error {}

    let responder: HTTPChannelHandler.Responder
    let limits: HTTPLimits
    let webSocketLimits: WebSocketLimits
    let costs: Costs
    let endpoint: any WebSocketEndpoint

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let idleTimeout = limits.idleTimeout
        let isProxy = costs.clients.isProxy(channel)
        if !isProxy, !costs.shares.take(for: costs.clients.network(of: channel), until: channel.closeFuture) {
            // An initializer that fails would end the listener; this closes the one connection.
            return channel.eventLoop.makeSucceededFuture(
                Value(channel: channel, negotiated: channel.eventLoop.makeFailedFuture(ShareExceeded()))
            )
        }
        return channel.eventLoop.makeCompletedFuture {
            if isProxy, costs.clients.proxies.header == .proxyProtocol {
                try channel.pipeline.syncOperations.addHandler(proxyHandler(channel), position: .first)
            }
            let upgrader = NIOTypedWebSocketServerUpgrader<Negotiated>(
                maxFrameSize: webSocketLimits.messageBytesMax,
                enableAutomaticErrorHandling: false,
                // Whoever is refused does not come here: see ``UpgradeFilter``.
                shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(HTTPHeaders()) },
                upgradePipelineHandler: { channel, _ in
                    channel.eventLoop.makeCompletedFuture { .webSocket(try webSocket(on: channel)) }
                }
            )
            var configuration = NIOUpgradableHTTPServerPipelineConfiguration<Negotiated>(
                upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
                    upgraders: [upgrader],
                    notUpgradingCompletionHandler: { channel in
                        channel.eventLoop.makeCompletedFuture { .http(try http(on: channel, logger)) }
                    }
                )
            )
            // The asynchronous channel asks for one request after the other, and header fields are valid by their type.
            configuration.enablePipelining = false
            configuration.enableResponseHeaderValidation = false
            configuration.enableErrorHandling = false
            configuration.decoderConfiguration.maxHeaderFieldSize = HTTPLimits.headerFieldBytesMax
            configuration.decoderConfiguration.maxHeaderListSize = HTTPLimits.headerBytesMax
            configuration.decoderConfiguration.maxHeaderFieldCount = HTTPLimits.headerFieldsMax
            let pipeline = channel.pipeline.syncOperations
            let negotiated = try pipeline.configureUpgradableHTTPServerPipeline(configuration: configuration)
            let upgradeHandler = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Negotiated>.self)
            try pipeline.addHandler(UpgradeFilter(endpoint: endpoint), position: .before(upgradeHandler))
            try pipeline.addHandler(FirstRequestHandler(timeout: TimeAmount(idleTimeout)))
            return Value(channel: channel, negotiated: negotiated)
        }
    }

    /// In front of everything, TLS included.
    private func proxyHandler(_ channel: any Channel) -> ProxyProtocolHandler {
        let costs = costs
        return ProxyProtocolHandler(statistics: costs.statistics) { client in
            // A proxy that names nobody speaks for itself, as with health checks.
            guard let client else { return true }
            costs.clients.name(client, for: channel)
            return costs.shares.take(for: ClientNetwork(client), until: channel.closeFuture)
        }
    }

    private func http(
        on channel: any Channel,
        _ logger: Logger
    ) throws -> NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart> {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.handler(type: FirstRequestHandler.self).leave()
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: limits.idleTimeout, logger: logger))
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel,
            configuration: .init(isOutboundHalfClosureEnabled: true)
        )
    }

    private func webSocket(on channel: any Channel) throws -> NIOAsyncChannel<WebSocketInput, WebSocketOutput> {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.handler(type: FirstRequestHandler.self).leave()
        try pipeline.addHandler(
            WebSocketHandler(
                limits: webSocketLimits,
                network: costs.clients.network(of: channel),
                statistics: costs.statistics,
                outbound: costs.outbound
            )
        )
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel,
            configuration: .init(backPressureStrategy: Self.webSocketBackPressure)
        )
    }

    /// When the socket is read: not while two messages wait for their turn. Each may be as long as a message can be.
    private static let webSocketBackPressure = NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark(
        lowWatermark: 1,
        highWatermark: 2
    )

    func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.negotiated.get() {
            case .http(let channel): await handleHTTP(asyncChannel: channel, logger: logger)
            case .webSocket(let channel):
                try await withTaskCancellationHandler {
                    try await channel.executeThenClose { input, _ in
                        await endpoint.serve(input, on: channel.channel, logger: logger)
                    }
                } onCancel: {
                    channel.channel.close(promise: nil)
                }
            }
        } catch {
            logger.trace("connection failed", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }
}

/// Guards a connection until its first request is there: that does not take for ever, what is not HTTP is answered
/// with 400, and a stopping server waits for nobody who has not asked anything.
private final class FirstRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let timeout: TimeAmount
    private var deadline: Scheduled<Void>?
    private var hasLeft = false

    init(timeout: TimeAmount) { self.timeout = timeout }

    func handlerAdded(context: ChannelHandlerContext) {
        let bound = context.loopBound
        deadline = context.eventLoop.scheduleTask(in: timeout) { bound.value.close(promise: nil) }
    }
    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }
    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    /// The connection is another's from now on.
    func leave() {
        deadline?.cancel()
        hasLeft = true
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !hasLeft, error is HTTPParserError else {
            // Other failures, of TLS or of the socket, close the connection by themselves.
            if hasLeft { context.fireErrorCaught(error) }
            return
        }
        let head = HTTPResponseHead(
            version: .http1_1,
            status: .badRequest,
            headers: ["Connection": "close", "Content-Length": "0"]
        )
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        let bound = context.loopBound
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if !hasLeft, event is ChannelShouldQuiesceEvent {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
