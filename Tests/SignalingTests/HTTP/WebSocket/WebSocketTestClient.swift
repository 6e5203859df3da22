import JSON
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Testing

@testable import Web

/// A WebSocket client on a real socket.
struct WebSocketTestClient: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>

    func send(_ text: String) async throws { try await send(.text, Array(text.utf8)) }

    func send(_ opcode: WebSocketOpcode, _ bytes: [UInt8], fin: Bool = true, isMasked: Bool = true) async throws {
        let data = ByteBuffer(bytes: bytes)
        try await outbound.write(
            WebSocketFrame(fin: fin, opcode: opcode, maskKey: isMasked ? .random() : nil, data: data)
        )
    }
}

/// The server's messages on one WebSocket.
struct WebSocketTestInput {
    var iterator: NIOAsyncChannelInboundStream<WebSocketFrame>.AsyncIterator

    /// The next frame that is no ping; `nil` when the server closed the connection.
    @concurrent mutating func frame() async throws -> WebSocketFrame? {
        while let frame = try await iterator.next() {
            if frame.opcode != .ping { return frame }
        }
        return nil
    }

    /// The next message of one of these types, others skipped.
    @concurrent mutating func message(_ types: String...) async throws -> JSONValue {
        while let frame = try await frame() {
            guard frame.opcode == .text else {
                Issue.record("closed instead of \(types): \(String(buffer: frame.unmaskedData))")
                break
            }
            let value = try JSONValue(parsing: String(buffer: frame.unmaskedData))
            if let type = value["type"]?.string, types.contains(type) { return value }
        }
        throw WebSocketTestError.closed
    }

    /// The next event of a type.
    @concurrent mutating func event(_ type: String) async throws -> JSONValue {
        while true {
            let value = try await message("notify")
            if value["event_type"] == .string(type) { return value }
        }
    }

    /// Reads on to the server's Close.
    @concurrent mutating func close() async throws -> WebSocketClose? {
        while let frame = try await frame() {
            guard frame.opcode == .connectionClose else { continue }
            var data = frame.unmaskedData
            guard let code: UInt16 = data.readInteger() else { return nil }
            return WebSocketClose(code, String(buffer: data))
        }
        return nil
    }
}

enum WebSocketTestError: Error { case refused, closed }

/// Opens a WebSocket for as long as the body runs.
///
/// - Parameter tls: The context that verifies the server's certificate; `nil` for a plain connection.
@concurrent func withWebSocket<Value: Sendable>(
    to port: Int,
    path: String = "/signaling",
    forwardedFor: String? = nil,
    traceparent: String? = nil,
    tls: NIOSSLContext? = nil,
    _ body: @concurrent (WebSocketTestClient, inout WebSocketTestInput) async throws -> Value
) async throws -> Value {
    typealias Frames = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>
    let upgraded = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                if let tls {
                    let handler = try NIOSSLClientHandler(context: tls, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
                let upgrader = NIOTypedWebSocketClientUpgrader<Frames?>(maxFrameSize: 1 << 24) { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try Frames(wrappingChannelSynchronously: channel) }
                }
                var head = HTTPRequestHead(
                    version: .http1_1,
                    method: .GET,
                    uri: path,
                    headers: ["Host": "127.0.0.1", "Content-Length": "0"]
                )
                if let forwardedFor { head.headers.add(name: "X-Forwarded-For", value: forwardedFor) }
                if let traceparent { head.headers.add(name: "traceparent", value: traceparent) }
                return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                    configuration: .init(
                        upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                            upgradeRequestHead: head,
                            upgraders: [upgrader],
                            notUpgradingCompletionHandler: { channel in
                                channel.close().map { nil }
                            }
                        )
                    )
                )
            }
        }
    guard let channel = try await upgraded.get() else { throw WebSocketTestError.refused }
    return try await channel.executeThenClose { inbound, outbound in
        var input = WebSocketTestInput(iterator: inbound.makeAsyncIterator())
        return try await body(WebSocketTestClient(outbound: outbound), &input)
    }
}
