import Base
package import ChannelTypes
package import Logging
package import NIOCore
import Room
import Synchronization
package import Wire

/// The client addresses of the public listener's connections, direct or named by a trusted proxy.
package final class ClientAddresses: Sendable {
    package let proxies: ProxyConfiguration
    /// The clients that proxies named, by connection.
    private let named = Mutex<[ObjectIdentifier: IPAddress]>([:])

    package init(_ proxies: ProxyConfiguration) { self.proxies = proxies }

    /// Whether the connection comes from a trusted proxy.
    package func isProxy(_ channel: any Channel) -> Bool {
        Self.peer(of: channel).map { proxies.trusts($0) } ?? false
    }

    /// The client of a connection. For a proxy's connection, the client that the proxy named, or else the proxy.
    package func address(of channel: any Channel) -> IPAddress? {
        guard !proxies.trusted.isEmpty else { return Self.peer(of: channel) }
        return named.withLock { $0[ObjectIdentifier(channel)] } ?? Self.peer(of: channel)
    }

    /// The client of one request.
    /// - Parameter forwardedFor: The `X-Forwarded-For` fields of the request.
    package func address(of channel: any Channel, forwardedFor: @autoclosure () -> [String]) -> IPAddress? {
        guard let address = address(of: channel), proxies.trusts(address) else { return address(of: channel) }
        return proxies.client(peer: address, forwardedFor: forwardedFor())
    }

    /// The network of a connection's client.
    package func network(of channel: any Channel) -> ClientNetwork {
        address(of: channel).map { ClientNetwork($0) } ?? .unknown
    }

    /// Records the client that a proxy named for a connection.
    package func name(_ address: IPAddress, for channel: any Channel) {
        let id = ObjectIdentifier(channel)
        named.withLock { $0[id] = address }
        // The channel lives until then, so no other channel has its identifier.
        channel.closeFuture.whenComplete { _ in _ = self.named.withLock { $0.removeValue(forKey: id) } }
    }

    private static func peer(of channel: any Channel) -> IPAddress? {
        channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }
}

extension ClientNetwork {
    /// The network of a socket address.
    init(of address: SocketAddress?) {
        self = address?.ipAddress.flatMap { IPAddress($0) }.map { ClientNetwork($0) } ?? .unknown
    }
}

/// Counts connections per network and enforces each network's share.
package final class ConnectionShares: Sendable {
    private let limits: HTTPLimits
    private let statistics: SignalingStatistics
    private let logger: Logger
    private let counts = Mutex<[ClientNetwork: Int]>([:])

    package init(_ limits: HTTPLimits, statistics: SignalingStatistics, logger: Logger) {
        self.logger = logger
        self.limits = limits
        self.statistics = statistics
    }

    /// Counts a connection until it closes. Returns whether it is within its network's share.
    package func take(for network: ClientNetwork, until closed: EventLoopFuture<Void>) -> Bool {
        let most = network.share(limits.connectionsPerNetworkMax, of: limits.connectionsMax)
        let isWithin = counts.withLock { counts in
            let count = counts[network] ?? 0
            guard count < most else { return false }
            counts[network] = count + 1
            return true
        }
        guard isWithin else {
            statistics.refused(.connectionShare)
            logger.logLimit(.connectionShare, exceededBy: network)
            return false
        }
        closed.whenComplete { _ in
            self.counts.withLock { counts in
                let rest = (counts[network] ?? 1) - 1
                counts[network] = rest > 0 ? rest : nil
            }
        }
        return true
    }

    func count(of network: ClientNetwork) -> Int { counts.withLock { $0[network] ?? 0 } }
}
