import Base
package import ChannelTypes
package import Logging
package import NIOCore
import Room
import Synchronization
package import Wire

/// The clients of the public listener's connections: their addresses, direct or named by a trusted proxy, and the number of
/// connections of each network, which has a share of them.
package final class ClientAddresses: Sendable {
    package let proxies: ProxyConfiguration
    private let limits: HTTPLimits
    private let statistics: SignalingStatistics
    private let logger: Logger
    private struct State {
        /// The clients that proxies named, by connection.
        var named: [ObjectIdentifier: IPAddress] = [:]
        var counts: [ClientNetwork: Int] = [:]
    }
    private let state = Mutex(State())

    package init(
        _ proxies: ProxyConfiguration,
        _ limits: HTTPLimits,
        statistics: SignalingStatistics,
        logger: Logger
    ) {
        self.proxies = proxies
        self.limits = limits
        self.statistics = statistics
        self.logger = logger
    }

    /// Whether the connection comes from a trusted proxy.
    package func isProxy(_ channel: any Channel) -> Bool {
        Self.peer(of: channel).map { proxies.trusts($0) } ?? false
    }

    /// The client of a connection. For a proxy's connection, the client that the proxy named, or else the proxy.
    package func address(of channel: any Channel) -> IPAddress? {
        guard !proxies.trusted.isEmpty else { return Self.peer(of: channel) }
        return state.withLock { $0.named[ObjectIdentifier(channel)] } ?? Self.peer(of: channel)
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
        state.withLock { $0.named[id] = address }
        // The channel lives until then, so no other channel has its identifier.
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.named[id] = nil } }
    }

    private static func peer(of channel: any Channel) -> IPAddress? {
        channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }

    /// Counts a connection until it closes. Returns whether it is within its network's share.
    package func take(for network: ClientNetwork, until closed: EventLoopFuture<Void>) -> Bool {
        let most = network.share(limits.connectionsPerNetworkMax, of: limits.connectionsMax)
        let isWithin = state.withLock { state in
            let count = state.counts[network] ?? 0
            guard count < most else { return false }
            state.counts[network] = count + 1
            return true
        }
        guard isWithin else {
            statistics.refused(.connectionShare)
            logger.logLimit(.connectionShare, exceededBy: network)
            return false
        }
        closed.whenComplete { _ in
            self.state.withLock { state in
                let rest = (state.counts[network] ?? 1) - 1
                state.counts[network] = rest > 0 ? rest : nil
            }
        }
        return true
    }

    func count(of network: ClientNetwork) -> Int { state.withLock { $0.counts[network] ?? 0 } }
}

extension ClientNetwork {
    /// The network of a socket address.
    init(of address: SocketAddress?) {
        self = address?.ipAddress.flatMap { IPAddress($0) }.map { ClientNetwork($0) } ?? .unknown
    }
}
