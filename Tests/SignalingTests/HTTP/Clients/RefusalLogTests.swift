import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Logging
import NIOCore
import NIOWebSocket
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Ayame
@testable import Signaling
@testable import Sora
@testable import Web

/// Each refusal of a client has its line in the log.
@Suite(.timeLimit(.minutes(10)))
struct RefusalLogTests {
    /// A refused message over WebSocket.
    struct Row: Sendable, CustomTestStringConvertible {
        let path: String
        let text: String
        let message: String
        let reason: String
        var testDescription: String { "\(path) \(text.prefix(60))" }

        static func sora(_ text: String, _ reason: String) -> Self {
            Self(path: "/signaling", text: text, message: "signaling closed", reason: reason)
        }
        static func ayame(_ text: String, _ reason: String, _ message: String = "relay closed") -> Self {
            Self(path: "/relay", text: text, message: message, reason: reason)
        }
    }

    static let rows: [Row] = [
        .sora("{", "is not JSON"), .sora("[]", "not a JSON object"), .sora("{}", "no \"type\""),
        .sora(#"{"type":5}"#, "not a string"), .sora(#"{"type":"pong"}"#, "is not \"connect\""),
        .sora(#"{"type":"connect","role":"sendonly"}"#, "\"channel_id\" is missing"),
        .sora(#"{"type":"connect","channel_id":"a"}"#, "\"role\" is missing"),
        .sora(#"{"type":"connect","channel_id":"a","role":"x"}"#, "\"role\" has to be"),
        .sora(#"{"type":"connect","channel_id":"a","role":"sendonly","audio":5}"#, "\"audio\""),
        .sora(#"{"type":"connect","channel_id":"a","role":"sendonly","video":{"codec_type":"X"}}"#, "video codec"),
        .sora(#"{"type":"connect","channel_id":"a","role":"sendrecv","audio":false,"video":false}"#, "Both audio"),
        .sora(#"{"type":"connect","channel_id":"a","role":"sendrecv"}"#, "Authentication denied"),
        .ayame("{", "not JSON"), .ayame("{}", "no \"type\""), .ayame(#"{"type":"x"}"#, "unknown \"type\""),
        .ayame(#"{"type":"register"}"#, "\"roomId\" is missing"), .ayame(#"{"type":"offer"}"#, "has to register"),
        .ayame(#"{"type":"register","roomId":"a"}"#, "key", "relay refused"),
    ]

    @Test(arguments: rows)
    func `a refused message over WebSocket has a line at level notice`(row: Row) async throws {
        let log = RecordedLog()
        // Without media a client is refused before it needs a token.
        let isDenied = row.reason.contains("Authentication") || row.message == "relay refused"
        let authorizer: any Authorizer =
            isDenied ? try #require(StaticTokenAuthorizer(token: "secret")) : OpenAuthorizer()
        var sora = SoraConfiguration()
        sora.offersDataChannels = false
        try await withLiveServer(authorizer: authorizer, sora: sora, logger: log.logger) { _, port, _ in
            try await withWebSocket(to: port, path: row.path) { client, input in
                try await client.send(row.text)
                _ = try await input.close()
            }
            try await eventually("a line") { !log.entries(row.message).isEmpty }
        }
        let line = try #require(log.entries(row.message).first)
        #expect(line.level == .notice, "\(line)")
        #expect(line.fields["reason"]?.contains(row.reason) == true, "\(line)")
        #expect(line.fields["address"] == "127.0.0.1")
    }

    @Test(arguments: ["/signaling", "/relay"])
    func `a violation of the WebSocket protocol has a line`(path: String) async throws {
        let log = RecordedLog()
        try await withLiveServer(logger: log.logger) { _, port, _ in
            try await withWebSocket(to: port, path: path) { client, input in
                try await client.send(.binary, [1])
                _ = try await input.close()
            }
            try await eventually("a line") {
                log.entries.contains { $0.level == .notice && $0.fields["close"]?.hasPrefix("1003") == true }
            }
        }
    }

    @Test func `what is not HTTP has a line, and so has a request for a WebSocket's path`() async throws {
        let log = RecordedLog()
        try await withLiveServer(logger: log.logger) { _, port, _ in
            for (text, status) in [
                ("\u{1}\u{2}\u{3}\r\n\r\n", "400"), ("GET /signaling HTTP/1.1\r\nHost: a\r\n\r\n", "426"),
            ] {
                let answer = try await withConnection(to: port) { client, input in
                    try await client.send(text)
                    return await input.readToEnd()
                }
                #expect(answer.hasPrefix("HTTP/1.1 \(status)"))
            }
        }
        #expect(log.entries("request refused").map(\.level) == [.debug, .notice])
    }

    /// The refusals of HTTP requests: method, path, type, body, status and level.
    static let requests: [(HTTPRequest.Method, String, String?, String?, Int, Logger.Level)] = [
        (.get, "/nowhere", nil, nil, 404, .debug), (.post, "/whip", nil, nil, 404, .notice),
        (.post, "/whip/%FF", nil, nil, 400, .notice), (.post, "/whep/a/-", nil, nil, 404, .notice),
        (.put, "/whip/a", nil, nil, 405, .notice), (.post, "/page.js", nil, nil, 405, .debug),
        (.post, "/whip/a", "text/plain", "v=0", 415, .notice), (.post, "/whip/a", "application/sdp", "x", 400, .notice),
        (.post, "/whip/a?name=%07", "application/sdp", "v=0", 400, .notice),
        (.post, "/whep/a?height=x", "application/sdp", "v=0", 400, .notice),
        (.delete, "/sessions/unknown", nil, nil, 404, .debug), (.post, "/sessions/unknown", nil, nil, 405, .notice),
        (.post, "/api/channels/x", nil, nil, 405, .notice),
    ]

    @Test(arguments: requests)
    func `a refused request has one line at its level`(
        method: HTTPRequest.Method,
        path: String,
        type: String?,
        body: String?,
        status: Int,
        level: Logger.Level
    ) async throws {
        let log = RecordedLog()
        try await SignalingBench(logger: log.logger).test { http in
            let response = try await http.send(method, path, type: type, body: body ?? "")
            #expect(response.status.code == status, "\(response.text)")
        }
        let lines = log.entries("request refused")
        #expect(lines.map(\.level) == [level] && lines.first?.fields["status"] == "\(status)", "\(lines)")
        #expect(lines.first?.fields["reason"]?.isEmpty == false && lines.first?.fields["address"] != nil)
    }

    @Test func `a mistake in the PATCH of a session has a line without the session's path`() async throws {
        let log = RecordedLog()
        try await SignalingBench(logger: log.logger).test { http in
            let session = try await http.publish()
            let refused = try await http.send(.patch, session.path, type: "application/trickle-ice-sdpfrag", body: "")
            #expect(refused.status.code == 428)
            let lines = log.entries("request refused")
            #expect(lines.map(\.level) == [.notice] && lines.first?.fields["status"] == "428")
            #expect(!log.values.contains { $0.contains(session.path) })
        }
    }

    /// The refusals of the operators' listener.
    static let operations: [(HTTPRequest.Method, String, String?, String?, Int, Logger.Level)] = [
        (.get, "/v1/channels", "guess", nil, 401, .notice), (.post, "/v1/channels/x/kick", nil, nil, 401, .notice),
        (.get, "/v1/channels", OperatorsBench.token, "https://evil.example", 403, .notice),
        (.get, "/v1/channels/x/members", OperatorsBench.token, nil, 404, .debug),
        (.get, "/v1/nowhere", OperatorsBench.token, nil, 404, .debug),
        (.delete, "/v1/channels", OperatorsBench.token, nil, 405, .notice),
        (.post, "/v1/channels/x/kick", OperatorsBench.token, nil, 400, .notice),
        (.get, "/api/connections/x", nil, nil, 401, .notice), (.get, "/elsewhere", nil, nil, 404, .debug),
    ]

    @Test(arguments: operations)
    func `a refused request of an operator has one line at its level, without the token`(
        method: HTTPRequest.Method,
        path: String,
        token: String?,
        origin: String?,
        status: Int,
        level: Logger.Level
    ) async throws {
        let log = RecordedLog()
        try await OperatorsBench.run(logger: log.logger) { bench in
            let response = try await bench.send(method, path, token: token, origin: origin)
            #expect(response.status.code == status)
        }
        let lines = log.entries("operator's request refused")
        #expect(lines.map(\.level) == [level] && lines.first?.fields["status"] == "\(status)", "\(lines)")
        #expect(lines.first?.fields["reason"]?.isEmpty == false)
        #expect(!log.values.contains { $0.contains("guess") || $0.contains(OperatorsBench.token) })
    }

    @Test func `a refused operation of Sora's API has a line with its reason`() async throws {
        let log = RecordedLog()
        try await OperatorsBench.run(logger: log.logger) { bench in
            _ = try await bench.command("Sora_20151104.DisconnectChannel", ["channel_id": "x"], token: "guess")
            _ = try await bench.command("Sora_20151104.Nothing", nil, token: OperatorsBench.token)
        }
        let lines = log.entries("operator's request refused")
        #expect(lines.map { $0.fields["status"] } == ["401", "400"] && lines.allSatisfy { $0.level == .notice })
        #expect(lines.last?.fields["reason"]?.contains("x-sora-target") == true)
        #expect(lines.last?.fields["operation"] == "Sora_20151104.Nothing")
    }

    // MARK: Rates

    @Test func `no network and no crowd of networks fills the log, and nothing is lost at level debug`() throws {
        let log = RecordedLog()
        let clock = TestClock()
        let refusals = RefusalLog(log.logger, now: { clock.now })
        func notices() -> Int { log.entries.count { $0.level == .notice } }
        let one = ClientNetwork(try #require(IPAddress("192.0.2.1")))
        for _ in 0..<100 { refusals.write("refused", of: one, [:]) }
        #expect(notices() == 30 && log.entries.count == 100)
        clock.advance(seconds: 1)
        refusals.write("refused", of: one, [:])
        #expect(notices() == 31 && log.entries.last?.fields["unlogged"] == "70")
        for index in 0..<1_000 {
            let network = ClientNetwork(IPAddress(v4: 0x0A00_0000 + UInt32(index)))
            refusals.write("refused", of: network, [:])
        }
        #expect(notices() == 200 + 10, "the node's rate, of a second more")
        clock.advance(seconds: 3_600)
        let before = notices()
        for _ in 0..<1_000 { refusals.write("refused", of: .unknown, [:]) }
        #expect(notices() - before == 200, "a network that stands for many has the node's rate only")
        for _ in 0..<10 { refusals.write("noise", of: one, level: .debug, [:]) }
        clock.advance(seconds: 1)
        refusals.write("refused", of: one, [:])
        #expect(log.entries.last?.fields["unlogged"] == "800", "lines at level debug do not count")
    }
}
