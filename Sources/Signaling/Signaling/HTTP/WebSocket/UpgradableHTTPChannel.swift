import ChannelTypes
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import Room
import Web

/// An HTTP/1.1 connection whose first request may upgrade it to a WebSocket.
struct UpgradableHTTPChannel: HTTPChannelHandler {
    /// The protocol of a connection after its first request.
    enum Negotiated: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case webSocket(NIOAsyncChannel<WebSocketInput, WebSocketOutput>, WebSocketEndpoint, WebSocketWriter)
    }
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let negotiated: EventLoopFuture<Negotiated>
    }

    /// The shared accounting of all connections.
    struct Costs: Sendable {
        let statistics: SignalingStatistics
        let outbound: WaitingBudget
        let inbound: WaitingBudget
        let clients: ClientAddresses
        let refusals: RefusalLog
        let limiter: AddressLimiter

        /// Whether a TLS handshake may begin. What a proxy passes on is rated when its header has named the client; one that ends TLS
        /// itself rates its clients.
        func admitsHandshake(_ channel: any Channel) -> Bool {
            clients.isProxy(channel) || admitsHandshake(of: clients.network(of: channel))
        }

        func admitsHandshake(of network: ClientNetwork) -> Bool { limiter.take(.handshake, for: network) == nil }
    }
    /// The connection exceeds its network's share.
    struct ShareExceeded: Error {}
    /// The pipeline was upgraded without a granted handshake.
    struct NotGranted: Error {}

    let responder: HTTPChannelHandler.Responder
    let limits: HTTPLimits
    let webSocketLimits: WebSocketLimits
    let costs: Costs
    let webSockets: PublicWebSockets
    /// TLS comes before HTTP on the connection.
    let isSecure: Bool

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let idleTimeout = limits.idleTimeout
        let isProxy = costs.clients.isProxy(channel)
        if !isProxy, !costs.clients.take(for: costs.clients.network(of: channel), until: channel.closeFuture) {
            // A failed initializer would end the listener. This closes only the connection.
            return channel.eventLoop.makeSucceededFuture(
                Value(channel: channel, negotiated: channel.eventLoop.makeFailedFuture(ShareExceeded()))
            )
        }
        return channel.eventLoop.makeCompletedFuture {
            try boundReads(of: channel)
            if isProxy, costs.clients.proxies.header == .proxyProtocol {
                try channel.pipeline.syncOperations.addHandler(proxyHandler(channel), position: .first)
            }
            // TLS reads until the client's close_notify by itself.
            if !isSecure { try channel.pipeline.syncOperations.addHandler(LingeringCloseHandler()) }
            let upgrader = NIOTypedWebSocketServerUpgrader<Negotiated>(
                maxFrameSize: webSocketLimits.messageBytesMax,
                enableAutomaticErrorHandling: false,
                // ``UpgradeFilter`` already answered refused handshakes.
                shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(HTTPHeaders()) },
                upgradePipelineHandler: { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try webSocket(on: channel) }
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
            // The asynchronous channel reads one request at a time, and the types of header fields ensure valid fields.
            configuration.enablePipelining = false
            configuration.enableResponseHeaderValidation = false
            configuration.enableErrorHandling = false
            configuration.decoderConfiguration.maxHeaderFieldSize = HTTPLimits.headerFieldBytesMax
            configuration.decoderConfiguration.maxHeaderListSize = HTTPLimits.headerBytesMax
            configuration.decoderConfiguration.maxHeaderFieldCount = HTTPLimits.headerFieldsMax
            let pipeline = channel.pipeline.syncOperations
            let negotiated = try pipeline.configureUpgradableHTTPServerPipeline(configuration: configuration)
            let upgradeHandler = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Negotiated>.self)
            try pipeline.addHandler(UpgradeFilter(webSockets), position: .before(upgradeHandler))
            let first = FirstRequestHandler(timeout: TimeAmount(idleTimeout)) {
                // Scanners and clients of other protocols send such data.
                let network = costs.clients.network(of: channel)
                let reason = "The data is no HTTP request."
                let fields: Logger.Metadata = ["protocol": "http", "address": "\(network)", "reason": "\(reason)"]
                costs.refusals.write("request refused", of: network, level: .debug, fields)
            }
            try pipeline.addHandler(first)
            return Value(channel: channel, negotiated: negotiated)
        }
    }

    /// TLS and the decoders keep a buffer each, as large as the most that one turn of the loop has read. NIO's four reads of up to
    /// 64 KiB are 0.5 MiB for each connection that has received much once.
    private func boundReads(of channel: any Channel) throws {
        let tlsRecordBytesMax = 16 * 1024
        let allocator = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 2_048, maximum: tlsRecordBytesMax)
        try channel.syncOptions?.setOption(.recvAllocator, value: allocator)
        try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
    }

    /// The first handler of the pipeline, before TLS.
    private func proxyHandler(_ channel: any Channel) -> ProxyProtocolHandler {
        let (costs, isSecure) = (costs, isSecure)
        let reason = "The proxy's connection has no valid PROXY protocol header; is the proxy configured to send it?"
        return ProxyProtocolHandler(
            statistics: costs.statistics,
            onInvalid: {
                let proxy = costs.clients.network(of: channel)
                costs.refusals.write("connection refused", of: proxy, ["address": "\(proxy)", "reason": "\(reason)"])
            },
            onClient: { client in
                // A header without a client is from the proxy itself, such as a health check.
                guard let client else { return true }
                costs.clients.name(client, for: channel)
                let network = ClientNetwork(client)
                guard !isSecure || costs.admitsHandshake(of: network) else { return false }
                return costs.clients.take(for: network, until: channel.closeFuture)
            }
        )
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

    private func webSocket(on channel: any Channel) throws -> Negotiated {
        let pipeline = channel.pipeline.syncOperations
        let filter = try pipeline.handler(type: UpgradeFilter.self)
        guard let endpoint = filter.granted else { throw NotGranted() }
        // Before the decoder, which keeps a frame until it is complete.
        let arrived = ArrivedBytes()
        try pipeline.addHandler(arrived, position: .after(filter))
        try pipeline.handler(type: FirstRequestHandler.self).leave()
        let network = costs.clients.network(of: channel)
        let writer = WebSocketWriter(to: channel, of: network, in: costs.outbound)
        try pipeline.addHandler(
            WebSocketHandler(
                limits: webSocketLimits,
                network: network,
                statistics: costs.statistics,
                writer: writer,
                inbound: costs.inbound,
                arrived: arrived
            )
        )
        let webSocket = try NIOAsyncChannel<WebSocketInput, WebSocketOutput>(
            wrappingChannelSynchronously: channel,
            configuration: .init(backPressureStrategy: Self.webSocketBackPressure)
        )
        return .webSocket(webSocket, endpoint, writer)
    }

    /// Stops reading while two messages are queued, because each may have the maximum length.
    private static let webSocketBackPressure = NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark(
        lowWatermark: 1,
        highWatermark: 2
    )

    func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.negotiated.get() {
            case .http(let channel): await handleHTTP(asyncChannel: channel, logger: logger)
            case .webSocket(let channel, let endpoint, let writer):
                try await withTaskCancellationHandler {
                    try await channel.executeThenClose { input, _ in
                        await webSockets.serve(input, of: endpoint, to: writer)
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

/// Guards a connection until its first request: it enforces the time limit, answers 400 to data that is not HTTP, and
/// closes the connection at a shutdown.
private final class FirstRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let timeout: TimeAmount
    private let onMalformed: () -> Void
    private var deadline: Scheduled<Void>?
    private var hasLeft = false

    init(timeout: TimeAmount, onMalformed: @escaping () -> Void) {
        self.timeout = timeout
        self.onMalformed = onMalformed
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let bound = context.loopBound
        deadline = context.eventLoop.scheduleTask(in: timeout) { bound.value.close(promise: nil) }
    }
    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }
    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    /// Hands the connection over to the HTTP or WebSocket handlers.
    func leave() {
        deadline?.cancel()
        hasLeft = true
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !hasLeft, error is HTTPParserError else {
            // Other failures, of TLS or the socket, close the connection anyway.
            if hasLeft { context.fireErrorCaught(error) }
            return
        }
        onMalformed()
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
