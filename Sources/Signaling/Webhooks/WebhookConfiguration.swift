/// Where an operator's own servers are asked and told, and how.
public struct WebhookConfiguration: Sendable {
    /// HTTP Basic authentication (RFC 7617). It is never printed.
    public struct Credentials: Sendable, CustomStringConvertible, CustomReflectable {
        let user: String
        let password: String

        /// - Parameter user: holds no colon.
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }

        public var description: String { "hidden" }
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// Asked about every newcomer; `nil` asks nobody.
    public var authenticationURL: String?
    /// Told of connections.
    public var eventURL: String?
    /// Told of sessions; what it answers to a new one is applied.
    public var sessionURL: String?
    /// How long one request may take, from its first byte to the last byte of the answer.
    public var timeout: Duration = .seconds(5)
    public var credentials: Credentials?
    /// Certificates in PEM that are trusted in place of the system's.
    public var certificateAuthorityPath: String?
    public var limits = WebhookLimits()

    public init() {}

    /// Whether there is anything to ask or to tell.
    public var isUsed: Bool { authenticationURL != nil || eventURL != nil || sessionURL != nil }
}

/// How much the webhooks may cost the node, whatever their servers do.
public struct WebhookLimits: Equatable, Sendable {
    /// The longest answer that is read.
    public var responseBytesMax = 256 * 1024
    /// Connections to one server.
    public var connectionsMax = 64
    /// Newcomers that wait for an answer at one time. More are refused at once.
    public var questionsMax = 2_000
    /// Newcomers of one network that wait for an answer at one time, where there is room for them. Of the places that are
    /// left no network takes more than a quarter, so that there is one for others.
    public var questionsPerNetworkMax = 256
    /// Events that wait to be told. Beyond it the channel with the most of them loses one, which is counted.
    public var waitingMax = 10_000
    /// Events that are told at one time, each of another channel.
    public var concurrencyMax = 16
    /// How often one event is tried.
    public var attemptsMax = 6
    /// The wait after the first failure; it doubles with each further one.
    public var backoffMin: Duration = .seconds(1)
    public var backoffMax: Duration = .seconds(30)
    /// How long the node waits at its end for what is still to be told.
    public var drainTimeout: Duration = .seconds(3)

    public init() {}
}
