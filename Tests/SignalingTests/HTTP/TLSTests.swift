import Access
import Foundation
import Glibc
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

@testable import Operators
@testable import Signaling
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct TLSTests {
    /// A server with the certificate.
    private func withServer(
        certificate: String,
        key: String,
        sharedTURN: SharedTURN? = nil,
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in },
        _ body: (PublicServer, HTTPSCertificate) async throws -> Void
    ) async throws {
        let https = try HTTPSCertificate(
            chain: PEMFile(path: "certificate.pem", contents: Array(certificate.utf8)),
            key: PEMFile(path: "key.pem", contents: Array(key.utf8))
        )
        let directory = ChannelDirectory(planes: [FakeMediaPlane()])
        let server = PublicServer(
            configuration: SignalingConfiguration(port: 0, certificate: https, sharedTURN: sharedTURN),
            directory: directory,
            authorizer: OpenAuthorizer(),
            logger: SignalingBench.quiet,
            onRunning: onRunning
        )
        try await body(server, https)
    }

    @Test func `a key of another certificate is refused with a sentence`() async throws {
        let error = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: TestCertificate.chain, key: TestCertificate.otherKey) { _, _ in }
        }
        #expect(error?.message.contains("do not belong together") == true)
    }

    @Test(arguments: ["", "garbage"])
    func `files without PEM in them are refused with a sentence`(text: String) async throws {
        let first = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: text, key: TestCertificate.key) { _, _ in }
        }
        #expect(first?.message.contains("certificate.pem") == true)
        let second = await #expect(throws: ServerStartError.self) {
            try await withServer(certificate: TestCertificate.chain, key: text) { _, _ in }
        }
        #expect(second?.message.contains("key.pem") == true)
    }

    /// Runs the body against a server that listens with the certificate.
    private func withRunningServer(
        sharedTURN: SharedTURN? = nil,
        _ body: @escaping @Sendable (Int, HTTPSCertificate) async throws -> Void
    ) async throws {
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        try await withServer(
            certificate: TestCertificate.chain,
            key: TestCertificate.key,
            sharedTURN: sharedTURN,
            onRunning: { announce.yield($0) },
            { server, certificate in
                let group = ServiceGroup(
                    services: [server],
                    gracefulShutdownSignals: [],
                    logger: SignalingBench.quiet
                )
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask { try await group.run() }
                    var iterator = ports.makeAsyncIterator()
                    let port = try #require(await iterator.next())
                    try await body(port, certificate)
                    await group.triggerGracefulShutdown()
                    try await tasks.waitForAll()
                }
            }
        )
    }

    private static func clientContext(
        trusting chain: String = TestCertificate.chain,
        _ protocols: [String] = []
    ) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = protocols
        configuration.trustRoots = .certificates([try NIOSSLCertificate(bytes: Array(chain.utf8), format: .pem)])
        return try NIOSSLContext(configuration: configuration)
    }

    @Test func `the page is served over TLS`() async throws {
        try await withRunningServer { port, _ in
            let answer = try await Self.get(port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `WebSockets work over TLS`() async throws {
        try await withRunningServer { port, _ in
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

    private static let others = (
        chain: PEMFile(path: "other.pem", contents: Array(TestCertificate.otherChain.utf8)),
        key: PEMFile(path: "other-key.pem", contents: Array(TestCertificate.otherKey.utf8))
    )

    @Test func `new connections use the renewed certificate, and open ones go on`() async throws {
        try await withRunningServer { port, certificate in
            let before = certificate.facts
            try await withWebSocket(to: port, tls: Self.clientContext()) { client, input in
                try certificate.replace(chain: Self.others.chain, key: Self.others.key)
                #expect(certificate.facts.serial != before.serial && certificate.facts.serial.utf8.count == 40)
                try await client.send(SoraBench.connect())
                #expect(try await input.message("offer")["channel_id"] == "room")
                try await client.send(#"{"type":"disconnect"}"#)
                _ = try await input.close()
            }
            let answer = try await Self.get(port: port, trusting: TestCertificate.otherChain)
            #expect(answer.hasPrefix("HTTP/1.1 200"))
            await #expect(throws: (any Error).self) { try await Self.get(port: port) }
        }
    }

    @Test func `unusable files leave the certificate as it was`() async throws {
        try await withRunningServer { port, certificate in
            let before = certificate.facts
            let empty = PEMFile(path: "empty.pem", contents: [])
            let pairs = [
                (empty, Self.others.key), (Self.others.chain, empty),
                (PEMFile(path: "certificate.pem", contents: Array(TestCertificate.chain.utf8)), Self.others.key),
            ]
            for (chain, key) in pairs {
                #expect(throws: ServerStartError.self) { try certificate.replace(chain: chain, key: key) }
            }
            #expect(certificate.facts == before)
            let answer = try await Self.get(port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `a connection that names the TURN server leaves with its bytes, and others are HTTPS`() async throws {
        let (taken, announce) = AsyncStream.makeStream(of: (Int32, [UInt8]).self)
        let turn = SharedTURN(name: "turn.example") { announce.yield(($0, $1)) }
        try await withRunningServer(sharedTURN: turn) { port, _ in
            #expect(try await Self.get(port: port).hasPrefix("HTTP/1.1 200"), "another name, and no protocol")
            #expect(try await Self.get(port: port, protocols: ["http/1.1"]).hasPrefix("HTTP/1.1 200"))
            let tcp = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let context = try Self.clientContext()
                        let tls = try NIOSSLClientHandler(context: context, serverHostname: "turn.example")
                        try channel.pipeline.syncOperations.addHandler(tls)
                        return channel
                    }
                }
            var iterator = taken.makeAsyncIterator()
            let (descriptor, received) = try #require(await iterator.next())
            #expect(received.first == 22 && received.count > 100)
            // The server has closed its own descriptor, and the connection is still there.
            #expect(tcp.isActive)
            #expect(try await Self.get(port: port).hasPrefix("HTTP/1.1 200"))
            close(descriptor)
            try? await tcp.closeFuture.get()
        }
    }

    @Test func `the admin address is served over TLS, with the renewed certificate for new connections`() async throws {
        let certificate = try HTTPSCertificate(
            chain: PEMFile(path: "certificate.pem", contents: Array(TestCertificate.chain.utf8)),
            key: PEMFile(path: "key.pem", contents: Array(TestCertificate.key.utf8))
        )
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let server = AdminServer(
            host: "127.0.0.1",
            port: 0,
            certificate: certificate,
            logger: SignalingBench.quiet,
            metrics: { "" },
            whyNotReady: { nil },
            onRunning: { announce.yield($0) }
        )
        let group = ServiceGroup(services: [server], gracefulShutdownSignals: [], logger: SignalingBench.quiet)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let first = try await Self.get("/healthz", port: port)
            #expect(first.hasPrefix("HTTP/1.1 200"))
            try certificate.replace(chain: Self.others.chain, key: Self.others.key)
            let second = try await Self.get("/readyz", port: port, trusting: TestCertificate.otherChain)
            #expect(second.hasPrefix("HTTP/1.1 200"))
            await #expect(throws: (any Error).self) { try await Self.get("/healthz", port: port) }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @concurrent private static func get(
        _ path: String = "/",
        port: Int,
        trusting chain: String = TestCertificate.chain,
        protocols: [String] = []
    ) async throws -> String {
        let context = try clientContext(trusting: chain, protocols)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let request = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            try await outbound.write(ByteBuffer(string: request))
            var text = ""
            for try await bytes in inbound where !text.contains("\r\n\r\n") { text += String(buffer: bytes) }
            return text
        }
    }
}
