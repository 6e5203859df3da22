import Base
import TURN
import Wire

/// Bounds the TLS handshakes of clients that have proved nothing yet: how often one begins, for each network and for all
/// together, and how many connections wait at once.
struct HandshakeLimiter {
    private var networks: NetworkRateLimiter
    private var all: NetworkRateLimiter
    /// Connections over TLS that wait for their handshake or for the request of a session; beyond it the oldest of them is
    /// closed.
    let waitingMax: Int

    init(_ limits: TCPLimits, using generator: inout some RandomNumberGenerator) {
        networks = NetworkRateLimiter(
            perSecond: limits.handshakesPerNetworkPerSecond,
            burst: limits.handshakesPerNetworkPerSecond,
            using: &generator
        )
        all = NetworkRateLimiter(
            perSecond: limits.handshakesPerSecond,
            burst: limits.handshakesPerSecond,
            bucketCount: 1,
            using: &generator
        )
        // Half of the places, so that they alone do not keep connections without TLS out.
        waitingMax = max(limits.unauthenticatedMax / 2, 1)
    }

    /// Why no handshake with a client may begin now; `nil` when one may, which is counted.
    mutating func refusal(of client: IPAddress, at now: Instant) -> TCPRefusal? {
        // What is refused to one network takes nothing from the others.
        guard networks.take(client, at: now) else { return .networkHandshakeRate }
        return all.take(client, at: now) ? nil : .handshakeRate
    }
}
