import Access
import Base
import ChannelTypes
import Logging
import NIOCore
import NIOPosix
import Room
import ServiceLifecycle
import Testing

@testable import Ayame
@testable import Signaling
@testable import Sora
@testable import Web
@testable import Webhooks

/// The public listener on a loopback port, for as long as the body runs, and ended gracefully after it.
func withLiveServer<Value: Sendable>(
    limits: RoomLimits = RoomLimits(),
    http: HTTPLimits = HTTPLimits(),
    authorizer: any Authorizer = OpenAuthorizer(),
    heartbeatInterval: Duration = .seconds(3600),
    sora: SoraConfiguration = SoraConfiguration(),
    proxies: ProxyConfiguration = ProxyConfiguration(),
    ayame: AyameConfiguration = AyameConfiguration(),
    webhookClient: WebhookClient? = nil,
    cluster: (any OtherNodes)? = nil,
    relayCluster: (any OtherNodes)? = nil,
    relays: (any CallTURNServers)? = nil,
    now: (@Sendable () -> Instant)? = nil,
    traces: JoinTracer? = nil,
    logger: Logger = SignalingBench.quiet,
    onCallReport: @escaping @Sendable (CallReport) -> Void = { _ in },
    _ body: @Sendable (SignalingBench, Int, ServiceGroup) async throws -> Value
) async throws -> Value {
    let (ports, announce) = AsyncStream.makeStream(of: Int.self)
    let bench = try SignalingBench(
        limits: limits,
        http: http,
        authorizer: authorizer,
        heartbeatInterval: heartbeatInterval,
        sora: sora,
        proxies: proxies,
        ayame: ayame,
        webhookClient: webhookClient,
        cluster: cluster,
        relayCluster: relayCluster,
        relays: relays,
        now: now,
        traces: traces,
        logger: logger,
        onCallReport: onCallReport
    ) { announce.yield($0) }
    let group = ServiceGroup(
        services: [RoomsService(bench.directory), bench.server],
        gracefulShutdownSignals: [],
        logger: SignalingBench.quiet
    )
    return try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        var iterator = ports.makeAsyncIterator()
        let port = try #require(await iterator.next())
        let value = try await body(bench, port, group)
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        return value
    }
}

/// Reads and writes bytes on one connection.
struct RawClient: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>

    func send(_ text: String) async throws { try await outbound.write(ByteBuffer(string: text)) }
    func send(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }
}

/// The received data of a connection.
struct RawInput {
    var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private(set) var text = ""

    init(_ iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator) { self.iterator = iterator }

    /// Reads until `marker` arrives or the server closes the connection, and returns the data up to there.
    @concurrent mutating func read(until marker: String) async -> String {
        while !text.contains(marker) {
            guard let next = try? await iterator.next() else { break }
            text += String(buffer: next)
        }
        guard let range = text.firstRange(of: marker) else {
            defer { text = "" }
            return text
        }
        let read = String(text[..<range.upperBound])
        text = String(text[range.upperBound...])
        return read
    }

    /// Reads until the server closes.
    @concurrent mutating func readToEnd() async -> String { await read(until: "\u{0}never\u{0}") }

    /// Reads until the server closes; throws when it resets the connection.
    @concurrent mutating func readToCleanEnd() async throws -> String {
        while let next = try await iterator.next() { text += String(buffer: next) }
        defer { text = "" }
        return text
    }
}

@concurrent func withConnection<Value: Sendable>(
    to port: Int,
    _ body: @concurrent (RawClient, inout RawInput) async throws -> Value
) async throws -> Value {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
    return try await channel.executeThenClose { inbound, outbound in
        var input = RawInput(inbound.makeAsyncIterator())
        return try await body(RawClient(outbound: outbound), &input)
    }
}
