internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// One connection to a server of the Redis protocol.
final class RedisConnection: Sendable {
    private static let connectTimeout = TimeAmount.milliseconds(500)

    private let channel: any Channel

    private init(_ channel: any Channel) { self.channel = channel }

    /// - Throws: ``StoreError/unavailable``.
    static func open(_ host: HostPort, tls: NIOSSLContext?) async throws(StoreError) -> RedisConnection {
        // A certificate is checked against the address when the host is one.
        let isAddress = (try? SocketAddress(ipAddress: host.host, port: host.port)) != nil
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(connectTimeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let tls {
                        let name = isAddress ? nil : host.host
                        try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                    }
                    try pipeline.addHandler(RedisHandler(RESPReader()))
                }
            }
        do {
            return RedisConnection(try await bootstrap.connect(host: host.host, port: host.port).get())
        } catch {
            throw .unavailable
        }
    }

    var isOpen: Bool { channel.isActive }

    func close() { channel.close(promise: nil) }

    /// Sends a command and waits for its reply, which may be an error reply.
    func send(_ command: RESPCommand, isHeartbeat: Bool = false, within deadline: TimeAmount) async throws(StoreError)
        -> RESPValue
    {
        guard let bytes = try? command.encoded() else { throw .unavailable }
        let promise = channel.eventLoop.makePromise(of: RESPValue.self)
        let request = RedisRequest(bytes: bytes, isHeartbeat: isHeartbeat, deadline: deadline, reply: promise)
        channel.writeAndFlush(request).cascadeFailure(to: promise)
        do {
            return try await promise.futureResult.get()
        } catch {
            throw error as? StoreError ?? .unavailable
        }
    }
}
