import Access
import Foundation
import JSON
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Room
import RoomTestSupport
import ServiceLifecycle
import TestSupport
import Testing

@testable import Signaling

@Suite(.timeLimit(.minutes(30)))
struct TLSTests {
    /// A server whose files exist while the body runs.
    private func withServer(
        certificate: String,
        key: String,
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in },
        _ body: (PublicServer, Rooms) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = (folder.appending(path: "certificate.pem"), folder.appending(path: "key.pem"))
        try certificate.write(to: files.0, atomically: true, encoding: .utf8)
        try key.write(to: files.1, atomically: true, encoding: .utf8)
        let rooms = Rooms(planes: [FakeMediaPlane()])
        let tls = SignalingConfiguration.TLS(certificatePath: files.0.path, keyPath: files.1.path)
        let server = try PublicServer(
            configuration: SignalingConfiguration(port: 0, tls: tls),
            rooms: rooms,
            authorizer: OpenAuthorizer(),
            logger: SignalingBench.quiet,
            onRunning: onRunning
        )
        try await body(server, rooms)
    }

    @Test func `a key of another certificate is refused with a sentence`() async throws {
        let error = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: TestCertificate.chain, key: TestCertificate.otherKey) { _, _ in }
        }
        #expect(error?.sentence.contains("do not belong together") == true)
    }

    @Test(arguments: ["", "garbage"])
    func `files without PEM in them are refused with a sentence`(text: String) async throws {
        let first = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: text, key: TestCertificate.key) { _, _ in }
        }
        #expect(first?.sentence.contains("certificate.pem") == true)
        let second = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: TestCertificate.chain, key: text) { _, _ in }
        }
        #expect(second?.sentence.contains("key.pem") == true)
    }

    /// Runs the body against a server that listens with the certificate.
    private func withRunningServer(_ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        try await withServer(
            certificate: TestCertificate.chain,
            key: TestCertificate.key,
            onRunning: { announce.yield($0) },
            { server, _ in
                let group = ServiceGroup(
                    services: [server],
                    gracefulShutdownSignals: [],
                    logger: SignalingBench.quiet
                )
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask { try await group.run() }
                    var iterator = ports.makeAsyncIterator()
                    let port = try #require(await iterator.next())
                    try await body(port)
                    await group.triggerGracefulShutdown()
                    try await tasks.waitForAll()
                }
            }
        )
    }

    private static func clientContext() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(
            [try NIOSSLCertificate(bytes: Array(TestCertificate.chain.utf8), format: .pem)])
        return try NIOSSLContext(configuration: configuration)
    }

    @Test func `the page is served over TLS`() async throws {
        try await withRunningServer { port in
            let answer = try await Self.get(port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `WebSockets work over TLS`() async throws {
        try await withRunningServer { port in
            try await withWebSocket(to: port, tls: Self.clientContext()) { client, input in
                try await client.send(SoraBench.connect())
                let offer = try await input.message("offer")
                #expect(offer["channel_id"] == "room")
                try await client.send(#"{"type":"disconnect"}"#)
                let close = try await input.close()
                #expect(close == WebSocketClose(1000, "TYPE-DISCONNECT"))
            }
        }
    }

    @concurrent private static func get(port: Int) async throws -> String {
        let context = try clientContext()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            try await outbound.write(ByteBuffer(string: request))
            var text = ""
            for try await bytes in inbound where !text.contains("\r\n\r\n") { text += String(buffer: bytes) }
            return text
        }
    }
}
