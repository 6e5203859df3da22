import NIOCore
import NIOHTTP1
import Testing

@testable import Signaling
@testable import Web

/// Requests with an `Upgrade` field over real sockets.
@Suite(.timeLimit(.minutes(10)))
struct UpgradeTests {
    private static let h2c =
        "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"

    private static func handshake(_ path: String = "/signaling", version: String = "13", more: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: \(version)\r\n\(more)\r\n"
    }

    /// The whole answer to one request.
    private static func answer(_ request: String, _ limits: HTTPLimits = HTTPLimits()) async throws -> String {
        try await withLiveServer(http: limits) { _, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send(request)
                return await input.readToEnd()
            }
        }
    }

    @Test func `a request to upgrade to HTTP/2 is answered in HTTP/1.1 with Connection: close`() async throws {
        let page = try await Self.answer("GET / HTTP/1.1\r\n\(Self.h2c)\r\n")
        #expect(page.hasPrefix("HTTP/1.1 200") && page.contains("<html"))
        #expect(page.lowercased().contains("\r\nconnection: close\r\n"))
        let body = Offers.publish
        let created = try await Self.answer(
            "POST /whip/a HTTP/1.1\r\n\(Self.h2c)Content-Type: application/sdp\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        #expect(created.hasPrefix("HTTP/1.1 201") && created.contains("v=0"))
    }

    @Test func `a later request with an Upgrade field is answered`() async throws {
        try await withLiveServer { _, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send("GET /whip/a HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(await input.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 204"))
                try await client.send(Self.handshake())
                let answer = await input.readToEnd()
                #expect(answer.hasPrefix("HTTP/1.1 426") && answer.contains("first request"))
            }
        }
    }

    @Test func `a refused WebSocket handshake is answered`() async throws {
        #expect(try await Self.answer(Self.handshake("/x")).hasPrefix("HTTP/1.1 404"))
        #expect(try await Self.answer(Self.handshake("/")).hasPrefix("HTTP/1.1 200"))
        let version = try await Self.answer(Self.handshake(version: "12"))
        #expect(version.hasPrefix("HTTP/1.1 426"))
        #expect(version.lowercased().contains("\r\nsec-websocket-version: 13\r\n"))
        let withBody = try await Self.answer(Self.handshake(more: "Content-Length: 2\r\n") + "ab")
        #expect(withBody.hasPrefix("HTTP/1.1 426"))
    }

    @Test func `a WebSocket handshake above the rate of its address gets Retry-After`() async throws {
        var limits = HTTPLimits()
        limits.requestBurst = 1
        limits.requestsPerSecond = 0.001
        try await withLiveServer(http: limits) { _, port, _ in
            try await withWebSocket(to: port) { _, _ in }
            try await withConnection(to: port) { client, input in
                try await client.send(Self.handshake())
                let answer = await input.readToEnd()
                #expect(answer.hasPrefix("HTTP/1.1 429") && answer.lowercased().contains("\r\nretry-after: "))
            }
        }
    }

    @Test func `a refused WebSocket handshake costs one request`() async throws {
        var limits = HTTPLimits()
        limits.requestBurst = 3
        limits.requestsPerSecond = 0.001
        let proxies = ProxyConfiguration(trusted: [AddressRange("127.0.0.1")!])
        try await withLiveServer(http: limits, proxies: proxies) { bench, port, _ in
            func answer(_ address: String) async throws -> String {
                try await withConnection(to: port) { client, input in
                    try await client.send(Self.handshake(more: "X-Forwarded-For: \(address)\r\n"))
                    return await input.read(until: "\r\n\r\n")
                }
            }
            for _ in 0..<3 {
                let granted = try await answer("192.0.2.1")
                #expect(granted.hasPrefix("HTTP/1.1 101"))
            }
            let refused = try await answer("192.0.2.1")
            #expect(refused.hasPrefix("HTTP/1.1 429"))
            #expect(bench.statistics.counts.refusals == [.requestRate: 1])
            let other = try await answer("192.0.2.2")
            #expect(other.hasPrefix("HTTP/1.1 101"))
        }
    }

    @Test func `a WebSocket handshake above the connections of its address gets Retry-After`() async throws {
        let limits = HTTPLimits(connectionsPerNetworkMax: 1, requestBurst: 3, requestsPerSecond: 0.001)
        let proxies = ProxyConfiguration(trusted: [AddressRange("127.0.0.1")!])
        try await withLiveServer(http: limits, proxies: proxies) { bench, port, _ in
            try await withWebSocket(to: port, forwardedFor: "192.0.2.1") { _, _ in
                for _ in 0..<2 {
                    try await withConnection(to: port) { client, input in
                        try await client.send(Self.handshake(more: "X-Forwarded-For: 192.0.2.1\r\n"))
                        let answer = await input.readToEnd()
                        #expect(answer.hasPrefix("HTTP/1.1 429") && answer.lowercased().contains("\r\nretry-after: "))
                        #expect(answer.contains("limit of connections"))
                    }
                }
            }
            #expect(bench.statistics.counts.refusals == [.connectionShare: 2], "each cost one request")
        }
    }

    @Test func `only a complete WebSocket handshake is accepted`() {
        let complete: [(String, String)] = [
            ("Upgrade", "foo, WebSocket"), ("Sec-WebSocket-Key", "k"), ("Sec-WebSocket-Version", "13"),
        ]
        func isHandshake(_ fields: [(String, String)], _ method: HTTPMethod = .GET) -> Bool {
            let head = HTTPRequestHead(version: .http1_1, method: method, uri: "/", headers: HTTPHeaders(fields))
            return UpgradeFilter.isHandshake(head)
        }
        #expect(isHandshake(complete) && isHandshake(complete + [("Content-Length", "0")]))
        #expect(!isHandshake(complete, .POST))
        for index in complete.indices {
            var fields = complete
            fields.remove(at: index)
            #expect(!isHandshake(fields))
        }
        for more in [
            ("Content-Length", "1"), ("Transfer-Encoding", "chunked"), ("Sec-WebSocket-Key", "l"),
            ("Sec-WebSocket-Version", "8"),
        ] { #expect(!isHandshake(complete + [more])) }
    }
}
