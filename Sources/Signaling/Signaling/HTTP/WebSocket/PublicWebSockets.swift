import Ayame
import ChannelTypes
import NIOCore
import NIOHTTP1
import Room
import Sora
import Telemetry
import Web

/// The WebSockets of the public listener: Sora signaling at `/signaling` and the 1:1 relay at `/relay`.
struct PublicWebSockets: Sendable {
    let sora: SoraContext
    let ayame: AyameContext
    let limiter: AddressLimiter
    let clients: ClientAddresses

    /// Decides on a WebSocket handshake by its path, the rate of requests and the client's share of connections.
    ///
    /// Called at most once per connection, for a complete opening handshake, on the channel's event loop. It does not block.
    func answer(to head: HTTPRequestHead, on channel: any Channel) -> WebSocketAnswer {
        guard head.method == .GET, let endpoint = endpoint(of: head) else { return .unknown }
        let address = clients.address(of: channel, forwardedFor: head.headers["x-forwarded-for"])
        let network = address.map { ClientNetwork($0) } ?? .unknown
        if let wait = limiter.take(.request, for: network) { return .refused(.overRate(wait)) }
        guard let address, address != clients.address(of: channel) else { return .granted(endpoint) }
        // Behind a proxy that reuses connections for several clients, a client's share counts WebSockets only.
        guard clients.take(for: network, until: channel.closeFuture) else { return .refused(.overConnections) }
        clients.name(address, for: channel)
        return .granted(endpoint)
    }

    private func endpoint(of head: HTTPRequestHead) -> WebSocketEndpoint? {
        switch try? Route(target: RequestTarget(head.uri)) {
        case .signaling: .sora(sora.traces == nil ? nil : TraceContext(traceparent: head.headers["traceparent"]))
        case .relay: .ayame
        default: nil
        }
    }

    /// Serves a WebSocket until it closes.
    func serve(
        _ input: NIOAsyncChannelInboundStream<WebSocketInput>,
        of endpoint: WebSocketEndpoint,
        to writer: WebSocketWriter
    ) async {
        switch endpoint {
        case .sora(let parent): await SoraConnection(context: sora, writer: writer, parent: parent).run(input)
        case .ayame: await AyameConnection(context: ayame, writer: writer).run(input)
        }
    }
}

/// A protocol over WebSocket.
enum WebSocketEndpoint: Sendable {
    /// With the client's span, if it sent one.
    case sora(TraceContext?)
    case ayame
}

/// The decision on a WebSocket handshake.
enum WebSocketAnswer {
    case granted(WebSocketEndpoint)
    /// The path has no WebSocket. The request is answered as any other.
    case unknown
    /// The request is answered with this failure, and the connection closes.
    case refused(HTTPFailure)
}
