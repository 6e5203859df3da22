import Access
import HTTPTypes
import HummingbirdTesting
import MediaTypes
import NIOCore
import Room
import Testing
import Wire

@testable import Signaling

/// The event streams of WHIP and WHEP sessions.
@Suite(.timeLimit(.minutes(30)))
struct SessionEventTests {
    private func request(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n" }

    @Test func `a session's stream tells of its expiry and its end`() async throws {
        let keys = URLKeys(["k"], validity: 0)
        let authorizer = SignatureAuthorizer(
            keys: AccessKeys(urls: keys),
            logger: SignalingBench.quiet,
            now: { 1 }
        )
        try await withLiveServer(authorizer: authorizer) { bench, port, _ in
            // Long after the test by the machine's clock: the test passes the time on itself.
            let expiry: Int64 = 4_000_000_000
            let signature = try keys.signature(path: "/whip/lobby", timestamp: expiry).text
            let response = try await bench.test {
                try await $0.post("/whip/lobby?auth_key=\(signature)", Offers.publish)
            }
            let session = try OpenSession(response)
            let link = try #require(response.headers[HTTPField.Name("Link")!])
            #expect(link.contains("<\(session.path)/events>") && link.contains("ext:nagare:events"))
            await bench.report(.connected)
            try await withConnection(to: port) { client, input in
                try await client.send(request("\(session.path)/events"))
                #expect(await input.read(until: "\r\n\r\n").lowercased().contains("content-type: text/event-stream"))
                // The first comment: the stream misses nothing from now on.
                #expect(await input.read(until: "\n\n").contains(": still here"))
                await bench.report(.qualityChanged(LinkQuality(uplink: .good)))
                #expect(
                    await input.read(until: "\n\n")
                        .contains("event: network.quality\ndata: {\"downlink\":0,\"uplink\":2}")
                )
                let later = Instant(nanoseconds: 3_000_000_000 * 1_000_000_000)
                await bench.rooms.tick(at: later, unixNanoseconds: (expiry - 60) * 1_000_000_000)
                #expect(
                    await input.read(until: "\n\n").contains("event: token.expiring\ndata: {\"expires_at\":4000000000}")
                )
                await bench.rooms.tick(at: later + Interval.seconds(100), unixNanoseconds: expiry * 1_000_000_000)
                #expect(await input.read(until: "\n\n").contains("event: ended\ndata: {\"reason\":\"TOKEN-EXPIRED\"}"))
                let gone = try await bench.test { try await $0.send(.get, "\(session.path)/events") }
                #expect(gone.status == .notFound)
            }
        }
    }

    @Test func `a new stream of a session ends the one before, and a reader that goes leaves nothing`() async throws {
        try await withLiveServer { bench, port, _ in
            let session = try await bench.test { try await $0.watch() }
            try await withConnection(to: port) { client, input in
                try await client.send(request("\(session.path)/events"))
                _ = await input.read(until: "\n\n")
                try await withConnection(to: port) { second, secondInput in
                    try await second.send(request("\(session.path)/events"))
                    _ = await secondInput.read(until: "\n\n")
                    // The end of the chunked body.
                    #expect(await input.read(until: "0\r\n\r\n").contains("0\r\n\r\n"))
                    _ = try await bench.test { try await $0.send(.delete, session.path) }
                    #expect(await secondInput.read(until: "\n\n").contains("{\"reason\":\"LEFT\"}"))
                }
            }
            await bench.expectNothingLeft()
        }
    }

    @Test func `HEAD shows a stream, and others need the session`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.watch()
            let head = try await http.send(.head, "\(session.path)/events")
            #expect(head.status == .ok && head.headers[.contentType] == "text/event-stream")
            #expect(try await http.send(.post, "\(session.path)/events").status == .methodNotAllowed)
            #expect(try await http.send(.get, "/sessions/unknown/events").status == .notFound)
        }
    }
}
