import HTTPTypes
import Hummingbird
import Web

extension PublicResponder {
    static var eventStreamHeaders: HTTPFields {
        [.contentType: "text/event-stream", .cacheControl: "no-store", .xAccelBuffering: "no"]
    }

    func eventStreamOutput(_ context: ClientContext) -> EventStreamOutput {
        EventStreamOutput(
            context.channel,
            network: context.network,
            outbound: outbound,
            timeout: configuration.limits.writeTimeout
        )
    }

    /// A response that lasts as long as the stream.
    func response(_ request: Request, _ stream: some EventStream) -> Response {
        let body = request.body
        return Response(
            status: .ok,
            headers: Self.eventStreamHeaders,
            body: ResponseBody { writer in
                try await body.consumeWithInboundCloseHandler { _ in
                    try await stream.write(to: &writer)
                } onInboundClosed: {
                    stream.finish()
                }
                let last = writer
                try await last.finish(nil)
            }
        )
    }
}
