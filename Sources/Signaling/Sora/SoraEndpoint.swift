import Logging
import NIOCore
import NIOHTTP1
import Room

/// Serves the WebSockets of Sora signaling at `/signaling`.
struct SoraEndpoint: WebSocketEndpoint {
    let context: SoraContext
    let shares: ConnectionShares

    func answer(to head: HTTPRequestHead, on channel: any Channel) -> WebSocketAnswer {
        guard head.method == .GET, let route = try? Route(target: RequestTarget(head.uri)), route == .signaling
        else { return .unknown }
        let clients = context.clients
        let address = clients.address(of: channel, forwardedFor: head.headers["x-forwarded-for"])
        let network = address.map { ClientNetwork($0) } ?? .unknown
        if let wait = context.limiter.take(.request, for: network) { return .refused(.overRate(wait)) }
        guard let address, address != clients.address(of: channel) else { return .granted }
        // Behind a proxy that reuses connections for several clients, a client's share counts WebSockets only.
        guard shares.take(for: network, until: channel.closeFuture) else { return .refused(.overConnections) }
        clients.name(address, for: channel)
        return .granted
    }

    func serve(
        _ input: NIOAsyncChannelInboundStream<WebSocketInput>,
        on channel: any Channel,
        logger: Logger
    ) async {
        await SoraConnection(context: context, channel: channel).run(input)
    }
}
