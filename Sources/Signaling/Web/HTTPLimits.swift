/// The limits on HTTP clients and on first messages of WebSockets.
package struct HTTPLimits: Equatable, Sendable {
    /// The maximum number of connections. Further ones wait in the kernel's listen queue.
    package var connectionsMax: Int
    /// The maximum number of connections of one network (an IPv4 address, or the /64 of an IPv6 address); 0 for no limit.
    /// Further ones are closed. Clients on this machine may have three quarters of all connections. A connection of a
    /// trusted proxy counts for the client that the proxy names; with `X-Forwarded-For` only WebSockets count.
    package var connectionsPerNetworkMax: Int
    /// The maximum memory of the unsent messages of all WebSockets and event streams together, in bytes, and of those that have
    /// not arrived whole. Beyond it the server closes connections: of the network with the most, the client with the oldest.
    package var waitingBytesMax: Int
    /// The maximum length of a body. Offers of browsers with all codecs have less than 16 KiB.
    package var bodyBytesMax: Int
    /// The maximum length of a refused body that is read to its end. A longer one closes the connection.
    package var drainBytesMax: Int
    /// The time limit for receiving a body.
    package var bodyTimeout: Duration
    /// The time limit for idle connections and for receiving a request's head.
    package var idleTimeout: Duration
    /// The time limit for one write to an event stream, after which the connection is closed.
    package var writeTimeout: Duration
    /// The burst of requests of one client network, without those for the page's files; 0 for no limit. DELETE requests
    /// have a limit of their own with the same values.
    package var requestBurst: Int
    /// The rate of requests of one client network.
    package var requestsPerSecond: Double
    /// The burst of WebSocket messages of one client network before admission, by their cost: 1 for a message, and 1 more
    /// for each 64 values and each 8 KiB. 0 for no limit.
    package var messageBurst: Int
    /// The rate of these messages, by their cost.
    package var messagesPerSecond: Double
    /// The burst of statistics messages of one client network after admission, by their cost. Messages beyond it are
    /// dropped, and connections stay open. It does not apply to shared networks, such as clients on this machine.
    package var memberMessageBurst: Int
    /// The rate of these messages, by their cost.
    package var memberMessagesPerSecond: Double

    package init(
        connectionsMax: Int = 10_000,
        connectionsPerNetworkMax: Int = 1_000,
        waitingBytesMax: Int = 48 * 1024 * 1024,
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

extension HTTPLimits {
    /// The maximum length of one header field, in bytes.
    package static let headerFieldBytesMax = 16 * 1024
    /// The maximum length of all header fields of a request, in bytes.
    package static let headerBytesMax = 32 * 1024
    /// The maximum number of header fields of a request.
    package static let headerFieldsMax = 100
}
