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
        heartbeatInterval: Duration = .seconds(15),
        eventInterval: Duration = .milliseconds(50),
        sora: SoraConfiguration = SoraConfiguration()
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.limits = limits
        self.heartbeatInterval = heartbeatInterval
        self.eventInterval = eventInterval
        self.sora = sora
    }
}

/// How much an HTTP client may cost.
public struct HTTPLimits: Sendable {
    /// Connections at one time; further ones wait in the kernel's queue.
    public var connectionsMax: Int
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
    /// POST and PATCH requests that one client address may make at once, and per second in the long run. 0 for the
    /// first lifts the limit.
    public var requestBurst: Int
    public var requestsPerSecond: Double

    public init(
        connectionsMax: Int = 10_000,
        bodyBytesMax: Int = 64 * 1024,
        drainBytesMax: Int = 4 * 1024 * 1024,
        bodyTimeout: Duration = .seconds(10),
        idleTimeout: Duration = .seconds(60),
        writeTimeout: Duration = .seconds(20),
        requestBurst: Int = 2_000,
        requestsPerSecond: Double = 200
    ) {
        self.connectionsMax = connectionsMax
        self.bodyBytesMax = bodyBytesMax
        self.drainBytesMax = drainBytesMax
        self.bodyTimeout = bodyTimeout
        self.idleTimeout = idleTimeout
        self.writeTimeout = writeTimeout
        self.requestBurst = requestBurst
        self.requestsPerSecond = requestsPerSecond
    }
}
