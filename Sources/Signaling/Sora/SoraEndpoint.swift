import Logging
import NIOCore
import NIOHTTP1
import Room

/// Takes the WebSockets of Sora's SDKs at `/signaling`.
struct SoraEndpoint: WebSocketEndpoint {
    let context: SoraContext
    let limiter: AddressLimiter

    func accepts(_ head: HTTPRequestHead, on channel: any Channel) -> Bool {
        guard head.method == .GET, let route = try? Route(target: RequestTarget(head.uri)), route == .signaling
        else { return false }
        return limiter.take(for: channel) == nil
    }

    func serve(
        _ input: NIOAsyncChannelInboundStream<WebSocketInput>,
        on channel: any Channel,
        logger: Logger
    ) async {
        await SoraConnection(context: context, channel: channel).run(input)
    }
}
