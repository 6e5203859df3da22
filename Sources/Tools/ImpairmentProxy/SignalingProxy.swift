import Base
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOWebSocket
package import Wire

/// Why the proxy for signaling cannot start, as a sentence for the user.
package struct SignalingProxyError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String
    package var description: String { message }
}

/// The HTTP side of the proxy: it passes requests and WebSockets on to a server, and puts the media proxy's ports in the
/// place of the ICE candidates in the server's descriptions (WHIP, WHEP, Sora signaling).
///
/// Each connection of a client has its own connection to the server.
package final class SignalingProxy: Sendable {
    /// The server behind the proxy.
    package struct Target: Hashable, Sendable {
        package var host: String
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    private let listener: any Channel
    /// The port that clients connect to.
    package let port: Int

    private init(_ listener: any Channel) {
        self.listener = listener
        port = listener.localAddress?.port ?? 0
    }

    /// Starts to listen. ``shutdown()`` must follow.
    package static func start(
        listen: TransportAddress,
        target: Target,
        ports: MediaPorts
    ) async throws(SignalingProxyError) -> SignalingProxy {
        do {
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.autoRead, value: false)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let proxied = ProxiedConnection(client: channel, target: target, ports: ports)
                        try proxied.begin()
                    }
                }
                .bind(host: "\(listen.ip)", port: Int(listen.port))
                .get()
            return SignalingProxy(listener)
        } catch let error as IOError {
            let reason =
                switch error.errnoCode {
                case 98: "another program uses the port; stop that program or choose another port"
                case 99: "this machine does not have that address; choose one of its own"
                case 13: "the system does not permit it; choose a port above 1023"
                default: "error \(error.errnoCode); choose another address or port"
                }
            throw SignalingProxyError(message: "Cannot listen on TCP \(listen) (--listen): \(reason).")
        } catch {
            throw SignalingProxyError(message: "Cannot listen on TCP \(listen) (--listen): \(error).")
        }
    }

    package func shutdown() async { try? await listener.close() }
}

/// One connection of a client and the connection to the server that belongs to it, both on one event loop.
private final class ProxiedConnection {
    /// Longer answers are not SDP.
    static let descriptionBytesMax = 256 * 1_024
    static let messageBytesMax = 4 * 1_024 * 1_024

    let client: any Channel
    let target: SignalingProxy.Target
    let ports: MediaPorts
    private(set) var server: (any Channel)?
    /// Whether the server cannot be reached.
    private(set) var hasFailed = false

    init(client: any Channel, target: SignalingProxy.Target, ports: MediaPorts) {
        self.client = client
        self.target = target
        self.ports = ports
    }

    func begin() throws {
        let pipeline = client.pipeline.syncOperations
        try pipeline.addHandler(HTTPResponseEncoder())
        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)))
        try pipeline.addHandler(ClientHandler(self))
    }

    /// Connects to the server. The client's requests are read afterwards.
    func connect() {
        ClientBootstrap(group: client.eventLoop)
            .connectTimeout(.seconds(5))
            .channelOption(.autoRead, value: false)
            .connect(host: target.host, port: target.port)
            .assumeIsolated()
            .whenComplete { result in
                do {
                    try self.connected(result.get())
                } catch {
                    self.hasFailed = true
                }
                // A request is now passed on or refused.
                self.client.setReading(true)
            }
    }

    private func connected(_ server: any Channel) throws {
        guard client.isActive else { return server.close(promise: nil) }
        let pipeline = server.pipeline.syncOperations
        try pipeline.addHandler(HTTPRequestEncoder())
        try pipeline.addHandler(ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes)))
        try pipeline.addHandler(ServerHandler(self))
        self.server = server
        server.setReading(true)
    }

    /// The proxy's address that stands for a media address of the server: the address that the client connected to, with
    /// the media proxy's port.
    func rewrite(_ text: String) -> String {
        let ip = client.localAddress?.ipAddress.flatMap { IPAddress($0) } ?? .loopbackV4
        return rewriteCandidates(in: text) { [ports] candidate in
            ports.port(for: candidate).map { TransportAddress(ip: ip, port: $0) }
        }
    }

    /// Turns both connections from HTTP to a WebSocket, after the server accepted the handshake.
    ///
    /// The decoders hold the bytes that follow the handshake and pass them on when they are removed, so the other
    /// connection must be ready before.
    func upgrade() throws {
        guard let server else { return }
        let (near, far) = (client.pipeline.syncOperations, server.pipeline.syncOperations)
        try near.addHandler(WebSocketFrameEncoder())
        near.removeHandler(context: try near.context(handlerType: HTTPResponseEncoder.self), promise: nil)

        try far.addHandler(ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: Self.messageBytesMax)))
        try far.addHandler(
            NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0,
                maxAccumulatedFrameCount: 1_024,
                maxAccumulatedFrameSize: Self.messageBytesMax
            )
        )
        try far.addHandler(FrameHandler(self))
        far.removeHandler(context: try far.context(handlerType: HTTPRequestEncoder.self), promise: nil)
        far.removeHandler(context: try far.context(handlerType: ServerHandler.self), promise: nil)
        let decoder = try far.context(handlerType: ByteToMessageHandler<HTTPResponseDecoder>.self)
        far.removeHandler(context: decoder).assumeIsolated().whenComplete { _ in
            do {
                try near.addHandler(BytesHandler(self))
                near.removeHandler(context: try near.context(handlerType: ClientHandler.self), promise: nil)
                let decoder = try near.context(handlerType: ByteToMessageHandler<HTTPRequestDecoder>.self)
                near.removeHandler(context: decoder, promise: nil)
            } catch {
                self.client.close(promise: nil)
            }
        }
    }
}

extension Channel {
    /// Starts or stops reading.
    fileprivate func setReading(_ isReading: Bool) {
        try? syncOptions?.setOption(.autoRead, value: isReading)
    }
}

/// Passes a client's requests on.
private final class ClientHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let connection: ProxiedConnection

    init(_ connection: ProxiedConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let server = connection.server else {
            if case .head = Self.unwrapInboundIn(data), connection.hasFailed { refuse(context) }
            return
        }
        switch Self.unwrapInboundIn(data) {
        case .head(var head):
            // Descriptions are read on the way, so they must not be compressed.
            head.headers.remove(name: "Accept-Encoding")
            head.headers.remove(name: "Sec-WebSocket-Extensions")
            server.write(HTTPClientRequestPart.head(head), promise: nil)
        case .body(let body): server.write(HTTPClientRequestPart.body(.byteBuffer(body)), promise: nil)
        case .end(let trailers): server.writeAndFlush(HTTPClientRequestPart.end(trailers), promise: nil)
        }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let target = connection.target
        let text = "The server at \(target.host):\(target.port) does not answer: start it, or correct --to."
        let headers: HTTPHeaders = [
            "Content-Type": "text/plain; charset=utf-8", "Content-Length": "\(text.utf8.count)", "Connection": "close",
        ]
        let head = HTTPResponseHead(version: .http1_1, status: .badGateway, headers: headers)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(Self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
        let bound = context.loopBound
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func channelActive(context: ChannelHandlerContext) { connection.connect() }
    func channelReadComplete(context: ChannelHandlerContext) { connection.server?.flush() }
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.server?.setReading(context.channel.isWritable)
    }
    func channelInactive(context: ChannelHandlerContext) { connection.server?.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// Passes the server's responses on, with other candidates in descriptions.
private final class ServerHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let connection: ProxiedConnection
    private var isUpgrade = false
    /// The head of a response with a description, held until its end.
    private var descriptionHead: HTTPResponseHead?
    private var description = ByteBuffer()

    init(_ connection: ProxiedConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let client = connection.client
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            isUpgrade = head.status == .switchingProtocols
            let type = head.headers.first(name: "Content-Type")?.lowercased() ?? ""
            if type.hasPrefix("application/sdp") || type.hasPrefix("application/trickle-ice-sdpfrag") {
                descriptionHead = head
                description.clear()
            } else {
                client.write(HTTPServerResponsePart.head(head), promise: nil)
            }
        case .body(var body):
            guard descriptionHead != nil else {
                client.write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil)
                return
            }
            guard description.readableBytes + body.readableBytes <= ProxiedConnection.descriptionBytesMax else {
                context.close(promise: nil)
                return
            }
            description.writeBuffer(&body)
        case .end(let trailers):
            if var head = descriptionHead {
                descriptionHead = nil
                let body = ByteBuffer(string: connection.rewrite(String(buffer: description)))
                if body.readableBytes > 0 {
                    head.headers.remove(name: "Transfer-Encoding")
                    head.headers.replaceOrAdd(name: "Content-Length", value: "\(body.readableBytes)")
                }
                client.write(HTTPServerResponsePart.head(head), promise: nil)
                client.write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil)
            }
            client.writeAndFlush(HTTPServerResponsePart.end(trailers), promise: nil)
            guard isUpgrade else { return }
            do {
                try connection.upgrade()
            } catch {
                context.close(promise: nil)
            }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { connection.client.flush() }
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.client.setReading(context.channel.isWritable)
    }
    func channelInactive(context: ChannelHandlerContext) { connection.client.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// Passes a client's WebSocket on as it is.
private final class BytesHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: ProxiedConnection

    init(_ connection: ProxiedConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.server?.writeAndFlush(Self.unwrapInboundIn(data), promise: nil)
    }
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.server?.setReading(context.channel.isWritable)
    }
    func channelInactive(context: ChannelHandlerContext) { connection.server?.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// Passes the server's WebSocket messages on, with other candidates in descriptions.
private final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    private let connection: ProxiedConnection

    init(_ connection: ProxiedConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var frame = Self.unwrapInboundIn(data)
        if frame.opcode == .text {
            frame.data = ByteBuffer(string: connection.rewrite(String(buffer: frame.unmaskedData)))
            frame.maskKey = nil
        }
        connection.client.writeAndFlush(frame, promise: nil)
    }
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.client.setReading(context.channel.isWritable)
    }
    func channelInactive(context: ChannelHandlerContext) { connection.client.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
