/// What the public listener needs to know.
public struct SignalingConfiguration: Sendable {
    /// Certificate and key as PEM files.
    public struct TLS: Sendable {
        /// The chain, the server's own certificate first.
        public var certificatePath: String
        public var keyPath: String
        public init(certificatePath: String, keyPath: String) {
            self.certificatePath = certificatePath
            self.keyPath = keyPath
        }
    }

    /// Address or name to bind; an IPv6 address without brackets.
    public var host: String
    /// 0 lets the system choose.
    public var port: Int
    /// `nil` serves plain HTTP, for loopback and behind a proxy that ends TLS.
    public var tls: TLS?
    public var limits: HTTPLimits
    /// How much one WebSocket may cost.
    public var webSocketLimits: WebSocketLimits
    /// The reverse proxies in front of the listener.
    public var proxies: ProxyConfiguration
    /// Time between heartbeat comments of an event stream.
    public var heartbeatInterval: Duration
    /// The shortest time between two events of one event stream; changes within it become one.
    public var eventInterval: Duration
    /// What Sora's clients are told and given.
    public var sora: SoraConfiguration

    public init(
        host: String = "127.0.0.1",
        port: Int = 8080,
        tls: TLS? = nil,
        limits: HTTPLimits = HTTPLimits(),
        webSocketLimits: WebSocketLimits = WebSocketLimits(),
        proxies: ProxyConfiguration = ProxyConfiguration(),
        heartbeatInterval: Duration = .seconds(15),
        eventInterval: Duration = .milliseconds(50),
        sora: SoraConfiguration = SoraConfiguration()
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.limits = limits
        self.webSocketLimits = webSocketLimits
        self.proxies = proxies
        self.heartbeatInterval = heartbeatInterval
        self.eventInterval = eventInterval
        self.sora = sora
    }
}

/// How much an HTTP client may cost.
public struct HTTPLimits: Equatable, Sendable {
    /// Connections at one time; further ones wait in the kernel's queue.
    public var connectionsMax: Int
    /// Connections of one network (an IPv4 address, the /64 of an IPv6 address) at one time; further ones are closed. 0
    /// lifts the limit. This machine's own clients may have three quarters of all connections. A connection of a trusted
    /// proxy counts for the client that the proxy names; with `X-Forwarded-For` only WebSockets count.
    public var connectionsPerNetworkMax: Int
    /// Bytes that may wait for all clients together that read too slowly, of WebSockets and event streams. Beyond it
    /// clients are cut off, of the network that most waits for the one that has left something unread for longest.
    public var waitingBytesMax: Int
    /// The longest body that is read as a request: offers of browsers with every codec are below 16 KiB.
    public var bodyBytesMax: Int
    /// The longest body that is read to its end after it was refused. A longer one costs the client its connection.
    public var drainBytesMax: Int
    /// How long a body may take to arrive.
    public var bodyTimeout: Duration
    /// How long a connection may be idle, or take for a request's head.
    public var idleTimeout: Duration
    /// How long one write to an event stream may wait for a slow reader before it is dropped.
    public var writeTimeout: Duration
    /// Requests (but those for the page's own files) that one client network may make at once, and per second in the long
    /// run; DELETE is counted apart. 0 for the first lifts the limit.
    public var requestBurst: Int
    public var requestsPerSecond: Double
    /// What the first messages on the WebSockets of one client network may cost at once, and per second in the long run: a
    /// message costs 1, and 1 more for 64 values and for 8 KiB. 0 for the first lifts the limit.
    public var messageBurst: Int
    public var messagesPerSecond: Double
    /// The same of the statistics that the members of one client network send. Those beyond it are dropped unread, and
    /// nobody is cut off. It does not bound networks that stand for clients of any number, as this machine's does.
    public var memberMessageBurst: Int
    public var memberMessagesPerSecond: Double

    public init(
        connectionsMax: Int = 10_000,
        connectionsPerNetworkMax: Int = 1_000,
        waitingBytesMax: Int = 64 * 1024 * 1024,
        bodyBytesMax: Int = 64 * 1024,
        drainBytesMax: Int = 4 * 1024 * 1024,
        bodyTimeout: Duration = .seconds(10),
        idleTimeout: Duration = .seconds(60),
        writeTimeout: Duration = .seconds(20),
        requestBurst: Int = 2_000,
        requestsPerSecond: Double = 200,
        messageBurst: Int = 4_000,
        messagesPerSecond: Double = 400,
        memberMessageBurst: Int = 50_000,
        memberMessagesPerSecond: Double = 2_500
    ) {
        self.connectionsMax = connectionsMax
        self.connectionsPerNetworkMax = connectionsPerNetworkMax
        self.waitingBytesMax = waitingBytesMax
        self.bodyBytesMax = bodyBytesMax
        self.drainBytesMax = drainBytesMax
        self.bodyTimeout = bodyTimeout
        self.idleTimeout = idleTimeout
        self.writeTimeout = writeTimeout
        self.requestBurst = requestBurst
        self.requestsPerSecond = requestsPerSecond
        self.messageBurst = messageBurst
        self.messagesPerSecond = messagesPerSecond
        self.memberMessageBurst = memberMessageBurst
        self.memberMessagesPerSecond = memberMessagesPerSecond
    }
}
