import HTTPTypes
import NIOCore
import NIOHTTP1
import Web

/// Passes only granted WebSocket handshakes to the upgrade handler behind it, and answers refused ones. It removes the
/// `Upgrade` field from all other requests, because the upgrade handler loses the head of a request that it refuses.
///
/// The HTTP decoder reads nothing after a request with that field, so the connection closes after the response.
final class UpgradeFilter: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let webSockets: PublicWebSockets
    /// The endpoint of a granted handshake; `nil` while the connection is not a WebSocket.
    private(set) var granted: WebSocketEndpoint?
    /// Only the first request of a connection may become a WebSocket.
    private var isFirst = true
    private var isWebSocket: Bool { granted != nil }
    /// Whether a handshake was refused, which closes the connection.
    private var isRefused = false
    /// Whether the connection closes after the next response.
    private var isLast = false

    init(_ webSockets: PublicWebSockets) { self.webSockets = webSockets }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard !isWebSocket, case .head(var head) = Self.unwrapInboundIn(data) else {
            return context.fireChannelRead(data)
        }
        let mayUpgrade = isFirst
        isFirst = false
        guard head.headers.contains(name: "upgrade") else { return context.fireChannelRead(data) }
        if mayUpgrade, Self.isHandshake(head) {
            switch webSockets.answer(to: head, on: context.channel) {
            case .granted(let endpoint):
                granted = endpoint
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

    /// Whether a request is a complete opening handshake (RFC 6455 §4.2.1). It must have no body, whose bytes would be read
    /// as frames.
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
