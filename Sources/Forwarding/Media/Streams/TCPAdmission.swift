import Base
import Synchronization
package import Wire

/// The limits on TCP connections of a node, all its media loops together.
package struct TCPLimits: Hashable, Sendable {
    package var connectionsMax: Int
    /// Of one network: an IPv4 address, or the /64 of an IPv6 address.
    package var connectionsPerNetworkMax: Int
    /// Connections on which no check of a session has arrived yet. Beyond it the oldest of them is closed. Half as many may
    /// wait over TLS for their handshake, or for a request with a user name.
    package var unauthenticatedMax: Int
    /// The time for that check.
    package var authenticationTimeout: Duration
    /// The time for one write of up to 16 KiB.
    package var stallTimeout: Duration
    /// TLS handshakes a second, all networks together, and the largest burst. Connections beyond it are refused.
    package var handshakesPerSecond: Int
    /// Those of one network.
    package var handshakesPerNetworkPerSecond: Int

    /// - Parameters:
    ///   - connectionsMax: browsers try TCP besides UDP, so that each client has a connection for some seconds.
    ///   - connectionsPerNetworkMax: the clients behind one NAT.
    ///   - handshakesPerSecond: at least 1, as the next one. A handshake takes up to a millisecond of a core with the usual
    ///     keys, and several with an RSA key of 4,096 bits.
    ///   - handshakesPerNetworkPerSecond: the clients behind one NAT, while they join.
    package init(
        connectionsMax: Int = 10_000,
        connectionsPerNetworkMax: Int = 1_000,
        unauthenticatedMax: Int = 1_000,
        authenticationTimeout: Duration = .seconds(10),
        stallTimeout: Duration = .seconds(10),
        handshakesPerSecond: Int = 500,
        handshakesPerNetworkPerSecond: Int = 50
    ) {
        self.connectionsMax = connectionsMax
        self.connectionsPerNetworkMax = connectionsPerNetworkMax
        self.unauthenticatedMax = unauthenticatedMax
        self.authenticationTimeout = authenticationTimeout
        self.stallTimeout = stallTimeout
        self.handshakesPerSecond = handshakesPerSecond
        self.handshakesPerNetworkPerSecond = handshakesPerNetworkPerSecond
    }
}

/// Counts the TCP connections of a node's media loops against the node's limits. Asked for each connection, not for each
/// packet.
package final class TCPAdmission: Sendable {
    private struct State {
        var connections = 0
        var unauthenticated = 0
        var byNetwork: [IPAddress: Int] = [:]
    }
    /// What becomes of a new connection.
    enum Verdict: Hashable {
        case admitted
        /// It may stay if another one that is not authenticated is closed.
        case admittedForAnother
        case refused(TCPRefusal)
    }

    package let limits: TCPLimits
    private let state = Mutex(State())

    package init(_ limits: TCPLimits = TCPLimits()) { self.limits = limits }

    /// Counts a new connection, unless it is refused.
    func admit(_ remote: IPAddress) -> Verdict {
        let network = remote.network
        return state.withLock { state in
            guard state.connections < limits.connectionsMax else { return .refused(.nodeLimit) }
            let count = state.byNetwork[network, default: 0]
            guard count < limits.connectionsPerNetworkMax else { return .refused(.networkLimit) }
            state.connections += 1
            state.unauthenticated += 1
            state.byNetwork[network] = count + 1
            return state.unauthenticated > limits.unauthenticatedMax ? .admittedForAnother : .admitted
        }
    }

    /// A counted connection is authenticated now.
    func authenticated() { state.withLock { $0.unauthenticated -= 1 } }

    /// A counted connection has ended.
    func release(_ remote: IPAddress, wasAuthenticated: Bool) {
        let network = remote.network
        state.withLock { state in
            state.connections -= 1
            if !wasAuthenticated { state.unauthenticated -= 1 }
            let count = state.byNetwork[network, default: 1] - 1
            state.byNetwork[network] = count > 0 ? count : nil
        }
    }

    /// Whether more connections are not authenticated than may be.
    var isCrowded: Bool { state.withLock { $0.unauthenticated > limits.unauthenticatedMax } }

    /// The counted connections, and those of them that are not authenticated.
    var counts: (all: Int, unauthenticated: Int) { state.withLock { ($0.connections, $0.unauthenticated) } }
}

/// Why a TCP connection was not accepted.
package enum TCPRefusal: String, Hashable, Sendable, CaseIterable {
    case nodeLimit = "node_limit"
    case networkLimit = "address_limit"
    /// Too many connections are not authenticated, and none of this loop can make room.
    case unauthenticatedLimit = "unauthenticated_limit"
    /// The client's network began too many TLS handshakes.
    case networkHandshakeRate = "address_handshake_rate"
    /// All clients together began too many TLS handshakes.
    case handshakeRate = "handshake_rate"
}

/// Why a TCP connection ended.
package enum TCPEndReason: String, Hashable, Sendable, CaseIterable {
    /// The client ended it, or it failed.
    case ended
    /// What came first was no check of a session.
    case notAuthenticated = "not_authenticated"
    /// No check of a session came in time.
    case authenticationTimeout = "authentication_timeout"
    /// A newer connection took its place before it was authenticated.
    case displaced
    /// A frame was longer than any packet.
    case malformed
    /// The session ended, or has connections that are newer.
    case sessionEnded = "session_ended"
    /// Nothing came for a time in which every client sends checks.
    case idle
    /// The client did not read.
    case stalled
}

/// A snapshot of the TCP connections of one media loop.
package struct TCPMetrics: Hashable, Sendable {
    /// The open connections.
    package var connections = 0
    package var accepted: UInt64 = 0
    /// Failures of the system to accept a connection.
    package var acceptErrors: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var packetsReceived: UInt64 = 0
    /// Packets queued for a connection; most are written at once.
    package var packetsQueued: UInt64 = 0
    /// Packets for connections that have ended.
    package var packetsWithoutConnection: UInt64 = 0
    package var refused: [TCPRefusal: UInt64] = [:]
    package var ended: [TCPEndReason: UInt64] = [:]
    package var dropped: [StreamDropReason: UInt64] = [:]

    package init() {}
}

extension TCPMetrics {
    mutating func addDrops(of queue: StreamSendQueue) {
        for reason in StreamDropReason.allCases where queue.drops(reason) > 0 {
            dropped[reason, default: 0] &+= UInt64(queue.drops(reason))
        }
    }
}

extension Interval {
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.init(nanoseconds: seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }
}
