import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// A WebSocket server on a free port of this machine, whose connections the test serves.
final class SoraServer: Sendable {
    private typealias Socket = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    /// One connection: texts as they come, and what to send.
    struct Connection: Sendable {
        fileprivate enum Outgoing: Sendable {
            case text(String)
            case pieces([String])
            case close(UInt16, String)
        }
        /// The path with its query that was asked for.
        let uri: String
        let texts: AsyncStream<String>
        fileprivate let outgoing: AsyncStream<Outgoing>.Continuation

        func send(_ text: String) { outgoing.yield(.text(text)) }
        /// One message in several frames.
        func send(pieces: [String]) { outgoing.yield(.pieces(pieces)) }
        func close(_ code: UInt16, _ reason: String) { outgoing.yield(.close(code, reason)) }
    }

    let port: Int
    private let channel: any Channel
    private let serving: Task<Void, Never>

    /// - Parameter serve: called for each connection; the socket is closed when both it and the client are done.
    static func start(_ serve: @escaping @Sendable (Connection) async -> Void) async throws -> SoraServer {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture { try configure(channel) }
            }
        let serving = Task {
            _ = try? await server.executeThenClose { inbound in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await upgrade in inbound {
                            group.addTask {
                                guard let (socket, uri) = try? await upgrade.get() else { return }
                                await carry(socket, uri: uri, serve)
                            }
                        }
                    } catch {}
                }
            }
        }
        return SoraServer(port: server.channel.localAddress?.port ?? 0, channel: server.channel, serving: serving)
    }

    private init(port: Int, channel: any Channel, serving: Task<Void, Never>) {
        self.port = port
        self.channel = channel
        self.serving = serving
    }

    /// Ends when the last connection has.
    func stop() async {
        try? await channel.close()
        await serving.value
    }

    private static func configure(_ channel: any Channel) throws -> EventLoopFuture<(Socket, String)?> {
        let upgrader = NIOTypedWebSocketServerUpgrader<(Socket, String)?>(
            maxFrameSize: 1 << 20,
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(head.uri.hasPrefix("/none") ? nil : HTTPHeaders())
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture { (try Socket(wrappingChannelSynchronously: channel), head.uri) }
            }
        )
        return try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
            configuration: NIOUpgradableHTTPServerPipelineConfiguration(
                upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
                    upgraders: [upgrader],
                    notUpgradingCompletionHandler: { channel in
                        channel.close(promise: nil)
                        return channel.eventLoop.makeSucceededFuture(nil)
                    }
                )
            )
        )
    }

    private static func carry(
        _ socket: Socket,
        uri: String,
        _ serve: @escaping @Sendable (Connection) async -> Void
    ) async {
        let (texts, sink) = AsyncStream.makeStream(of: String.self)
        let (messages, outgoing) = AsyncStream.makeStream(of: Connection.Outgoing.self)
        _ = try? await socket.executeThenClose { inbound, outbound in
            await withDiscardingTaskGroup { group in
                group.addTask { await serve(Connection(uri: uri, texts: texts, outgoing: outgoing)) }
                group.addTask { try? await write(messages, to: outbound) }
                do {
                    reading: for try await frame in inbound {
                        switch frame.opcode {
                        case .text: sink.yield(String(buffer: frame.unmaskedData))
                        case .connectionClose: break reading
                        default: break
                        }
                    }
                } catch {}
                sink.finish()
                outgoing.finish()
            }
        }
    }

    private static func write(
        _ messages: AsyncStream<Connection.Outgoing>,
        to outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
    ) async throws {
        for await message in messages {
            switch message {
            case .text(let text):
                try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(string: text)))
            case .pieces(let pieces):
                for (index, piece) in pieces.enumerated() {
                    try await outbound.write(
                        WebSocketFrame(
                            fin: index == pieces.count - 1,
                            opcode: index == 0 ? .text : .continuation,
                            data: ByteBuffer(string: piece)
                        )
                    )
                }
            case .close(let code, let reason):
                var data = ByteBuffer()
                data.writeInteger(code)
                data.writeString(reason)
                try await outbound.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: data))
            }
        }
    }
}
