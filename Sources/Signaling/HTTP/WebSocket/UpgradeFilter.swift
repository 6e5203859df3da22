import HTTPTypes
import NIOCore
import NIOHTTP1

/// Lets only a WebSocket that is granted reach the upgrade handler behind it, and answers one that is refused. Every other
/// request comes there without its `Upgrade` field, and so is answered as an ordinary one: the upgrade handler forgets the
/// head of a request that it refuses.
///
/// The HTTP decoder reads nothing behind a request with that field, so the connection ends with the answer to it.
final class UpgradeFilter: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let endpoint: any WebSocketEndpoint
    /// Only the first request of a connection may become a WebSocket.
    private var isFirst = true
    /// What passes is not HTTP any more.
    private var isWebSocket = false
    /// A WebSocket was refused, which ends the connection.
    private var isRefused = false
    /// Whether the next answer is the connection's last.
    private var isLast = false

    init(endpoint: any WebSocketEndpoint) { self.endpoint = endpoint }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard !isWebSocket, case .head(var head) = Self.unwrapInboundIn(data) else {
            return context.fireChannelRead(data)
        }
        let mayUpgrade = isFirst
        isFirst = false
        guard head.headers.contains(name: "upgrade") else { return context.fireChannelRead(data) }
        if mayUpgrade, Self.isHandshake(head) {
            switch endpoint.answer(to: head, on: context.channel) {
            case .granted:
                isWebSocket = true
                return context.fireChannelRead(data)
            case .unknown: break
            case .refused(let failure): return refuse(failure, context)
            }
        }
        isLast = true
        head.headers.remove(name: "upgrade")
        head.headers.replaceOrAdd(name: "connection", value: "close")
        context.fireChannelRead(Self.wrapInboundOut(.head(head)))
    }

    private func refuse(_ failure: HTTPFailure, _ context: ChannelHandlerContext) {
        isRefused = true
        let (fields, document) = failure.problem
        var headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
        headers.add(name: "Content-Length", value: String(document.readableBytes))
        headers.add(name: "Connection", value: "close")
        let status = HTTPResponseStatus(statusCode: failure.status.code, reasonPhrase: failure.status.reasonPhrase)
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(Self.wrapOutboundOut(.body(.byteBuffer(document))), promise: nil)
        let bound = context.loopBound
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isLast, !isWebSocket, case .head(var head) = Self.unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        head.headers.replaceOrAdd(name: "connection", value: "close")
        context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
    }

    /// Whether a request is a complete opening handshake (RFC 6455 §4.2.1). One with a body is not: its bytes would be
    /// read as frames.
    static func isHandshake(_ head: HTTPRequestHead) -> Bool {
        let fields = head.headers
        let length = fields["content-length"]
        return head.method == .GET
            && fields[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && fields[canonicalForm: "sec-websocket-key"].count == 1
            && fields[canonicalForm: "sec-websocket-version"] == ["13"]
            && !fields.contains(name: "transfer-encoding")
            && (length.isEmpty || length == ["0"])
    }
}
