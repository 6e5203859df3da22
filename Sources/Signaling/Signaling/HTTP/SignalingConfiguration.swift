package import Ayame
package import Sora
package import Web

/// The configuration of the public listener.
package struct SignalingConfiguration: Sendable {
    /// The address or name to bind; an IPv6 address without brackets.
    package var host: String
    /// The TCP port; 0 for any free port.
    package var port: Int
    /// `nil` for plain HTTP, on loopback and behind a proxy that terminates TLS.
    package var certificate: HTTPSCertificate?
    /// TURN over TLS on the port of the listener, with a certificate only; `nil` without.
    package var sharedTURN: SharedTURN?
    package var limits: HTTPLimits
    /// The limits of one WebSocket.
    package var webSocketLimits: WebSocketLimits
    /// The reverse proxies in front of the listener.
    package var proxies: ProxyConfiguration
    /// The time between heartbeat comments of an event stream.
    package var heartbeatInterval: Duration
    /// The minimum time between two events of one event stream. Changes within it coalesce.
    package var eventInterval: Duration
    /// The configuration of Sora signaling.
    package var sora: SoraConfiguration
    /// The configuration of the 1:1 relay.
    package var ayame: AyameConfiguration

    package init(
        host: String = "127.0.0.1",
        port: Int = 8080,
        certificate: HTTPSCertificate? = nil,
        sharedTURN: SharedTURN? = nil,
        limits: HTTPLimits = HTTPLimits(),
        webSocketLimits: WebSocketLimits = WebSocketLimits(),
        proxies: ProxyConfiguration = ProxyConfiguration(),
        heartbeatInterval: Duration = .seconds(15),
        eventInterval: Duration = .milliseconds(50),
        sora: SoraConfiguration = SoraConfiguration(),
        ayame: AyameConfiguration = AyameConfiguration()
    ) {
        self.host = host
        self.port = port
        self.certificate = certificate
        self.sharedTURN = sharedTURN
        self.limits = limits
        self.webSocketLimits = webSocketLimits
        self.proxies = proxies
        self.heartbeatInterval = heartbeatInterval
        self.eventInterval = eventInterval
        self.sora = sora
        self.ayame = ayame
    }
}
