import Access
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MediaTypes
import NIOCore
import Pages
import Room
import RoomTestSupport
import Testing
import Wire

@testable import Operators

@Suite(.timeLimit(.minutes(10)))
struct PageTests {
    @Test(arguments: [
        ("/", "text/html; charset=utf-8"), ("/index.html", "text/html; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"), ("/page.css", "text/css; charset=utf-8"),
        ("/clock.js", "text/javascript; charset=utf-8"), ("/nagare.js", "text/javascript; charset=utf-8"),
        ("/nagare.d.ts", "text/plain; charset=utf-8"), ("/nagare-call.js", "text/javascript; charset=utf-8"),
    ])
    func `the page's files are served with their type and a strict policy`(path: String, type: String) async throws {
        try await SignalingBench().test { http in
            let response = try await http.send(.get, path)
            #expect(response.status == .ok && response.body.readableBytes > 0)
            #expect(response.headers[.contentType] == type)
            let policy = try #require(response.headers[.contentSecurityPolicy])
            #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"))
            #expect(response.headers[.xContentTypeOptions] == "nosniff")
            let head = try await http.send(.head, path)
            #expect(head.status == .ok && head.body.readableBytes == 0)
            #expect(head.headers[.contentLength] == String(response.body.readableBytes))
            #expect(try await http.post(path, "x").status == .methodNotAllowed)
        }
    }

    @Test func `every file that a script imports is served`() async throws {
        try await SignalingBench().test { http in
            for asset in PageAsset.allCases where asset.rawValue.hasSuffix(".js") {
                let script = try await http.send(.get, "/\(asset.rawValue)").text
                let imports = script.matches(of: /(?:from|import|URL\() ?'([^']+\.js)'/).map { String($0.1) }
                for path in imports {
                    let name = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
                    #expect(PageAsset(rawValue: name) != nil, "\(asset.rawValue) imports \(path)")
                    // The module is also a package, which has its own files only.
                    #expect(!asset.rawValue.hasPrefix("nagare") || name.hasPrefix("nagare"), "\(asset.rawValue)")
                }
                #expect(asset != .module || imports.count >= 4)
                #expect(asset != .script || imports.count >= 4)
            }
        }
    }

    @Test func `the page complies with its Content-Security-Policy`() async throws {
        try await SignalingBench().test { http in
            let page = try await http.send(.get, "/").text
            #expect(!page.contains("style=\"") && !page.contains("onclick=") && !page.contains("<style"))
            #expect(!page.contains("src=\"http") && !page.contains("href=\"http") && !page.contains("<script>"))
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ChannelDocumentTests {
    @Test func `a channel shows its publishers with their tracks, and its viewers as a number`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let empty = try await http.send(.get, "/api/channels/lobby")
            #expect(empty.headers[.contentType] == "application/json")
            #expect(empty.text == #"{"channel":"lobby","participants":[],"revision":0,"viewers":0}"#)
            let publisher = try await http.publish("/whip/lobby?name=Mika")
            _ = try await http.watch()
            await bench.report(.connected(over: .udp), .trackStarted(mid: .init("1")!, codec: .vp8))
            let text = try await http.send(.get, "/api/channels/lobby").text
            let expected =
                #"{"channel":"lobby","current":"\#(publisher.participant)","participants":[{"#
                + #""id":"\#(publisher.participant)","name":"Mika","publishing":true,"tracks":["#
                + #"{"active":false,"kind":"audio","mid":"0","muted":false,"simulcast":false},"#
                + #"{"active":true,"codec":"VP8","kind":"video","mid":"1","muted":false,"simulcast":false}]}],"#
                + #""revision":4,"viewers":1}"#
            #expect(text == expected)
            #expect(try await http.send(.head, "/api/channels/lobby").body.readableBytes == 0)
            #expect(try await http.post("/api/channels/lobby", "x").status == .methodNotAllowed)
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct AdminTests {
    @Test(arguments: ["/livez", "/readyz"])
    func `a loop that serves nobody is named by the probe`(path: String) async throws {
        let server = AdminServer(
            host: "127.0.0.1",
            port: 0,
            logger: SignalingBench.quiet,
            metrics: { "" },
            whyNotReady: { nil },
            stalledLoops: { ["media-1", "control-0"] }
        )
        try await server.testable.test(.router) { client in
            let http = HTTPTester(client: client)
            let answer = try await http.send(.get, path)
            #expect(answer.status == .serviceUnavailable && answer.text == "stalled loops: media-1 control-0\n")
            #expect(try await http.send(.get, "/healthz").status == .ok)
        }
    }

    @Test func `metrics, health and readiness are served`() async throws {
        let directory = ChannelDirectory(planes: [FakeMediaPlane()])
        let server = AdminServer(
            host: "127.0.0.1",
            port: 0,
            logger: SignalingBench.quiet,
            metrics: { "nagare_rooms 0\n" },
            whyNotReady: { await directory.isDraining ? "it drains" : nil }
        )
        try await server.testable.test(.router) { client in
            let http = HTTPTester(client: client)
            let metrics = try await http.send(.get, "/metrics")
            #expect(metrics.text == "nagare_rooms 0\n")
            #expect(metrics.headers[.contentType] == "text/plain; version=0.0.4; charset=utf-8")
            #expect(try await http.send(.get, "/healthz").status == .ok)
            #expect(try await http.send(.get, "/readyz").status == .ok)
            #expect(try await http.send(.get, "/other").status == .notFound)
            #expect(try await http.send(.get, "/").status == .notFound)
            #expect(try await http.send(.post, "/metrics").status == .methodNotAllowed)
            #expect(try await http.send(.get, "/livez").status == .ok)
            await directory.startDraining()
            let answer = try await http.send(.get, "/readyz")
            #expect(answer.status == .serviceUnavailable && answer.text == "it drains\n")
            #expect(try await http.send(.get, "/healthz").status == .ok)
        }
    }
}

@Suite struct HostNameTests {
    private let hosts = HostNames(["ops.example"])

    @Test(arguments: [
        nil, "", "127.0.0.1", "127.0.0.1:3000", "[::1]:3000", "[::1]", "localhost", "LocalHost:3000", "localhost.",
        "ops.example", "OPS.example:80", "192.0.2.1",
    ])
    func `IP addresses and known host names are permitted`(host: String?) { #expect(hosts.permit(host)) }

    @Test(arguments: [
        "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1", "[evil]", "xlocalhost",
    ])
    func `other host names are refused`(host: String) { #expect(!hosts.permit(host)) }

    @Test func `a request with a DNS-rebinding Host is refused`() async throws {
        let server = AdminServer(
            host: "127.0.0.1",
            port: 0,
            logger: SignalingBench.quiet,
            metrics: { "secret" },
            whyNotReady: { nil }
        )
        try await server.testable.test(.live) { client in
            for (host, status) in [("evil.example", HTTPResponse.Status.misdirectedRequest), ("localhost", .ok)] {
                let port = try #require(client.port)
                let answer = try await withConnection(to: port) { client, input in
                    try await client.send("GET /metrics HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
                    return await input.readToEnd()
                }
                #expect(answer.hasPrefix("HTTP/1.1 \(status.code)"))
                #expect(answer.contains("secret") == (status == .ok))
            }
        }
    }
}
