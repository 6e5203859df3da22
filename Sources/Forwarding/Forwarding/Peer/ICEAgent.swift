import Base
package import ICE
import Wire

/// The ICE agent of one peer: lite on the server's side, controlling in the client's role.
package enum ICEAgent {
    case lite(ICELiteAgent)
    case controlling(ICEControllingAgent)

    /// The pair where media and RTCP are sent.
    var selectedPath: NetworkPath? {
        switch self {
        case .lite(let agent): agent.selectedPath
        case .controlling(let agent): agent.selectedPath
        }
    }

    /// When the last authenticated message arrived on the selected pair; `nil` without such a pair.
    var lastHeardAt: Instant? {
        switch self {
        case .lite(let agent): agent.lastHeardAt
        case .controlling: nil
        }
    }

    /// Sends a check of a lite agent over the selected pair.
    mutating func ask(at now: Instant, into batch: DatagramBatch) {
        guard case .lite(var agent) = self else { return }
        agent.ask(at: now, into: batch)
        self = .lite(agent)
    }

    var nextDeadline: Instant? {
        switch self {
        case .lite(let agent): agent.nextDeadline
        case .controlling(let agent): agent.nextDeadline
        }
    }

    var isLite: Bool {
        if case .lite = self { return true }
        return false
    }

    /// Whether an authenticated check came over a pair.
    func isKnown(_ path: NetworkPath) -> Bool {
        switch self {
        case .lite(let agent): agent.isKnown(path)
        case .controlling(let agent): agent.isKnown(path)
        }
    }

    /// Senders that the other side may use at one time. A client has few; a server sends a client everybody else's.
    var sourcesMax: Int { isLite ? 64 : 4_096 }

    /// Where DTLS is sent. A lite agent answers a handshake over the pair that it runs over: browsers may nominate a
    /// while after media could flow (RFC 8445 §12.1), and a nomination alone does not prove an address.
    func dtlsPath(handshakePath: NetworkPath?, isConnected: Bool) -> NetworkPath? {
        switch self {
        case .lite: isConnected ? selectedPath : handshakePath ?? selectedPath
        case .controlling: selectedPath ?? handshakePath
        }
    }

    /// Puts new credentials in force (RFC 8445 §9).
    mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        switch self {
        case .lite(var agent):
            agent.restart(local: local, remote: remote, at: now)
            self = .lite(agent)
        case .controlling(var agent):
            agent.restart(local: local, remote: remote, at: now)
            self = .controlling(agent)
        }
    }

    mutating func handle(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> ICEEvent? {
        switch self {
        case .lite(var agent):
            defer { self = .lite(agent) }
            return try agent.handle(message, path: path, at: now, into: batch)
        case .controlling(var agent):
            defer { self = .controlling(agent) }
            return try agent.handle(message, path: path, at: now, into: batch)
        }
    }

    mutating func handleTimeout(at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        switch self {
        case .lite(var agent):
            defer { self = .lite(agent) }
            return agent.handleTimeout(at: now, into: batch)
        case .controlling(var agent):
            defer { self = .controlling(agent) }
            return agent.handleTimeout(at: now, into: batch)
        }
    }

    /// The handshake was completed over a pair.
    /// - Parameter isProof: our flights went over this pair alone. Nobody completes a handshake without them.
    mutating func handshakeCompleted(
        over path: NetworkPath,
        isProof: Bool,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard case .lite(var agent) = self else { return }
        if isProof {
            _ = agent.markVerified(path, at: now)
        } else {
            agent.requireVerification(at: now, into: batch)
        }
        self = .lite(agent)
    }

    /// Requires that the peer answers checks of ours, for a peer that is sent more than its own packets cause. A controlling
    /// agent asks in any case.
    mutating func requireConsent(at now: Instant) {
        guard case .lite(var agent) = self else { return }
        agent.requireConsent(at: now)
        self = .lite(agent)
    }
}
