import NIOCore
import Room
import Synchronization
import Wire

/// Who is at the other end of the public listener's connections, whether directly or behind a trusted proxy.
final class ClientAddresses: Sendable {
    let proxies: ProxyConfiguration
    /// Clients that a proxy named, by the connection.
    private let named = Mutex<[ObjectIdentifier: IPAddress]>([:])

    init(_ proxies: ProxyConfiguration) { self.proxies = proxies }

    /// Whether the connection comes from a trusted proxy.
    func isProxy(_ channel: any Channel) -> Bool {
        Self.peer(of: channel).map { proxies.trusts($0) } ?? false
    }

    /// The client of a connection; of a proxy's connection the proxy itself, unless it named a client.
    func address(of channel: any Channel) -> IPAddress? {
        guard !proxies.trusted.isEmpty else { return Self.peer(of: channel) }
        return named.withLock { $0[ObjectIdentifier(channel)] } ?? Self.peer(of: channel)
    }

    /// The client of one request.
    /// - Parameter forwardedFor: the request's fields of this name.
    func address(of channel: any Channel, forwardedFor: @autoclosure () -> [String]) -> IPAddress? {
        guard let address = address(of: channel), proxies.trusts(address) else { return address(of: channel) }
        return proxies.client(peer: address, forwardedFor: forwardedFor())
    }

    /// Where the client of a connection comes from.
    func network(of channel: any Channel) -> ClientNetwork {
        address(of: channel).map { ClientNetwork($0) } ?? .unknown
    }

    /// A proxy named the client of a connection.
    func name(_ address: IPAddress, for channel: any Channel) {
        let id = ObjectIdentifier(channel)
        named.withLock { $0[id] = address }
        // The channel is alive until then, so that no other has its identity.
        channel.closeFuture.whenComplete { _ in _ = self.named.withLock { $0.removeValue(forKey: id) } }
    }

    private static func peer(of channel: any Channel) -> IPAddress? {
        channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    }
}

extension ClientNetwork {
    /// The network of a socket's other end.
    init(of address: SocketAddress?) {
        self = address?.ipAddress.flatMap { IPAddress($0) }.map { ClientNetwork($0) } ?? .unknown
    }
}

/// How many connections each network has open, so that none takes them all.
final class ConnectionShares: Sendable {
    private let limits: HTTPLimits
    private let statistics: SignalingStatistics
    private let counts = Mutex<[ClientNetwork: Int]>([:])

    init(_ limits: HTTPLimits, statistics: SignalingStatistics) {
        self.limits = limits
        self.statistics = statistics
    }

    /// Counts a connection until it is closed. Returns whether it is within its network's share.
    func take(for network: ClientNetwork, until closed: EventLoopFuture<Void>) -> Bool {
        let most = network.share(limits.connectionsPerNetworkMax, of: limits.connectionsMax)
        let isWithin = counts.withLock { counts in
            let count = counts[network] ?? 0
            guard count < most else { return false }
            counts[network] = count + 1
            return true
        }
        guard isWithin else {
            statistics.refused(.connectionShare)
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
