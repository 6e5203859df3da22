import Access
import Admission
import Base
import ChannelTypes
import Foundation
import HTTPTypes
import HummingbirdTesting
import MediaTypes
import NIOCore
import Room
import ServiceLifecycle
import TestSupport
import Testing

@testable import Signaling
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct LiveTests {
    static let malformed: [(name: String, bytes: [UInt8])] = [
        ("garbage", Array("\u{16}\u{03}\u{01}not HTTP at all\r\n\r\n".utf8)),
        ("bytes above 127", Array(repeating: 0xFF, count: 64) + Array("\r\n\r\n".utf8)),
        ("zeros", Array(repeating: 0, count: 64)),
        ("no version", Array("GET /\r\n\r\n".utf8)),
        ("HTTP/2 preface", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)),
        ("bad method", Array("G\u{1}T / HTTP/1.1\r\n\r\n".utf8)),
        ("space in a header's name", Array("GET / HTTP/1.1\r\nA b: c\r\n\r\n".utf8)),
        ("two lengths", Array("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".utf8)),
        ("negative length", Array("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".utf8)),
        ("length beyond 64 bits", Array("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n".utf8)),
        (
            "length and chunks",
            Array("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".utf8)
        ),
        ("bad chunk size", Array("POST /whip/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".utf8)),
        (
            "chunk size beyond 64 bits",
            Array("POST /whip/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".utf8)
        ),
        ("header field too large", Array(("GET / HTTP/1.1\r\nA: " + String(repeating: "a", count: 20_000)).utf8)),
        (
            "too many headers",
            Array(("GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 2000) + "\r\n").utf8)
        ),
        ("endless request line", Array(("GET /" + String(repeating: "a", count: 200_000)).utf8)),
    ]

    @Test(arguments: malformed.indices)
    func `data that is not HTTP gets 4xx or a closed connection, and other clients are served`(index: Int) async throws
    {
        let (name, bytes) = Self.malformed[index]
        try await withLiveServer { _, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                try? await client.send(bytes)
                client.outbound.finish()
                return await input.readToEnd()
            }
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(name): \(answer.prefix(80))")
            let after = try await Self.get("/", port: port)
            #expect(after.hasPrefix("HTTP/1.1 200"), "\(name)")
        }
    }

    /// Of what is larger than the first read, a part is unread when the server answers and closes.
    @Test(arguments: [100, 4000, 60_000])
    func `data that is not HTTP is answered, and its connection ends without a reset`(length: Int) async throws {
        try await withLiveServer { _, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                try await client.send(Array(repeating: 0xFF, count: length))
                return try await input.readToCleanEnd()
            }
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer.prefix(80))")
        }
    }

    static func get(_ path: String, port: Int) async throws -> String {
        try await withConnection(to: port) { client, input in
            try await client.send("GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return await input.read(until: "\r\n\r\n")
        }
    }

    @Test(arguments: [
        "*", "//", "http://", "://", "/whip/%", "/\u{FFFD}", "?", "/?&&==", "/whip/a?name=%", "relative",
        "/sessions/../../x",
    ])
    func `unusual request targets get a valid response`(target: String) async throws {
        try await withLiveServer { _, port, _ in
            for method in ["GET", "POST", "OPTIONS", "BREW"] {
                let answer = try await withConnection(to: port) { client, input in
                    try await client.send("\(method) \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    return await input.read(until: "\r\n\r\n")
                }
                #expect(["HTTP/1.1 2", "HTTP/1.1 4"].contains { answer.hasPrefix($0) }, "\(method): \(answer)")
            }
        }
    }

    @Test func `an endless body is refused and the connection closed`() async throws {
        let limits = HTTPLimits(bodyBytesMax: 1000, drainBytesMax: 50_000)
        try await withLiveServer(http: limits) { bench, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                try await client.send(
                    "POST /whip/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\n"
                        + "Transfer-Encoding: chunked\r\n\r\n"
                )
                let chunk = "400\r\n" + String(repeating: "a", count: 1024) + "\r\n"
                for _ in 0..<100 { try? await client.send(chunk) }
                return await input.readToEnd()
            }
            #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer.prefix(200))")
            await bench.expectNothingLeft()
        }
    }

    @Test func `a declared length far too large is refused before the body is sent`() async throws {
        try await withLiveServer { _, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                try await client.send(
                    "POST /whip/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\n"
                        + "Content-Length: 9000000000\r\n\r\n"
                )
                return await input.readToEnd()
            }
            #expect(answer.hasPrefix("HTTP/1.1 413") && answer.lowercased().contains("connection: close"))
        }
    }

    @Test func `a body of a few megabytes is refused, and the connection stays open`() async throws {
        try await withLiveServer { _, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send(
                    "POST /whip/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\n"
                        + "Content-Length: 3000000\r\n\r\n"
                )
                try await client.send(Array(repeating: 0x61, count: 3_000_000))
                #expect(await input.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 413"))
                _ = await input.read(until: "}")
                try await client.send("GET /whip/a HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(await input.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 204"))
            }
        }
    }

    @Test func `a body that stops arriving gets 408`() async throws {
        try await withLiveServer(http: HTTPLimits(bodyTimeout: .milliseconds(50))) { bench, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                try await client.send(
                    "POST /whip/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\n"
                        + "Content-Length: 100\r\n\r\nv=0"
                )
                return await input.readToEnd()
            }
            #expect(answer.hasPrefix("HTTP/1.1 408"))
            await bench.expectNothingLeft()
        }
    }

    @Test func `a silent connection is closed`() async throws {
        try await withLiveServer(http: HTTPLimits(idleTimeout: .milliseconds(50))) { _, port, _ in
            let answer = try await withConnection(to: port) { client, input in
                // Refused where the machine was slow and the connection is closed already.
                try? await client.send("GET / HTTP/1.1\r\nHo")
                return await input.readToEnd()
            }
            #expect(answer.isEmpty)
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct EventStreamTests {
    private static let request = "GET /api/channels/lobby/events HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test func `every change is an event with the whole list`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send(Self.request)
                let head = await input.read(until: "\r\n\r\n").lowercased()
                #expect(head.hasPrefix("http/1.1 200") && head.contains("content-type: text/event-stream"))
                #expect(await input.read(until: "\n\n").contains(#""participants":[]"#))
                let publisher = try await bench.test { try await $0.publish() }
                let joined = await input.read(until: "\n\n")
                #expect(joined.contains(publisher.participant) && joined.contains(#""publishing":false"#))
                await bench.report(.connected(over: .udp))
                #expect(await input.read(until: "\n\n").contains(#""publishing":true"#))
                _ = try await bench.test { try await $0.watch() }
                #expect(await input.read(until: "\n\n").contains(#""viewers":1"#))
                _ = try await bench.test { try await $0.send(.delete, publisher.path) }
                #expect(await input.read(until: "\n\n").contains(#""participants":[]"#))
            }
        }
    }

    @Test func `a disconnected client ends its listener`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send(Self.request)
                _ = await input.read(until: "\n\n")
                #expect(await bench.directory.counts.listeners == 1)
            }
            // The connection's end travels through the loopback: there is no event to wait for.
            try await eventually("no listener is left") { await bench.directory.counts.listeners == 0 }
            await bench.expectNothingLeft()
        }
    }

    @Test func `heartbeat comments are sent`() async throws {
        try await withLiveServer(heartbeatInterval: .milliseconds(5)) { _, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send(Self.request)
                _ = await input.read(until: "\n\n")
                for _ in 0..<3 { #expect(await input.read(until: "\n\n").contains(": still here")) }
            }
        }
    }

    @Test func `an event stream ends at the expiry of its token`() async throws {
        let app = try AppKey(appID: "live", key: "correct-horse-battery")
        // It admits at any time, so that a slow machine is in time too.
        let authorizer = SignatureAuthorizer(
            keys: AccessKeys(apps: AppKeys([app])),
            logger: SignalingBench.quiet,
            now: { 0 }
        )
        try await withLiveServer(authorizer: authorizer) { bench, port, _ in
            try await withConnection(to: port) { client, input in
                let expiry = Int64(Date().timeIntervalSince1970) + 2
                let token = try app.token(channelID: "lobby", userID: "u", expiry: expiry).parameter
                // A line's end is one character.
                try await client.send(Self.request.dropLast() + "Authorization: Bearer \(token)\r\n\r\n")
                #expect(await input.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200"))
                #expect(await input.read(until: "0\r\n\r\n").hasSuffix("0\r\n\r\n"))
                #expect(Date().timeIntervalSince1970 >= Double(expiry))
            }
            try await eventually("no listener is left") { await bench.directory.counts.listeners == 0 }
        }
    }

    @Test func `listeners are bounded`() async throws {
        let bench = try SignalingBench(limits: RoomLimits(listenersMax: 0))
        try await bench.test { http in
            let response = try await http.send(.get, "/api/channels/lobby/events")
            #expect(response.status.code == 503)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a graceful shutdown ends event streams and participants, and the listener closes`() async throws {
        try await withLiveServer { bench, port, group in
            _ = try await bench.test { try await $0.publish() }
            try await withConnection(to: port) { client, input in
                try await client.send(Self.request)
                _ = await input.read(until: "\n\n")
                await group.triggerGracefulShutdown()
                _ = await input.readToEnd()
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
            await bench.expectNothingLeft()
            await #expect(throws: (any Error).self) { try await withConnection(to: port) { _, _ in } }
        }
    }

    @Test func `a used port is reported in a sentence`() async throws {
        try await withLiveServer { bench, port, _ in
            let second = PublicServer(
                configuration: SignalingConfiguration(port: port),
                directory: bench.directory,
                authorizer: OpenAuthorizer(),
                logger: SignalingBench.quiet
            )
            let error = await #expect(throws: ServerStartError.self) { try await second.run() }
            #expect(error?.message.contains("Cannot listen on 127.0.0.1:\(port)") == true)
        }
    }
}
