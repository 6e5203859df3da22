import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket

/// What takes WebSockets at the public listener.
protocol WebSocketEndpoint: Sendable {
    /// Whether a request that asks for a WebSocket gets one; otherwise it is answered as any other request.
    ///
    /// Asked once at most for each connection, about a complete opening handshake. Called on the channel's event loop;
    /// it must not block.
    func accepts(_ head: HTTPRequestHead, on channel: any Channel) -> Bool

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

    let responder: HTTPChannelHandler.Responder
    let limits: HTTPLimits
    let webSocketLimits: WebSocketLimits
    let endpoint: any WebSocketEndpoint

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let idleTimeout = limits.idleTimeout
        return channel.eventLoop.makeCompletedFuture {
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
        try pipeline.addHandler(WebSocketHandler(limits: webSocketLimits))
        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
    }

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
