import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import MediaTypes
import NIOCore
import Room
import Testing

@testable import Signaling

/// The event streams of WHIP and WHEP sessions.
@Suite(.timeLimit(.minutes(10)))
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
            await bench.report(.connected(over: .udp))
            try await withConnection(to: port) { client, input in
                try await client.send(request("\(session.path)/events"))
                #expect(await input.read(until: "\r\n\r\n").lowercased().contains("content-type: text/event-stream"))
                // The first comment: the stream misses nothing from now on.
                #expect(await input.read(until: "\n\n").contains(": still here"))
                await bench.report(.qualityChanged(LinkQuality(uplink: .good)))
                // The second one comes by the timer.
                for _ in 0..<2 {
                    #expect(
                        await input.read(until: "\n\n")
                            .contains("event: network.quality\ndata: {\"downlink\":0,\"uplink\":2}")
                    )
                }
                let later = Instant(nanoseconds: 3_000_000_000 * 1_000_000_000)
                await bench.directory.tick(at: later, unixNanoseconds: (expiry - 60) * 1_000_000_000)
                // The quality may be reported again before.
                let expiring = "event: token.expiring\ndata: {\"expires_at\":4000000000}\n\n"
                #expect(await input.read(until: expiring).hasSuffix(expiring))
                await bench.directory.tick(at: later + Interval.seconds(100), unixNanoseconds: expiry * 1_000_000_000)
                let ended = "event: ended\ndata: {\"code\":33620485,\"reason\":\"TOKEN-EXPIRED\"}\n\n"
                #expect(await input.read(until: ended).hasSuffix(ended))
                let gone = try await bench.test { try await $0.send(.get, "\(session.path)/events") }
                #expect(gone.status == .notFound)
            }
        }
    }

    @Test func `the quality of a session's network is reported every two seconds`() {
        var events = SessionEvents()
        let text = { (level: Int) in "event: network.quality\ndata: {\"downlink\":\(level),\"uplink\":0}\n\n" }
        let change = { (level: LinkQuality.Level) in
            ParticipantEvent.notification(
                Notification(.networkQuality(LinkQuality(downlink: level)), timestamp: 1_000)
            )
        }
        let time = { (milliseconds: Int64) in Instant(nanoseconds: 1 + milliseconds * 1_000_000) }
        #expect(events.nextDeadline == nil && events.handleTimeout(at: time(0)) == nil)
        #expect(events.received(change(.good), at: time(500)) == text(2))
        #expect(events.nextDeadline == time(2_500))
        #expect(events.handleTimeout(at: time(2_499)) == nil)
        #expect(events.handleTimeout(at: time(2_500)) == text(2))
        // Another level is reported at its time.
        #expect(events.received(change(.bad), at: time(3_000)) == nil)
        #expect(events.received(.ended(.left), at: time(3_500)) == "event: ended\ndata: {\"reason\":\"LEFT\"}\n\n")
        #expect(events.nextDeadline == time(4_500))
        // A late timeout moves the next one.
        #expect(events.handleTimeout(at: time(5_000)) == text(4))
        #expect(events.nextDeadline == time(7_000))
    }

    @Test(
        arguments: [
            (.kicked, "KICKED", 0x0201_0105), (.banned, "BANNED", 0x0103_0202),
            (.channelTerminated, "CHANNEL-TERMINATED", nil), (.channelExpired, "CHANNEL-EXPIRED", 0x0201_0203),
            (.tokenExpired, "TOKEN-EXPIRED", 0x0201_0205), (.replaced, "USER-REPLACED", nil),
            (.madeAudience, "ROLE-SET-BY-OPERATOR", 0x0102_0201), (.pongTimedOut, "PONG-TIMEOUT-ERROR", 0x0102_020C),
            (.left, "LEFT", nil),
        ] as [(EndReason, String, Int?)]
    )
    func `the end of a session has its result code`(reason: EndReason, word: String, code: Int?) {
        var events = SessionEvents()
        let members = (code.map { "\"code\":\($0)," } ?? "") + "\"reason\":\"\(word)\""
        let text = events.received(.ended(reason), at: Instant(nanoseconds: 0))
        #expect(text == "event: ended\ndata: {\(members)}\n\n")
    }

    @Test func `a new stream of a session begins with the quality of its network`() async throws {
        try await withLiveServer { bench, port, _ in
            let session = try await bench.test { try await $0.watch() }
            await bench.report(.connected(over: .udp), .qualityChanged(LinkQuality(downlink: .poor)))
            try await withConnection(to: port) { client, input in
                try await client.send(request("\(session.path)/events"))
                let event = "event: network.quality\ndata: {\"downlink\":3,\"uplink\":0}\n\n"
                #expect(await input.read(until: event).hasSuffix(event))
            }
            _ = try await bench.test { try await $0.send(.delete, session.path) }
            await bench.expectNothingLeft()
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
