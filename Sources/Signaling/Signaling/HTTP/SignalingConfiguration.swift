public import Ayame
public import Sora
public import Web

/// The configuration of the public listener.
public struct SignalingConfiguration: Sendable {
    /// The address or name to bind; an IPv6 address without brackets.
    public var host: String
    /// The TCP port; 0 for any free port.
    public var port: Int
    /// `nil` for plain HTTP, on loopback and behind a proxy that terminates TLS.
    public var certificate: HTTPSCertificate?
    /// TURN over TLS on the port of the listener, with a certificate only; `nil` without.
    public var sharedTURN: SharedTURN?
    public var limits: HTTPLimits
    /// The limits of one WebSocket.
    public var webSocketLimits: WebSocketLimits
    /// The reverse proxies in front of the listener.
    public var proxies: ProxyConfiguration
    /// The time between heartbeat comments of an event stream.
    public var heartbeatInterval: Duration
    /// The minimum time between two events of one event stream. Changes within it coalesce.
    public var eventInterval: Duration
    /// The configuration of Sora signaling.
    public var sora: SoraConfiguration
    /// The configuration of the 1:1 relay.
    public var ayame: AyameConfiguration

    public init(
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
