/// The path of the media of a call of two.
package enum CallMedia: String, Hashable, Sendable, CaseIterable, Codable {
    /// From client to client. The node relays descriptions and candidates.
    case direct
    /// Through the node, which answers the offers of both clients.
    case server
}

/// The configuration of the 1:1 relay with the Ayame protocol.
package struct AyameConfiguration: Sendable {
    /// The operator's server that admits clients, in addition to the node's tokens; `nil` for none.
    package var authenticationURL: String?
    /// The operator's server that is told of each ended registration; `nil` for none.
    package var disconnectURL: String?
    /// Of calls for which neither the operator's server nor a client decides. ``CallMedia/server`` is for all calls for which
    /// the operator's server does not decide.
    package var media = CallMedia.direct
    /// The time between two pings. The client Momo reconnects after 60 s without one.
    var pingInterval: Duration = .seconds(5)
    /// The time without any message from a client after which its connection ends.
    var pongTimeout: Duration = .seconds(60)
    /// The time limit for `register`.
    var registerTimeout: Duration = .seconds(30)
    /// The time limit for the admission, longer than any webhook timeout.
    var admissionTimeout: Duration = .seconds(75)
    /// The longest `register` message, in bytes.
    var registerBytesMax = 128 * 1024

    package init() {}
}
