package import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
package import NIOSSL
internal import NIOWebSocket
package import NagareClient

/// The WebSocket of one client of Sora's signaling, over NIO.
package final class ClientWebSocket: SignalingSocket {
    private enum Outgoing: Sendable {
        case text(String)
        case close
    }

    /// An offer about a hundred members is a quarter of this.
    private static let messageBytesMax = 1 << 20
    private static let connectTimeout = TimeAmount.seconds(10)
    private static let closeTimeout = TimeAmount.seconds(5)

    /// For one reader at a time.
    package let events: AsyncStream<SignalingSocketEvent>
    private let sink: AsyncStream<SignalingSocketEvent>.Continuation
    private let outgoing: AsyncStream<Outgoing>.Continuation
    private let channel: any Channel

    /// Opens a WebSocket.
    /// - Parameters:
    ///   - url: the WebSocket's URL with scheme `ws` or `http`, `wss` or `https`.
    ///   - tls: of a URL with `wss` or `https`.
    package static func open(
        _ url: String,
        tls: TLSConfiguration = .makeClientConfiguration()
    ) async throws(ClientWebSocketError) -> ClientWebSocket {
        guard let parts = URLComponents(string: url), let host = parts.host, let scheme = parts.scheme else {
            throw .invalidURL("\(url) is not a URL.")
        }
        let isSecure = scheme == "https" || scheme == "wss"
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        do {
            let context = isSecure ? try NIOSSLContext(configuration: tls) : nil
            let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(connectTimeout)
                .connect(host: name, port: parts.port ?? (isSecure ? 443 : 80)) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let context {
                            let isAddress = name.contains(":") || name.allSatisfy { $0.isNumber || $0 == "." }
                            try channel.pipeline.syncOperations.addHandler(
                                NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
                            )
                        }
                        return try configure(channel, uri: uri(parts), host: authority(parts))
                    }
                }
            guard let socket = try await upgrade.get() else {
                throw ClientWebSocketError.failed(
                    "\(url) does not speak WebSocket; check the URL and the signaling path."
                )
            }
            return ClientWebSocket(socket)
        } catch let error as ClientWebSocketError {
            throw error
        } catch {
            throw .failed("\(url) cannot be reached: \(NetworkErrorMessage.message(for: error)).")
        }
    }

    private static func uri(_ parts: URLComponents) -> String {
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        return path + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    private static func authority(_ parts: URLComponents) -> String {
        (parts.percentEncodedHost ?? "") + (parts.port.map { ":\($0)" } ?? "")
    }

    private typealias Socket = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    private static func configure(
        _ channel: any Channel,
        uri: String,
        host: String
    ) throws -> EventLoopFuture<Socket?> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Socket?>(maxFrameSize: messageBytesMax) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0,
                        maxAccumulatedFrameCount: 1_024,
                        maxAccumulatedFrameSize: messageBytesMax
                    )
                )
                return try Socket(wrappingChannelSynchronously: channel)
            }
        }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: uri, headers: ["Host": host])
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: NIOUpgradableHTTPClientPipelineConfiguration(
                upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                    upgradeRequestHead: head,
                    upgraders: [upgrader],
                    notUpgradingCompletionHandler: { channel in
                        channel.close(promise: nil)
                        return channel.eventLoop.makeSucceededFuture(nil)
                    }
                )
            )
        )
    }

    private init(_ socket: Socket) {
        (events, sink) = AsyncStream.makeStream(of: SignalingSocketEvent.self)
        let (texts, outgoing) = AsyncStream.makeStream(of: Outgoing.self)
        self.outgoing = outgoing
        channel = socket.channel
        Task { [sink] in
            let end = await Self.run(socket, texts, outgoing, into: sink)
            sink.yield(.ended(end))
            sink.finish()
        }
    }

    package func send(_ text: String) { outgoing.yield(.text(text)) }

    /// Sends a close frame. The server's close ends the socket, or a moment without it.
    package func close() {
        outgoing.yield(.close)
        channel.eventLoop.scheduleTask(in: Self.closeTimeout) { [channel] in channel.close(promise: nil) }
    }

    /// Closes the TCP connection immediately.
    package func abandon() { channel.close(promise: nil) }

    /// Reads and writes frames until the socket's end.
    /// - Returns: the reason of the end.
    private static func run(
        _ socket: Socket,
        _ texts: AsyncStream<Outgoing>,
        _ outgoing: AsyncStream<Outgoing>.Continuation,
        into sink: AsyncStream<SignalingSocketEvent>.Continuation
    ) async -> SignalingSocketEnd {
        do {
            return try await socket.executeThenClose { inbound, outbound in
                async let written: Void = write(texts, to: outbound)
                let end: SignalingSocketEnd
                do {
                    end = try await read(inbound, outbound, into: sink)
                } catch {
                    end = .lost(NetworkErrorMessage.message(for: error))
                }
                outgoing.finish()
                _ = try? await written
                return end
            }
        } catch {
            return .lost(NetworkErrorMessage.message(for: error))
        }
    }

    private static func write(
        _ texts: AsyncStream<Outgoing>,
        to outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
    ) async throws {
        for await message in texts {
            switch message {
            case .text(let text): try await outbound.write(frame(.text, ByteBuffer(string: text)))
            case .close: try await outbound.write(closing(1_000))
            }
        }
    }

    private static func read(
        _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>,
        _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>,
        into sink: AsyncStream<SignalingSocketEvent>.Continuation
    ) async throws -> SignalingSocketEnd {
        for try await frame in inbound {
            var data = frame.unmaskedData
            switch frame.opcode {
            case .text:
                sink.yield(.text(String(buffer: data)))
            case .ping: try await outbound.write(Self.frame(.pong, data))
            case .connectionClose:
                let code = data.readInteger(as: UInt16.self)
                let reason = String(buffer: data)
                try? await outbound.write(closing(code ?? 1_000))
                // 1005 stands for a close frame without a code (RFC 6455 §7.4.1).
                return .closed(code: Int(code ?? 1_005), reason: String(reason.prefix(200)))
            default: break
            }
        }
        return .lost("the server closed it without a close frame")
    }

    private static func frame(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }

    private static func closing(_ code: UInt16) -> WebSocketFrame {
        var data = ByteBuffer()
        data.writeInteger(code)
        return frame(.connectionClose, data)
    }
}

/// Why a WebSocket could not be opened, as a sentence.
package enum ClientWebSocketError: Error, Equatable, CustomStringConvertible {
    case invalidURL(String)
    case failed(String)

    package var description: String {
        switch self {
        case .invalidURL(let sentence), .failed(let sentence): sentence
        }
    }
}

extension SignalingSocketEnd {
    /// A sentence for people.
    package var sentence: String {
        switch self {
        case .closed(1_005, let reason): "The server closed with no code" + (reason.isEmpty ? "." : " \(reason).")
        case .closed(let code, let reason): "The server closed with \(code)" + (reason.isEmpty ? "." : " \(reason).")
        case .lost(let why): "The connection was lost: \(why)."
        }
    }
}

/// Opens WebSockets over NIO, for a ``ChannelClient``.
package struct NIOSignaling: SignalingTransport {
    private let tls: TLSConfiguration

    /// - Parameter tls: of nodes with `wss`.
    package init(tls: TLSConfiguration = .makeClientConfiguration()) { self.tls = tls }

    package func connect(to url: URL) async throws -> any SignalingSocket {
        try await ClientWebSocket.open(url.absoluteString, tls: tls)
    }
}
