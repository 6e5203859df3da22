import Access
import Admission
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import Testing

@testable import Sora
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct EndpointTests {
    @Test(arguments: [Offers.publish, Offers.firefox("sendonly"), Offers.chromium("sendrecv")])
    func `a publish offer gets a complete answer`(offer: String) async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let response = try await http.post("/whip/lobby", offer)
            #expect(response.status == .created)
            #expect(response.headers[.contentType] == "application/sdp")
            #expect(response.headers[.location]?.hasPrefix("/sessions/") == true)
            let tag = try #require(response.headers[.eTag])
            #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.count > 20)
            #expect(ParticipantID(response.headers[.participant] ?? "") != nil)
            let answer = response.text
            for line in ["a=recvonly", "a=rtcp-mux-only", "a=rtcp-mux", "a=setup:passive", "a=ice-lite", "typ host"] {
                #expect(answer.contains(line), "\(line)")
            }
            #expect(!answer.contains("a=sendonly"))
        }
        #expect(await bench.directory.counts.publishers == 1)
        #expect(await bench.plane.peers.count == 1)
    }

    @Test(arguments: [Offers.watch, Offers.firefox("recvonly")])
    func `a watch offer is accepted without a publisher`(offer: String) async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let response = try await http.post("/whep/lobby", offer)
            #expect(response.status == .created)
            let answer = response.text
            #expect(answer.contains("a=sendonly") && answer.contains("a=rtcp-mux-only"))
            let streams = Set(
                answer.split(separator: "\r\n").filter { $0.hasPrefix("a=msid:") }.compactMap {
                    $0.dropFirst(7).split(separator: " ").first
                }
            )
            #expect(streams.count == 1)
        }
        #expect(await bench.directory.counts.viewers == 1)
    }

    @Test(arguments: [TURNAnnouncement.off, .auto, .on])
    func `an answer names the node's TURN server when the setting says so`(announcement: TURNAnnouncement) async throws
    {
        var sora = SoraConfiguration()
        sora.embeddedTURN = announcement
        let bench = try SignalingBench(sora: sora)
        let access = TURNAccess(urls: ["turn:192.0.2.9:7000?transport=udp"], username: "u+/1", password: "p/w+")
        await bench.plane.setTURN(access)
        try await bench.test { http in
            for (path, offer) in [("/whip/lobby", Offers.publish), ("/whep/lobby", Offers.watch)] {
                let response = try await http.post(path, offer)
                let servers = response.headers[values: .link].filter { $0.contains("ice-server") }
                let link =
                    #"<turn:192.0.2.9:7000?transport=udp>; rel="ice-server"; username="u+/1"; "#
                    + #"credential="p/w+"; credential-type="password""#
                #expect(servers == (announcement == .on ? [link] : []))
                #expect(response.headers[values: .link].count == servers.count + 1)
            }
        }
        #expect(await bench.plane.turnPeers.count == (announcement == .on ? 2 : 0))
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
        #expect(await bench.plane.turnPeers.isEmpty)
    }

    private struct TCPOnly: Authorizer {
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision {
            var grants = Grants()
            grants.turnTCPOnly = true
            return .allowed(grants)
        }
    }

    @Test(arguments: [TURNAnnouncement.off, .auto, .on], [true, false])
    func `an answer names the TURN servers of the settings, behind the node's own`(
        announcement: TURNAnnouncement,
        isTCPOnly: Bool
    ) async throws {
        var sora = SoraConfiguration()
        sora.embeddedTURN = announcement
        let urls = ["turn:turn.example:3478?transport=udp", "turns:turn.example:443?transport=tcp"]
        sora.turn = SoraConfiguration.TURN(urls: urls, username: "a\"b", credential: #"c\d"#)
        let bench = try SignalingBench(authorizer: isTCPOnly ? TCPOnly() : OpenAuthorizer(), sora: sora)
        await bench.plane.setTURN(TURNAccess(urls: ["turn:192.0.2.9:7000"], username: "u", password: "p"))
        let own = #"<turn:192.0.2.9:7000>; rel="ice-server"; username="u"; credential="p"; credential-type="password""#
        let external = urls.map {
            #"<\#($0)>; rel="ice-server"; username="a\"b"; credential="c\\d"; credential-type="password""#
        }
        try await bench.test { http in
            for (path, offer) in [("/whip/lobby", Offers.publish), ("/whep/lobby", Offers.watch)] {
                let response = try await http.post(path, offer)
                let servers = response.headers[values: .link].filter { $0.contains("ice-server") }
                let all = (announcement == .on ? [own] : []) + external
                #expect(servers == (isTCPOnly ? [external[1]] : all))
            }
        }
    }

    @Test(arguments: ["application/sdp", "application/SDP; charset=utf-8", "APPLICATION/sdp;x=y", " application/sdp "])
    func `the media type is compared without case and parameters`(type: String) async throws {
        try await SignalingBench().test { http in
            let response = try await http.send(.post, "/whip/lobby", type: type, body: Offers.publish)
            #expect(response.status == .created)
        }
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let method: HTTPRequest.Method
        let path: String
        let type: String?
        let body: String
        let status: HTTPResponse.Status
        init(
            _ name: String,
            _ method: HTTPRequest.Method = .post,
            _ path: String = "/whip/lobby",
            type: String? = "application/sdp",
            body: String = "",
            is status: HTTPResponse.Status
        ) {
            testDescription = name
            (self.method, self.path, self.type, self.body, self.status) = (method, path, type, body, status)
        }
    }

    static let twoVideos = Offers.chromium(
        "sendonly",
        sections: [Offers.chromiumVideo("sendonly", mid: "0"), Offers.chromiumVideo("sendonly")]
    )

    static let refusals = [
        Refusal("no media type", type: nil, body: Offers.publish, is: .unsupportedMediaType),
        Refusal("JSON", type: "application/json", body: "{}", is: .unsupportedMediaType),
        Refusal("almost the media type", type: "application/sdpx", body: Offers.publish, is: .unsupportedMediaType),
        Refusal("empty body", is: .badRequest),
        Refusal("garbage", body: "hello", is: .badRequest),
        Refusal("no media", body: "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", is: .badRequest),
        Refusal("recvonly to WHIP", body: Offers.watch, is: .badRequest),
        Refusal("inactive to WHIP", body: Offers.chromium("inactive"), is: .badRequest),
        Refusal("sendonly to WHEP", .post, "/whep/lobby", body: Offers.publish, is: .badRequest),
        Refusal("two videos", body: twoVideos, is: .unprocessableContent),
        Refusal("body too large", body: String(repeating: "a=x\r\n", count: 20_000), is: .contentTooLarge),
        Refusal("PUT", .put, is: .methodNotAllowed),
        Refusal("PATCH to an endpoint", .patch, is: .methodNotAllowed),
        Refusal("DELETE to an endpoint", .delete, "/whep/lobby", is: .methodNotAllowed),
        Refusal("no channel", .post, "/whip/", is: .badRequest),
        Refusal("nothing after whip", .post, "/whip", is: .notFound),
        Refusal("too deep", .post, "/whip/a/b", is: .notFound),
        Refusal("other path", .get, "/nothing/here", is: .notFound),
        Refusal("other file", .get, "/favicon.ico", is: .notFound),
        Refusal("path traversal", .get, "/../Package.swift", is: .notFound),
        Refusal("invalid percent-encoding", .post, "/whip/%zz", is: .badRequest),
        Refusal("channel name that is not UTF-8", .post, "/whip/%ff", is: .badRequest),
        Refusal("control character in a channel name", .post, "/whip/a%00b", is: .badRequest),
        Refusal("channel name too long", .post, "/whip/" + String(repeating: "x", count: 256), is: .badRequest),
        Refusal("participant that cannot be", .post, "/whep/lobby/nobody", is: .notFound),
        Refusal(
            "participant that is not there",
            .post,
            "/whep/lobby/0123456789ABCDEFGHJKMNPQRS",
            body: Offers.watch,
            is: .notFound
        ),
        Refusal("display name too long", .post, "/whip/a?name=" + String(repeating: "x", count: 65), is: .badRequest),
        Refusal("control character in a display name", .post, "/whip/a?name=%07", is: .badRequest),
        Refusal("a height that is none", .post, "/whep/a?height=small", is: .badRequest),
        Refusal("no height", .post, "/whep/a?height=", is: .badRequest),
        Refusal("a height of nothing", .post, "/whep/a?height=0", is: .badRequest),
        Refusal("a height too large", .post, "/whep/a/0123456789ABCDEFGHJKMNPQRS?height=4321", is: .badRequest),
    ]

    @Test(arguments: refusals)
    func `an invalid request gets its status, a problem document and CORS headers, and reserves nothing`(row: Refusal)
        async throws
    {
        let bench = try SignalingBench()
        try await bench.test { http in
            let response = try await http.send(row.method, row.path, type: row.type, body: row.body)
            #expect(response.status == row.status, "\(response.text)")
            #expect(response.headers[.contentType] == "application/problem+json")
            #expect(response.text.contains("\"detail\":\""))
            #expect(response.headers[.accessControlAllowOrigin] == "*")
            if row.status == .methodNotAllowed {
                #expect(response.headers[.allow] == "POST, GET, HEAD, OPTIONS")
            }
        }
        await bench.expectNothingLeft()
    }

    @Test(arguments: ["/whip/lobby", "/whep/lobby", "/whep/lobby/0123456789ABCDEFGHJKMNPQRS"])
    func `an endpoint answers GET, HEAD and OPTIONS as RFC 9725 requires`(path: String) async throws {
        try await SignalingBench().test { http in
            let get = try await http.send(.get, path)
            #expect(get.status == .noContent && get.body.readableBytes == 0)
            let head = try await http.send(.head, path)
            #expect(head.status == .ok && head.body.readableBytes == 0)
            #expect(head.headers[.contentType] == "application/sdp")
            let options = try await http.send(.options, path)
            #expect(options.status == .ok)
            #expect(options.headers[.acceptPost] == "application/sdp")
            #expect(options.headers[.allow] == "POST, GET, HEAD, OPTIONS")
        }
    }

    @Test(arguments: [
        (HTTPRequest.Method.get, "/"), (.get, "/nothing"), (.post, "/whip/lobby"), (.get, "/whip/lobby"),
        (.options, "/whep/lobby"), (.put, "/whip/lobby"), (.delete, "/sessions/x"), (.get, "/api/channels/lobby"),
    ])
    func `every response has CORS headers`(method: HTTPRequest.Method, path: String) async throws {
        try await SignalingBench().test { http in
            let headers = try await http.send(method, path).headers
            #expect(headers[.accessControlAllowOrigin] == "*")
            for method in ["POST", "GET", "OPTIONS", "PATCH", "DELETE"] {
                #expect(headers[.accessControlAllowMethods]?.contains(method) == true)
            }
            for name in ["Authorization", "Content-Type", "If-Match", "Link"] {
                #expect(headers[.accessControlAllowHeaders]?.contains(name) == true)
            }
            let exposed = [
                "Location", "Link", "ETag", "Retry-After", "Accept-Post", "WWW-Authenticate", "Nagare-Participant",
            ]
            for name in exposed { #expect(headers[.accessControlExposeHeaders]?.contains(name) == true) }
        }
    }

    @Test func `channel names are percent-decoded, including slashes`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let publisher = try await http.publish("/whip/%E6%B5%81%E3%82%8C%2Fa+b?name=Zo%C3%AB+M%C3%BCller")
            let document = try await http.send(.get, "/api/channels/%E6%B5%81%E3%82%8C%2fa+b").text
            #expect(document.contains(publisher.participant))
            #expect(document.contains("\"name\":\"Zoë Müller\""))
            #expect(document.contains("\"channel\":\"流れ/a+b\""))
        }
    }

    @Test func `a viewer can follow one participant`() async throws {
        try await SignalingBench().test { http in
            let publisher = try await http.publish()
            _ = try await http.watch("/whep/lobby/\(publisher.participant)")
            #expect(try await http.post("/whep/other/\(publisher.participant)", Offers.watch).status == .notFound)
        }
    }

    @Test func `a viewer says at which height it shows video`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            _ = try await http.publish()
            _ = try await http.watch("/whep/lobby?height=360")
            _ = try await http.watch("/whep/lobby")
            await bench.report(.connected(over: .udp))
            await bench.directory.settle()
            let video = await bench.plane.preferences.filter { $0.value.importance == .stage }
            let ordered = video.sorted { $0.key.peer.rawValue < $1.key.peer.rawValue }.map(\.value.height)
            #expect(ordered == [360, nil])
            let refusal = try await http.post("/whep/lobby?height=4.5", Offers.watch)
            #expect(refusal.text.contains("a whole number of pixels from 1 to 4320"))
        }
    }

    @Test func `full rooms answer 503 with Retry-After`() async throws {
        let bench = try SignalingBench(limits: RoomLimits(participantsPerChannelMax: 1))
        try await bench.test { http in
            _ = try await http.publish()
            let response = try await http.post("/whep/lobby", Offers.watch)
            #expect(response.status == .serviceUnavailable)
            #expect(response.headers[.retryAfter] == "5")
        }
    }

    @Test func `a draining node answers 503 with Retry-After and keeps its sessions`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            await bench.directory.startDraining()
            let response = try await http.post("/whep/lobby", Offers.watch)
            #expect(response.status == .serviceUnavailable && response.headers[.retryAfter] != nil)
            #expect(try await http.patch(session, ifMatch: session.tag, Offers.trickle).status == .noContent)
            #expect(try await http.send(.delete, session.path).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a refusal by the media plane answers 503 and removes the participant`() async throws {
        let bench = try SignalingBench()
        await bench.plane.setRefuses(true)
        try await bench.test { http in
            let response = try await http.post("/whip/lobby", Offers.publish)
            #expect(response.status == .serviceUnavailable)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a peer that closes during its request answers 503 and is removed`() async throws {
        let bench = try SignalingBench()
        await bench.plane.closeGate()
        try await bench.test { http in
            let request = Task { try await http.post("/whip/lobby", Offers.publish) }
            await bench.plane.waitForArrival()
            await bench.plane.report(.closed(.setupTimedOut), from: PeerID(rawValue: 1))
            await bench.directory.takeEvents()
            await bench.plane.openGate()
            let response = try await request.value
            #expect(response.status == .serviceUnavailable)
        }
        await bench.expectNothingLeft()
    }

    @Test func `an address above its request rate gets Retry-After`() async throws {
        let bench = try SignalingBench(http: HTTPLimits(requestBurst: 2, requestsPerSecond: 0.01))
        try await bench.test { http in
            for _ in 0..<2 { #expect(try await http.post("/whip/lobby", "x").status == .badRequest) }
            let response = try await http.post("/whip/lobby", "x")
            #expect(response.status == .tooManyRequests)
            // A token takes 100 s, less what passed since the first request.
            let wait = try #require(response.headers[.retryAfter].flatMap { Int($0) })
            #expect((40...100).contains(wait))
            #expect(try await http.send(.get, "/whip/lobby").status == .tooManyRequests, "it may present a token too")
            #expect(try await http.send(.options, "/whip/lobby").status == .ok)
        }
    }

    @Test func `a hundred viewers and publishers join and leave without a leak`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            var sessions: [OpenSession] = []
            for index in 0..<100 {
                sessions.append(index % 10 == 0 ? try await http.publish() : try await http.watch())
            }
            #expect(Set(sessions.map(\.path)).count == 100)
            #expect(Set(sessions.map(\.tag)).count == 100)
            for session in sessions { #expect(try await http.send(.delete, session.path).status == .ok) }
        }
        await bench.expectNothingLeft()
    }
}
