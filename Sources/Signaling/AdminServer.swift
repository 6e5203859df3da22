import HTTPTypes
import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
public import ServiceLifecycle

/// The operators' listener: `/metrics`, `/healthz` and `/readyz`. It has no authentication and belongs on loopback or a
/// private network.
public struct AdminServer: Service {
    private let application: Application<AdminResponder>
    private let host: String
    private let port: Int

    /// - Parameters:
    ///   - metrics: makes the Prometheus text of one scrape.
    ///   - isReady: whether new clients should be sent here.
    ///   - onRunning: called with the bound port when the listener accepts.
    public init(
        host: String,
        port: Int,
        logger: Logger,
        metrics: @escaping @Sendable () async -> String,
        isReady: @escaping @Sendable () async -> Bool,
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.host = host
        self.port = port
        let limits = HTTPLimits(connectionsMax: 200)
        application = Application(
            responder: AdminResponder(metrics: metrics, isReady: isReady),
            server: .http1(limits: limits),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port),
                serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(limits.connectionsMax)
            ),
            onServerRunning: { channel in await onRunning(channel.localAddress?.port ?? port) },
            logger: logger
        )
    }

    /// The application, for tests that do not bind a port.
    var testable: Application<AdminResponder> { application }

    public func run() async throws {
        do {
            try await application.run()
        } catch let error as IOError {
            throw ServerStartError(binding: host, port, error)
        }
    }
}

/// Answers at the operators' listener.
struct AdminResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let metrics: @Sendable () async -> String
    let isReady: @Sendable () async -> Bool

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        let path = RequestTarget(request.head.path ?? "/").segments
        guard path.count == 1, ["metrics", "healthz", "readyz"].contains(path[0]) else {
            return HTTPFailure.unknownPath.response
        }
        guard request.method == .get || request.method == .head else {
            return HTTPFailure.methodNotAllowed([.get, .head]).response
        }
        let response: Response
        switch path[0] {
        case "metrics":
            response = Self.text(.ok, await metrics(), type: "text/plain; version=0.0.4; charset=utf-8")
        case "readyz" where !(await isReady()):
            response = Self.text(.serviceUnavailable, "draining\n")
        default:
            response = Self.text(.ok, "ok\n")
        }
        return request.method == .head ? response.createHeadResponse() : response
    }

    private static func text(
        _ status: HTTPResponse.Status,
        _ text: String,
        type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(
            status: status,
            headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text))
        )
    }
}
