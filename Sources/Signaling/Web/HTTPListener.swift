package import HummingbirdCore
import Listeners
package import NIOCore

extension HTTPServerBuilder {
    /// HTTP/1.1 with limits on request heads and idle time.
    /// - Parameter certificate: For TLS; `nil` without.
    package static func http1(limits: HTTPLimits, certificate: HTTPSCertificate?) -> Self {
        let configuration = HTTP1Channel.Configuration(
            idleTimeout: TimeAmount(limits.idleTimeout),
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: HTTPLimits.headerFieldBytesMax,
                maxHeaderListSize: HTTPLimits.headerBytesMax,
                maxHeaderFieldCount: HTTPLimits.headerFieldsMax
            )
        )
        guard let certificate else { return .http1(configuration: configuration) }
        return Self { responder in
            let http = HTTP1Channel(responder: responder, configuration: configuration)
            return HTTPSChannel(base: http, certificate: certificate, sharedTURN: nil) { _ in true }
        }
    }
}

/// Prepares an HTTP listener that runs for a process without file descriptors.
/// - Returns: its port.
package func listenerStarted(_ listener: any Channel) async -> Int? {
    // One that is closed already accepts nothing.
    try? await AcceptRestHandler.add(to: listener)
    return listener.localAddress?.port
}
