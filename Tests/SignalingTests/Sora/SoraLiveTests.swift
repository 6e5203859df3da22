import Access
import ChannelTypes
import JSON
import MediaTypes
import NIOCore
import NIOWebSocket
import Room
import RoomTestSupport
import ServiceLifecycle
import TestSupport
import Testing

@testable import Sora
@testable import Web

/// The signaling over real sockets, with a media plane that tests play.
@Suite(.timeLimit(.minutes(10)))
struct SoraLiveTests {
    /// Sends `connect` and answers the offer. Returns the offer.
    @concurrent private static func join(
        _ client: WebSocketTestClient,
        _ input: inout WebSocketTestInput,
        _ role: Role = .sendrecv,
        _ members: String = ""
    ) async throws -> JSONValue {
        try await client.send(SoraBench.connect(role, members))
        let offer = try await input.message("offer")
        try await answer(offer, own: offer["mid"], client, "answer")
        return offer
    }

    @concurrent private static func answer(
        _ offer: JSONValue,
        own: JSONValue?,
        _ client: WebSocketTestClient,
        _ type: String
    ) async throws {
        let mids = own?.object?.values.compactMap(\.string) ?? []
        let sdp = SDPAnswer.make(to: try #require(offer["sdp"]?.string), own: mids)
        try await client.send(JSONValue.object(["type": .string(type), "sdp": .string(sdp)]).text)
    }

    /// Lets the transport of the peer that joined as the `number`th come up, once the plane knows it.
    @concurrent private static func connect(_ number: UInt64, _ bench: SignalingBench) async throws {
        let peer = PeerID(rawValue: number)
        try await eventually("the plane has the peer") { await bench.plane.peers[peer] != nil }
        await bench.plane.report(.connected(over: .udp), from: peer)
    }

    @Test func `two members are notified of each other's join and leave`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port) { alice, aliceInput in
                let offer = try await Self.join(alice, &aliceInput, .sendrecv, #""client_id":"alice""#)
                try await Self.connect(1, bench)
                let created = try await aliceInput.event("connection.created")
                #expect(created["connection_id"] == offer["connection_id"] && created["data"] == [])
                #expect(created["channel_connections"] == 1 && created["client_id"] == "alice")

                let bobID = try await withWebSocket(to: port) { bob, bobInput in
                    let bobOffer = try await Self.join(bob, &bobInput, .sendrecv, #""client_id":"bob""#)
                    let sdp = try #require(bobOffer["sdp"]?.string)
                    let aliceID = try #require(offer["connection_id"]?.string)
                    #expect(sdp.contains("a=msid:\(aliceID) "), "who is there is in the first offer")
                    try await Self.connect(2, bench)
                    let bobCreated = try await bobInput.event("connection.created")
                    #expect(bobCreated["data"]?.array?.count == 1 && bobCreated["channel_connections"] == 2)
                    let bobID = try #require(bobOffer["connection_id"]?.string)
                    let reoffer = try await aliceInput.message("re-offer")
                    #expect(reoffer["sdp"]?.string?.contains("a=msid:\(bobID) ") == true)
                    try await Self.answer(reoffer, own: offer["mid"], alice, "re-answer")
                    let news = try await aliceInput.event("connection.created")
                    #expect(news["client_id"] == "bob" && news["data"] == nil)
                    try await bob.send(#"{"type":"disconnect","reason":"NO-ERROR"}"#)
                    let close = try await bobInput.close()
                    #expect(close == WebSocketClose(1000, "TYPE-DISCONNECT"))
                    return bobID
                }
                let destroyed = try await aliceInput.event("connection.destroyed")
                #expect(destroyed["connection_id"] == .string(bobID) && destroyed["channel_connections"] == 1)
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    @Test func `a limit of one admits one of ten simultaneous and one of five sequential clients`() async throws {
        var grants = Grants()
        grants.permissions.channelConnectionsMax = 1
        try await withLiveServer(authorizer: Doorkeeper(.allowed(grants))) { bench, port, _ in
            let offers = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<10 {
                    group.addTask {
                        try await withWebSocket(to: port) { client, input in
                            try await client.send(SoraBench.connect())
                            guard try await input.frame()?.opcode == .text else { return false }
                            // The others are refused while this one has its place.
                            try await eventually("nine clients are refused") {
                                await bench.directory.admissions.refused[.channelFull] == 9
                            }
                            return true
                        }
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(offers == 1)
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
            try await withWebSocket(to: port) { first, firstInput in
                _ = try await Self.join(first, &firstInput)
                for _ in 0..<4 {
                    let close = try await withWebSocket(to: port) { client, input in
                        try await client.send(SoraBench.connect())
                        return try await input.close()
                    }
                    #expect(close == WebSocketClose(4490, "CHANNEL-FULL"))
                }
            }
        }
    }

    @Test func `Sora clients receive WHIP publishers, and WHEP viewers receive Sora clients`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port) { client, input in
                let offer = try await Self.join(client, &input)
                try await Self.connect(1, bench)
                _ = try await input.event("connection.created")
                try await withConnection(to: port) { http, answers in
                    let body = Offers.publish
                    try await http.send(
                        "POST /whip/room HTTP/1.1\r\nHost: a\r\nContent-Type: application/sdp\r\n"
                            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                    )
                    let head = await answers.read(until: "\r\n\r\n")
                    #expect(head.hasPrefix("HTTP/1.1 201"))
                    try await Self.connect(2, bench)
                    let reoffer = try await input.message("re-offer")
                    try await Self.answer(reoffer, own: offer["mid"], client, "re-answer")
                    let news = try await input.event("connection.created")
                    #expect(news["role"] == "sendonly" && news["channel_connections"] == 2)
                }
            }
        }
    }

    @Test func `a lost WebSocket removes its participant`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port) { client, input in
                _ = try await Self.join(client, &input)
                try await Self.connect(1, bench)
                _ = try await input.event("connection.created")
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    struct Hostile: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        var isBinary = false
        var isMasked = true
        let close: WebSocketClose
    }
    static let hostile = [
        Hostile(testDescription: "binary", bytes: [1, 2], isBinary: true, close: .binaryRefused),
        Hostile(testDescription: "not UTF-8", bytes: [0xFF], close: .invalidText),
        Hostile(testDescription: "unmasked", bytes: Array("{}".utf8), isMasked: false, close: .protocolError),
        Hostile(
            testDescription: "not JSON",
            bytes: Array("hello".utf8),
            close: WebSocketClose(4490, "INVALID-JSON: A message is not JSON.")
        ),
        Hostile(
            testDescription: "no type",
            bytes: Array("{}".utf8),
            close: WebSocketClose(4490, #"MISSING-TYPE: A message has no "type"."#)
        ),
        Hostile(
            testDescription: "a long way down",
            bytes: Array(repeating: UInt8(ascii: "["), count: 120_000),
            close: WebSocketClose(
                4490,
                "INVALID-JSON: A message is too long, has too many values, or is nested too deeply."
            )
        ),
        Hostile(
            testDescription: "too long",
            bytes: Array(repeating: 0x20, count: 513 * 1024),
            close: .tooLong
        ),
    ]

    @Test(arguments: hostile)
    func `hostile input closes only its own WebSocket`(row: Hostile) async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port) { client, input in
                try? await client.send(row.isBinary ? .binary : .text, row.bytes, isMasked: row.isMasked)
                let close = try await input.close()
                #expect(close == row.close)
            }
            try await withWebSocket(to: port) { client, input in _ = try await Self.join(client, &input) }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    @Test func `fragments and pings are supported`() async throws {
        try await withLiveServer { _, port, _ in
            try await withWebSocket(to: port) { client, input in
                let text = Array(SoraBench.connect().utf8)
                try await client.send(.text, Array(text.prefix(9)), fin: false)
                try await client.send(.ping, [5])
                try await client.send(.continuation, Array(text.dropFirst(9)))
                let frame = try await input.frame()
                let pong = try #require(frame)
                #expect(pong.opcode == .pong && Array(pong.unmaskedData.readableBytesView) == [5])
                let offer = try await input.message("offer")
                #expect(offer["channel_id"] == "room")
            }
        }
    }

    @Test func `only the signaling path accepts WebSockets`() async throws {
        try await withLiveServer { _, port, _ in
            for path in ["/", "/signal", "/whip/a", "/signaling/x"] {
                await #expect(throws: (any Error).self) { try await withWebSocket(to: port, path: path) { _, _ in } }
            }
            try await withConnection(to: port) { http, answers in
                try await http.send("GET /signaling HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = await answers.readToEnd()
                #expect(answer.hasPrefix("HTTP/1.1 426") && answer.lowercased().contains("upgrade: websocket"))
            }
        }
    }

    @Test func `WebSockets count against the rate of their address`() async throws {
        var limits = HTTPLimits()
        limits.requestBurst = 2
        limits.requestsPerSecond = 0.001
        try await withLiveServer(http: limits) { _, port, _ in
            for _ in 0..<2 { try await withWebSocket(to: port) { _, _ in } }
            await #expect(throws: (any Error).self) { try await withWebSocket(to: port) { _, _ in } }
            try await withConnection(to: port) { http, answers in
                try await http.send("GET /signaling HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = await answers.read(until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 429"))
            }
        }
    }

    @Test func `a shutdown closes WebSockets with its code`() async throws {
        try await withLiveServer { bench, port, group in
            try await withWebSocket(to: port) { client, input in
                _ = try await Self.join(client, &input)
                await group.triggerGracefulShutdown()
                let close = try await input.close()
                #expect(close == WebSocketClose(1001, "SERVER-SHUTDOWN"))
            }
        }
    }

    @Test func `a disconnection by the API reaches the client`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port) { client, input in
                let offer = try await Self.join(client, &input)
                try await Self.connect(1, bench)
                _ = try await input.event("connection.created")
                let id = try #require(ParticipantID(offer["connection_id"]?.string ?? ""))
                _ = await bench.directory.end(id, reason: .disconnectedByOperator)
                let close = try await input.close()
                #expect(close == WebSocketClose(1000, "DISCONNECTED-API"))
            }
        }
    }

    @Test func `the authorizer gets bundle_id only if clients may choose it`() async throws {
        for isAccepted in [true, false] {
            var configuration = SoraConfiguration()
            configuration.acceptsBundleID = isAccepted
            let doorkeeper = Doorkeeper(.allowed(Grants()))
            try await withLiveServer(authorizer: doorkeeper, sora: configuration) { _, port, _ in
                try await withWebSocket(to: port) { client, input in
                    try await client.send(SoraBench.connect(.sendrecv, #""bundle_id":"mine""#))
                    let offer = try await input.message("offer")
                    #expect((offer["bundle_id"] == "mine") == isAccepted)
                }
            }
            #expect(doorkeeper.asked.map(\.bundleID) == [isAccepted ? "mine" : nil])
        }
    }

    @Test func `authorization is cancelled when the client disconnects`() async throws {
        let hesitant = Hesitant()
        try await withLiveServer(authorizer: hesitant) { _, port, _ in
            try await withWebSocket(to: port) { client, _ in
                try await client.send(SoraBench.connect())
                for await _ in hesitant.asked { break }
            }
            for await _ in hesitant.givenUp { break }
        }
    }

    /// All clients answer every offer until each was offered all others.
    @Test func `clients that join at once all receive each other`() async throws {
        let count = 12
        try await withLiveServer { bench, port, _ in
            let peers = Task {
                for number in 1...UInt64(count) { try await Self.connect(number, bench) }
            }
            let arrived = Crowd(count)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        try await withWebSocket(to: port) { client, input in
                            let offer = try await Self.join(client, &input)
                            var sdp = try #require(offer["sdp"]?.string)
                            while Set(sdp.matches(of: #/a=msid:(\S+) /#).map(\.1)).count < count - 1 {
                                let reoffer = try await input.message("re-offer")
                                try await Self.answer(reoffer, own: offer["mid"], client, "re-answer")
                                sdp = try #require(reoffer["sdp"]?.string)
                            }
                            await arrived.wait()
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await peers.value
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }
}

/// Returns no decision before it is cancelled.
private final class Hesitant: Authorizer {
    let asked: AsyncStream<Void>
    let givenUp: AsyncStream<Void>
    private let isAsked: AsyncStream<Void>.Continuation
    private let isGivenUp: AsyncStream<Void>.Continuation

    init() {
        (asked, isAsked) = AsyncStream.makeStream()
        (givenUp, isGivenUp) = AsyncStream.makeStream()
    }

    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization { .allowed }
    func admit(_ request: AccessRequest) async -> AccessDecision {
        isAsked.yield()
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        continuation.finish()
        isGivenUp.yield()
        return .failed
    }
}

/// Lets each of a number of tasks wait for the last.
private actor Crowd {
    private var missing: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) { missing = count }

    func wait() async {
        missing -= 1
        guard missing > 0 else {
            for continuation in waiting { continuation.resume() }
            waiting = []
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }
}
