import Glibc
import Testing

@testable import nagare

/// The program from its start to its end, as a process.
@Suite(.timeLimit(.minutes(10)))
struct LifecycleTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func `--dev starts, answers, and exits with 0 on a signal`(signal: Int32) async throws {
        let node = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        let page = try Connection.get("/", port: ports.page)
        #expect(page.hasPrefix("HTTP/1.1 200"))
        #expect(page.contains("<html"))
        #expect(try Connection.get("/healthz", port: ports.admin).hasPrefix("HTTP/1.1 200"))
        #expect(try Connection.get("/livez", port: ports.admin).hasPrefix("HTTP/1.1 200"))
        #expect(try Connection.get("/readyz", port: ports.admin).hasPrefix("HTTP/1.1 200"))
        let metrics = try Connection.get("/metrics", port: ports.admin)
        #expect(metrics.hasPrefix("HTTP/1.1 200"))
        #expect(metrics.contains("\nnagare_ready 1\n"))
        #expect(metrics.contains("\nnagare_peers{loop=\"1\"} 0\n"))
        node.send(signal)
        #expect(await node.exitStatus() == 0)
        #expect(await node.errors.all().last?.contains("stopped") == true)
        #expect(throws: (any Error).self) { try Connection(port: ports.page) }
    }

    @Test func `a second node on the same ports names the used port and does not disturb the first`() async throws {
        let node = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        let second = try RunningNode(
            [
                "serve", "--dev", "--http", "127.0.0.1:\(ports.page)", "--admin", "127.0.0.1:0", "--media",
                "127.0.0.1:0",
            ]
        )
        #expect(await second.exitStatus() == 1)
        let message =
            "nagare: Cannot listen on TCP 127.0.0.1:\(ports.page) (--http): another program uses the port; "
            + "stop that program or choose another port."
        #expect(await second.errors.all() == [message])
        #expect(await second.output.all().isEmpty)
        #expect(try Connection.get("/healthz", port: ports.admin).hasPrefix("HTTP/1.1 200"))
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a node in block_new_connection mode is not ready`() async throws {
        let node = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        for (mode, status) in [("block_new_session", 200), ("block_new_connection", 503), ("normal", 200)] {
            let connection = try Connection(port: ports.admin)
            let body = "{\"mode\":\"\(mode)\"}"
            connection.write(
                "POST / HTTP/1.1\r\nHost: localhost\r\nx-sora-target: Sora_20260101.ChangeMode\r\n"
                    + "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
            )
            #expect(connection.readAll().hasPrefix("HTTP/1.1 200"))
            #expect(try Connection.get("/readyz", port: ports.admin).hasPrefix("HTTP/1.1 \(status)"), "\(mode)")
            let metrics = try Connection.get("/metrics", port: ports.admin)
            #expect(metrics.contains("\nnagare_ready \(status == 200 ? 1 : 0)\n"))
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a draining node is not ready until the drain is taken back`() async throws {
        let node = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        for (method, body, status, state) in [("PUT", "{}", 503, "draining"), ("DELETE", "", 200, "ready")] {
            let connection = try Connection(port: ports.admin)
            connection.write(
                "\(method) /v1/drain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
            )
            #expect(connection.readAll().hasPrefix("HTTP/1.1 200"))
            #expect(try Connection.get("/readyz", port: ports.admin).hasPrefix("HTTP/1.1 \(status)"), "\(state)")
            let metrics = try Connection.get("/metrics", port: ports.admin)
            #expect(metrics.contains("\nnagare_state{state=\"\(state)\"} 1\n"))
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        var environment: [String: String] = [:]
        let status: Int32
        let message: String
        var testDescription: String { arguments.joined(separator: " ") }
    }

    @Test(arguments: [
        Refusal(
            arguments: ["serve", "--htp", "1"],
            status: 64,
            message: "nagare: Unknown option '--htp'. Did you mean '--http'?"
        ),
        Refusal(
            arguments: ["serve", "--dev", "--grace", "-1"],
            status: 64,
            message: "nagare: --grace is \"-1\": write a whole number from 1 to 3600."
        ),
        Refusal(
            arguments: ["token", "--channel", "a", "--expires", "-5m"],
            status: 64,
            message: "nagare: --expires is \"-5m\": write a time as 90s, 15m, 12h or 30d."
        ),
        Refusal(
            arguments: ["serve", "--dev"],
            environment: ["NAGARE_LOOPS": "many"],
            status: 64,
            message: "nagare: NAGARE_LOOPS is \"many\": write a whole number from 1 to 256."
        ),
        Refusal(
            arguments: ["serve", "--config", "/nonexistent.yaml"],
            status: 1,
            message: "nagare: /nonexistent.yaml cannot be read: no such file or directory."
        ),
        Refusal(
            arguments: ["serve", "--dev", "--tls-cert", "/nonexistent.pem", "--tls-key", "/nonexistent.key"],
            status: 1,
            message: "nagare: /nonexistent.pem cannot be read: no such file or directory."
        ),
        Refusal(
            arguments: ["serve", "--http", "203.0.113.7:0", "--media", "127.0.0.1:0", "--token", "x"],
            status: 1,
            message: "nagare: Cannot listen on TCP 203.0.113.7:0 (--http): this machine does not have that address; "
                + "choose one of its own."
        ),
        Refusal(
            arguments: [
                "serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--media", "203.0.113.7:7000", "--token",
                "x",
            ],
            status: 1,
            message: "nagare: Cannot open UDP port 7000 on 203.0.113.7: this machine does not have that address; "
                + "choose one of its own, or 0.0.0.0 or [::] for all of them."
        ),
    ])
    func `a failed start is one sentence and an exit status`(refusal: Refusal) async throws {
        let node = try RunningNode(refusal.arguments, environment: refusal.environment)
        #expect(await node.exitStatus() == refusal.status)
        #expect(await node.errors.all() == [refusal.message])
        #expect(await node.output.all().isEmpty)
    }

    @Test func `--version prints the version`() async throws {
        let node = try RunningNode(["--version"])
        #expect(await node.exitStatus() == 0)
        #expect(await node.output.all() == ["nagare \(BuildInformation.version)"])
    }

    /// A request that never ends: its body does not come.
    private func hang(_ port: UInt16) throws -> Connection {
        let connection = try Connection(port: port)
        connection.write("POST /whip/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sdp\r\n")
        connection.write("Content-Length: 100\r\n\r\nv=0\r\n")
        try connection.waitUntilRead()
        return connection
    }

    @Test func `an endless request does not extend the grace period`() async throws {
        let node = try RunningNode(["serve", "--dev", "--grace", "1"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        let request = try hang(ports.page)
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
        // At the end of its own time limit, the request would get an answer.
        #expect(request.readAll().isEmpty)
    }

    @Test func `a drain without clients ends at once`() async throws {
        let node = try RunningNode(["serve", "--dev", "--drain-deadline", "3600"] + RunningNode.anyPorts)
        _ = try await node.ready()
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
        let log = await node.errors.all()
        #expect(log.contains { $0.contains("draining") } && log.last?.contains("stopped") == true)
    }

    @Test func `a second signal stops the node at once`() async throws {
        let node = try RunningNode(["serve", "--dev", "--grace", "3600"] + RunningNode.anyPorts)
        let ports = try await node.ready()
        let request = try hang(ports.page)
        // The request's own time limit would end it, and with it the node, before a busy machine resumes a task.
        node.send(SIGTERM, atLine: "shutting down")
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 128 + SIGTERM)
        withExtendedLifetime(request) {}
    }
}
