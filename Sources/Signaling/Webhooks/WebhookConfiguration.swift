package import Access

/// The URLs of an operator's servers, and the options of requests to them.
package struct WebhookConfiguration: Sendable {
    /// Credentials for HTTP Basic authentication (RFC 7617). They are never printed.
    package struct Credentials: Sendable, CustomStringConvertible, CustomReflectable {
        let user: String
        let password: String

        /// - Parameter user: A name without a colon.
        package init(user: String, password: String) {
            self.user = user
            self.password = password
        }

        package var description: String { "hidden" }
        package var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// The authentication webhook, which admits or denies each client.
    package var authenticationURL: String?
    /// The event webhook, which receives connection events.
    package var eventURL: String?
    /// The session webhook, which receives session events. Its answer to a new session is applied.
    package var sessionURL: String?
    /// The statistics webhook, which receives what clients report of themselves.
    package var statisticsURL: String?
    /// The time limit for one request, up to the last byte of the answer.
    package var timeout: Duration = .seconds(5)
    package var credentials: Credentials?
    /// Signs each request; `nil` for unsigned ones.
    package var signer: WebhookSigner?
    package var limits = WebhookLimits()

    package init() {}

    /// Whether any webhook is configured.
    package var isUsed: Bool {
        authenticationURL != nil || eventURL != nil || sessionURL != nil || statisticsURL != nil
    }

    /// What applies to the servers of subscriptions too. They are others than those of the webhooks, so they do not get the
    /// credentials.
    package var forSubscriptions: Self {
        var configuration = Self()
        configuration.timeout = timeout
        configuration.signer = signer
        return configuration
    }
}

/// The limits of webhooks, independent of their servers' behavior.
package struct WebhookLimits: Equatable, Sendable {
    /// The maximum length of an answer, in bytes.
    var responseBytesMax = 256 * 1024
    /// The maximum number of connections to one server.
    var connectionsMax = 64
    /// The maximum number of pending authentication requests. Further clients are refused at once.
    package var questionsMax = 2_000
    /// The maximum number of pending authentication requests of one network, and at most a quarter of the remaining ones.
    package var questionsPerNetworkMax = 256
    /// The maximum number of queued events. Beyond it the channel with the most events drops one, which is counted.
    package var waitingMax = 10_000
    /// The maximum number of parallel deliveries, each of another channel.
    var concurrencyMax = 16
    /// The maximum number of attempts for one event.
    var attemptsMax = 6
    /// The wait after the first failure. It doubles with each further one.
    var backoffMin: Duration = .seconds(1)
    var backoffMax: Duration = .seconds(30)
    /// The time limit for delivering queued events at shutdown.
    var drainTimeout: Duration = .seconds(3)

    package init() {}
}
