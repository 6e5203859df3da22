import ChannelTypes
import HTTPTypes
import Hummingbird
import MediaTypes
import Telemetry
import Web

extension PublicResponder {
    /// Answers a request at a WHIP or WHEP endpoint. One that joins is a trace, also when it is refused.
    func tracedEndpoint(
        _ endpoint: EndpointRequest,
        _ request: Request,
        _ target: RequestTarget,
        _ channel: ChannelName,
        _ context: ClientContext
    ) async throws -> Response {
        let trace = request.method == .post ? beginTrace(endpoint, request, channel) : nil
        let receivedAt = DeadlineTimer.now
        do {
            let response = try await authorizedEndpoint(
                endpoint,
                request,
                target,
                channel,
                context,
                receivedAt: receivedAt,
                trace
            )
            trace?.responded(status: response.status.code)
            trace?.endUnlessReserved()
            return response
        } catch {
            let failure = HTTPFailure(error)
            trace?.responded(status: failure.status.code)
            trace?.failed(failure.message, kind: "\(failure.status.code)")
            throw error
        }
    }

    private func beginTrace(_ endpoint: EndpointRequest, _ request: Request, _ channel: ChannelName) -> JoinTrace? {
        guard let traces else { return nil }
        let parent = TraceContext(traceparent: request.headers[values: .traceparent])
        return traces.begin(
            JoinTrace.Request(method: "POST", route: "/\(endpoint.signaling.rawValue)/{channel}"),
            endpoint.signaling,
            to: channel,
            role: endpoint.role,
            after: parent
        )
    }
}
