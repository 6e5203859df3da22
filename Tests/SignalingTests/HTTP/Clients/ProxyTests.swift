import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Sora
@testable import Web

@Suite struct ProxyTests {
    @Test(
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("0.0.0.0/0", "192.0.2.1", true),
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false), ("192.0.2.6/31", "192.0.2.7", true),
            ("::1", "::1", true), ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
            ("::/0", "192.0.2.1", false), ("0.0.0.0/0", "::1", false), ("2001:db8::/127", "2001:db8::1", true),
            ("2001:db8::/127", "2001:db8::2", false), ("fe80::/64", "fe80::ffff", true),
            ("fe80::/64", "fe80:0:0:1::", false),
        ] as [(String, String, Bool)]
    )
    func `a range holds the addresses of its prefix`(range: String, address: String, isInside: Bool) throws {
        let range = try #require(AddressRange(range))
        #expect(range.contains(try #require(IPAddress(address))) == isInside)
    }

    @Test(arguments: [
        "", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/ 8", "name",
    ])
    func `an invalid range is refused`(text: String) { #expect(AddressRange(text) == nil) }

    private let proxies = ProxyConfiguration(trusted: [AddressRange("10.0.0.0/8")!, AddressRange("127.0.0.1")!])

    @Test(
        arguments: [
            ("10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
            ("10.0.0.1", ["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            ("10.0.0.1", ["198.51.100.9, 192.0.2.1 , 10.0.0.2"], "192.0.2.1"),
            ("10.0.0.1", ["198.51.100.9", "192.0.2.1", "10.0.0.2"], "192.0.2.1"),
            ("10.0.0.1", ["192.0.2.1:5678"], "192.0.2.1"), ("10.0.0.1", ["[2001:db8::1]:99"], "2001:db8::1"),
            ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", ["192.0.2.1, nonsense, 10.0.0.2"], "10.0.0.2"), ("10.0.0.1", [""], "10.0.0.1"),
            ("10.0.0.1", [], "10.0.0.1"), ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("203.0.113.5", ["192.0.2.1"], "203.0.113.5"),
        ] as [(String, [String], String)]
    )
    func `the last hop that is not a trusted proxy is the client`(peer: String, fields: [String], client: String) throws
    {
        let peer = try #require(IPAddress(peer))
        #expect(proxies.client(peer: peer, forwardedFor: fields) == IPAddress(client))
    }

    @Test func `the number of followed hops is bounded`() throws {
        let field = Array(repeating: "10.0.0.2", count: 5_000).joined(separator: ",")
        let client = proxies.client(peer: try #require(IPAddress("10.0.0.1")), forwardedFor: ["192.0.2.1," + field])
        #expect(client == IPAddress("10.0.0.2"))
    }

    // MARK: The PROXY protocol

    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]
    private static let v4: [UInt8] = signature + [0x21, 0x11, 0, 12, 192, 0, 2, 1, 10, 0, 0, 1, 0, 80, 1, 187]
    private static let v6: [UInt8] =
        signature + [0x21, 0x21, 0, 39] + [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [7]
        + Array(repeating: 1, count: 20) + [4, 0, 0]

    @Test(
        arguments: [
            (Array("PROXY TCP4 192.0.2.1 10.0.0.1 5678 443\r\nGET".utf8), "192.0.2.1", 40),
            (Array("PROXY TCP6 2001:db8::1 ::1 5678 443\r\n".utf8), "2001:db8::1", 37),
            (Array("PROXY TCP6 ::ffff:192.0.2.1 ::ffff:10.0.0.1 5678 443\r\n".utf8), "192.0.2.1", 54),
            (Array("PROXY UNKNOWN\r\n".utf8), nil, 15), (Array("PROXY UNKNOWN what ever\r\n".utf8), nil, 25),
            (v4 + [1, 2], "192.0.2.1", 28), (v6, "2001:db8::7", 55),
            (signature + [0x20, 0, 0, 0], nil, 16), (signature + [0x21, 0x31, 0, 1, 9], nil, 17),
        ] as [([UInt8], String?, Int)]
    )
    func `a header of the PROXY protocol names the client`(bytes: [UInt8], client: String?, count: Int) {
        let expected = ProxyProtocolHeader.complete(client: client.flatMap { IPAddress($0) }, byteCount: count)
        #expect(ProxyProtocolHeader(bytes[...]) == expected)
        for length in 0..<count { #expect(ProxyProtocolHeader(bytes[..<length]) == .incomplete, "\(length) bytes") }
    }

    @Test(
        arguments: [
            Array("GET / HTTP/1.1\r\n".utf8), Array("PROXY TCP4 192.0.2.1\r\n".utf8), Array("PROXY \r\n".utf8),
            Array("PROXY TCP6 192.0.2.1 10.0.0.1 5678 443\r\n".utf8),
            Array("PROXY TCP4 192.0.2.1 10.0.0.1 5678 99999\r\n".utf8),
            Array(("PROXY UNKNOWN " + String(repeating: "a", count: 100)).utf8), Array("PROXY UNKNOWN\n".utf8),
            signature + [0x31, 0x11, 0, 0], signature + [0x22, 0x11, 0, 0], signature + [0x21, 0x11, 0, 3, 1, 2, 3],
            signature + [0x21, 0x11, 0xFF, 0xFF],
        ] as [[UInt8]]
    )
    func `an invalid PROXY protocol header is refused`(bytes: [UInt8]) {
        #expect(ProxyProtocolHeader(bytes[...]) == .invalid)
    }

    @Test func `a mutated header is refused or parsed, and never traps`() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<5_000 {
            var bytes = [Self.v4, Self.v6, Array("PROXY TCP4 192.0.2.1 10.0.0.1 5678 443\r\n".utf8)]
                .randomElement(using: &generator)!
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
            if case .complete(_, let count) = ProxyProtocolHeader(bytes[...]) { #expect(count <= bytes.count) }
        }
    }

    @Test func `the header is removed, in any number of pieces`() throws {
        let statistics = SignalingStatistics()
        let told = Mutex<[IPAddress?]>([])
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(
            ProxyProtocolHandler(statistics: statistics) { client in
                told.withLock { $0.append(client) }
                return true
            }
        )
        for byte in Self.v4 { try channel.writeInbound(ByteBuffer(bytes: [byte])) }
        try channel.writeInbound(ByteBuffer(string: "GET /"))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "GET /"))
        #expect(told.withLock { $0 } == [IPAddress("192.0.2.1")])
        #expect(statistics.counts.refusals.isEmpty)
        _ = try channel.finish()
    }

    @Test func `a connection without the header is closed`() throws {
        let statistics = SignalingStatistics()
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(ProxyProtocolHandler(statistics: statistics) { _ in true })
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        #expect(!channel.isActive)
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        #expect(statistics.counts.refusals == [.proxyHeader: 1])
    }
}

@Suite struct ShareTests {
    @Test func `a network has its share, and this machine three quarters`() throws {
        let stranger = ClientNetwork(try #require(IPAddress("192.0.2.1")))
        #expect(stranger.share(1_000, of: 10_000) == 1_000)
        #expect(stranger.share(1_000, of: 10) == 10)
        #expect(stranger.share(0, of: 10_000) == 10_000)
        for network in [ClientNetwork(.loopbackV4), ClientNetwork(.loopbackV6), .unknown] {
            #expect(network.share(1_000, of: 10_000) == 7_500)
        }
    }

    @Test func `connections above a network's share are refused until others close`() throws {
        let loop = EmbeddedEventLoop()
        let statistics = SignalingStatistics()
        let clients = ClientAddresses(
            ProxyConfiguration(),
            HTTPLimits(connectionsMax: 100, connectionsPerNetworkMax: 2),
            statistics: statistics,
            logger: SignalingBench.quiet
        )
        let (one, other) = (ClientNetwork(IPAddress(v4: 1)), ClientNetwork(IPAddress(v4: 2)))
        let closed = (0..<3).map { _ in loop.makePromise(of: Void.self) }
        #expect(clients.take(for: one, until: closed[0].futureResult))
        #expect(clients.take(for: one, until: closed[1].futureResult))
        #expect(!clients.take(for: one, until: closed[2].futureResult))
        #expect(clients.take(for: other, until: closed[2].futureResult), "others have their own share")
        closed[0].succeed()
        #expect(clients.take(for: one, until: closed[2].futureResult))
        closed[1].succeed()
        closed[2].succeed()
        #expect(clients.count(of: one) == 0 && clients.count(of: other) == 0)
        #expect(statistics.counts.refusals == [.connectionShare: 1])
    }
}

/// Attacks on the public listener, and their effect on other clients.
@Suite(.timeLimit(.minutes(10)))
struct SharedListenerTests {
    /// Expects a status of a request that says that it was forwarded.
    private static func expect(
        _ status: Int,
        of path: String,
        forwardedFor: String,
        port: Int,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await withConnection(to: port) { client, input in
            try await client.send(
                "GET \(path) HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: \(forwardedFor)\r\nConnection: close\r\n\r\n"
            )
            return await input.readToEnd()
        }
        #expect(answer.hasPrefix("HTTP/1.1 \(status)"), sourceLocation: location)
    }

    @Test func `one address cannot hold all connections`() async throws {
        let limits = HTTPLimits(connectionsMax: 8, connectionsPerNetworkMax: 2)
        try await withLiveServer(http: limits) { bench, port, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                let (opened, open) = AsyncStream.makeStream(of: Void.self)
                for _ in 0..<6 {
                    group.addTask {
                        try await withConnection(to: port) { client, input in
                            try await client.send("GET /page.css HTTP/1.1\r\nHost: x\r\n\r\n")
                            _ = await input.read(until: "\r\n\r\n")
                            open.yield()
                            _ = await input.readToEnd()
                        }
                    }
                }
                var arrivals = opened.makeAsyncIterator()
                for _ in 0..<6 { await arrivals.next() }
                let answer = try await withConnection(to: port) { client, input in
                    try? await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    return await input.readToEnd()
                }
                #expect(answer.isEmpty, "closed without an answer")
                #expect(bench.statistics.counts.refusals == [.connectionShare: 1])
                group.cancelAll()
            }
            // The others are gone, and their places with them.
            var answer = ""
            while !answer.hasPrefix("HTTP/1.1 200") { answer = try await LiveTests.get("/", port: port) }
        }
    }

    @Test func `requests through a trusted proxy count for the client that it names`() async throws {
        let limits = HTTPLimits(requestBurst: 2, requestsPerSecond: 0.001)
        let proxies = ProxyConfiguration(trusted: [AddressRange("127.0.0.1")!])
        let path = "/api/channels/lobby"
        try await withLiveServer(http: limits, proxies: proxies) { bench, port, _ in
            for _ in 0..<2 {
                try await Self.expect(200, of: path, forwardedFor: "192.0.2.1", port: port)
            }
            try await Self.expect(429, of: path, forwardedFor: "192.0.2.1", port: port)
            try await Self.expect(429, of: path, forwardedFor: "1.2.3.4, 192.0.2.1", port: port)
            try await Self.expect(200, of: path, forwardedFor: "192.0.2.2", port: port)
            #expect(bench.statistics.counts.refusals == [.requestRate: 2])
        }
    }

    @Test func `X-Forwarded-For of an untrusted client is ignored`() async throws {
        let limits = HTTPLimits(requestBurst: 1, requestsPerSecond: 0.001)
        try await withLiveServer(http: limits) { _, port, _ in
            let path = "/api/channels/lobby"
            try await Self.expect(200, of: path, forwardedFor: "192.0.2.1", port: port)
            try await Self.expect(429, of: path, forwardedFor: "192.0.2.2", port: port)
        }
    }

    @Test func `connections through a proxy of the PROXY protocol count for the client that it names`() async throws {
        let limits = HTTPLimits(connectionsPerNetworkMax: 1, requestBurst: 1, requestsPerSecond: 0.001)
        let proxies = ProxyConfiguration(trusted: [AddressRange("127.0.0.1")!], header: .proxyProtocol)
        let request = "GET /api/channels/lobby HTTP/1.1\r\nHost: x\r\n\r\n"
        try await withLiveServer(http: limits, proxies: proxies) { bench, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n" + request)
                let answer = await input.read(until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 200"))
                try await withConnection(to: port) { second, answers in
                    try? await second.send("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n" + request)
                    let answer = await answers.readToEnd()
                    #expect(answer.isEmpty, "above the client's share")
                }
                try await withConnection(to: port) { other, answers in
                    try await other.send("PROXY TCP4 192.0.2.2 127.0.0.1 1 2\r\n" + request)
                    let answer = await answers.read(until: "\r\n\r\n")
                    #expect(answer.hasPrefix("HTTP/1.1 200"))
                }
                try await withConnection(to: port) { bare, answers in
                    try? await bare.send(request)
                    let answer = await answers.readToEnd()
                    #expect(answer.isEmpty, "without the header")
                }
            }
            #expect(bench.statistics.counts.refusals == [.connectionShare: 1, .proxyHeader: 1])
        }
    }

    @Test func `messages of one network before admission are bounded by their cost`() async throws {
        let limits = HTTPLimits(messageBurst: 20, messagesPerSecond: 0.001)
        try await withLiveServer(http: limits) { bench, port, _ in
            let numbers = "[" + Array(repeating: "1", count: 2_000).joined(separator: ",") + "]"
            try await withWebSocket(to: port) { client, input in
                try await client.send(numbers)
                let close = try await input.close()
                #expect(close == WebSocketClose(4490, "INVALID-MESSAGE: A message is not a JSON object."))
            }
            #expect(bench.statistics.counts.refusals.isEmpty)
            try await withWebSocket(to: port) { client, input in
                try await client.send(numbers)
                let close = try await input.close()
                #expect(close == SoraClose.tooManyFromNetwork.close)
            }
            #expect(bench.statistics.counts.refusals == [.messageRate: 1])
        }
    }

    @Test(arguments: [true, false])
    func `only statistics beyond the network's limit are dropped`(isProxied: Bool) async throws {
        let limits = HTTPLimits(memberMessageBurst: 2, memberMessagesPerSecond: 0.001)
        let proxies = ProxyConfiguration(trusted: isProxied ? [AddressRange("127.0.0.1")!] : [])
        try await withLiveServer(http: limits, proxies: proxies) { bench, port, _ in
            try await withWebSocket(to: port, forwardedFor: "192.0.2.1") { client, input in
                try await client.send(SoraBench.connect())
                _ = try await input.message("offer")
                for _ in 0..<10 { try await client.send(#"{"type":"candidate","candidate":""}"#) }
                for _ in 0..<5 { try await client.send(#"{"type":"pong","stats":[{"id":"x"}]}"#) }
                for _ in 0..<10 { try await client.send(#"{"type":"candidate","candidate":""}"#) }
                try await client.send(#"{"type":"disconnect"}"#)
                let close = try await input.close()
                #expect(close == WebSocketClose(1000, "TYPE-DISCONNECT"))
            }
            // This machine's address is a shared network.
            #expect(bench.statistics.counts.refusals == (isProxied ? [.memberMessageRate: 3] : [:]))
        }
    }

    @Test func `GET counts against the request rate, the page's files do not, and DELETE has its own`() async throws {
        let bench = try SignalingBench(http: HTTPLimits(requestBurst: 2, requestsPerSecond: 0.001))
        try await bench.test { http in
            let session = try await http.publish()
            #expect(try await http.send(.get, "/api/channels/lobby", token: "x.y.z").status == .ok)
            #expect(try await http.send(.get, "/api/channels/lobby", token: "x.y.z").status == .tooManyRequests)
            #expect(try await http.send(.get, "/sessions/x").status == .tooManyRequests)
            for _ in 0..<5 { #expect(try await http.send(.get, "/page.js").status == .ok) }
            #expect(try await http.send(.delete, session.path).status == .ok)
        }
        await bench.expectNothingLeft()
    }
}
