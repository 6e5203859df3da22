import Access
import Base
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import Testing
import Wire

@testable import Signaling
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct SessionTests {
    @Test func `trickled candidates answer 204 and keep the ETag`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.publish()
            for condition in [session.tag, "\"other\", \(session.tag)", "*", "\"*\""] {
                let response = try await http.patch(session, ifMatch: condition, Offers.trickle)
                #expect(response.status == .noContent)
                #expect(response.headers[.eTag] == nil)
                #expect(response.body.readableBytes == 0)
            }
        }
    }

    @Test(arguments: ["*", "\"*\"", "tag"])
    func `new credentials restart ICE and change the ETag`(condition: String) async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            let old = try #require(await bench.plane.peers[PeerID(rawValue: 1)]).localCredentials
            let condition = condition == "tag" ? session.tag : condition
            let response = try await http.patch(session, ifMatch: condition, Offers.restart)
            #expect(response.status == .ok)
            #expect(response.headers[.contentType] == "application/trickle-ice-sdpfrag")
            let tag = try #require(response.headers[.eTag])
            #expect(tag != session.tag)
            let peer = try #require(await bench.plane.peers[PeerID(rawValue: 1)])
            #expect(peer.localCredentials != old)
            #expect(peer.remote.credentials.usernameFragment == "Nw2b")
            #expect(response.text.contains("a=ice-ufrag:\(peer.localCredentials.usernameFragment)\r\n"))
            #expect(response.text.contains("a=ice-pwd:\(peer.localCredentials.password)\r\n"))
            #expect(response.text.contains("typ host"))
            #expect(try await http.patch(session, ifMatch: session.tag, Offers.restart).status == .preconditionFailed)
            #expect(try await http.patch(session, ifMatch: tag, Offers.restart).status == .noContent)
        }
    }

    @Test func `a failed ICE restart keeps the session and its ETag`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            await bench.plane.setRefuses(true)
            #expect(try await http.patch(session, ifMatch: "*", Offers.restart).status == .serviceUnavailable)
            #expect(try await http.patch(session, ifMatch: session.tag, Offers.trickle).status == .noContent)
        }
    }

    @Test func `of two simultaneous ICE restarts the second gets 409`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            await bench.plane.closeGate()
            let first = Task { try await http.patch(session, ifMatch: "*", Offers.restart) }
            await bench.plane.waitForArrival()
            let second = try await http.patch(session, ifMatch: "*", Offers.restart)
            #expect(second.status == .conflict && second.headers[.retryAfter] == "1")
            await bench.plane.openGate()
            #expect(try await first.value.status == .ok)
        }
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let ifMatch: String?
        let type: String?
        let body: String
        let status: HTTPResponse.Status
        init(
            _ name: String,
            ifMatch: String? = "*",
            type: String? = "application/trickle-ice-sdpfrag",
            body: String = Offers.trickle,
            _ status: HTTPResponse.Status
        ) {
            testDescription = name
            (self.ifMatch, self.type, self.body, self.status) = (ifMatch, type, body, status)
        }
    }
    static let refusals = [
        Refusal("no If-Match", ifMatch: nil, .preconditionRequired),
        Refusal("empty If-Match", ifMatch: " ", .preconditionRequired),
        Refusal("wrong tag", ifMatch: "\"wrong\"", .preconditionFailed),
        Refusal("tag without quotes", ifMatch: "wrong", .preconditionFailed),
        Refusal("no media type", type: nil, .unsupportedMediaType),
        Refusal("SDP", type: "application/sdp", body: Offers.publish, .unsupportedMediaType),
        Refusal("empty fragment", body: "", .badRequest),
        Refusal("garbage", body: "hello", .badRequest),
        Refusal("fragment without a password", body: "a=ice-ufrag:EsAw\r\nm=audio 9 X 0\r\na=mid:0\r\n", .badRequest),
        Refusal("fragment too large", body: String(repeating: "a=x\r\n", count: 20_000), .contentTooLarge),
    ]

    @Test(arguments: refusals)
    func `an invalid PATCH gets its status and changes nothing`(row: Refusal) async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            let response = try await http.send(
                .patch,
                session.path,
                type: row.type,
                ifMatch: row.ifMatch,
                body: row.body
            )
            #expect(response.status == row.status, "\(response.text)")
            #expect(try await http.patch(session, ifMatch: session.tag, Offers.trickle).status == .noContent)
        }
    }

    @Test func `a weak ETag never matches`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.publish()
            let response = try await http.patch(session, ifMatch: "W/\(session.tag)", Offers.trickle)
            #expect(response.status == .preconditionFailed)
        }
    }

    @Test func `DELETE ignores If-Match and removes the session`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            for session in [try await http.publish(), try await http.watch()] {
                #expect(try await http.send(.delete, session.path, ifMatch: "\"bogus\"").status == .ok)
                #expect(try await http.send(.delete, session.path).status == .notFound)
                #expect(try await http.send(.get, session.path).status == .notFound)
                #expect(try await http.patch(session, ifMatch: "*", Offers.restart).status == .notFound)
            }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a session ends with its transport`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            let session = try await http.publish()
            await bench.plane.lose(PeerID(rawValue: 1))
            await bench.plane.report(.closed(.consentExpired), from: PeerID(rawValue: 1))
            await bench.directory.takeEvents()
            #expect(try await http.send(.delete, session.path).status == .notFound)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a session answers GET, HEAD, OPTIONS and other methods as RFC 9725 requires`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.publish()
            #expect(try await http.send(.get, session.path).status == .noContent)
            #expect(try await http.send(.head, session.path).status == .noContent)
            let options = try await http.send(.options, session.path)
            #expect(options.status == .ok)
            #expect(options.headers[.acceptPatch] == "application/trickle-ice-sdpfrag, application/json")
            let post = try await http.post(session.path, Offers.publish)
            #expect(post.status == .methodNotAllowed)
            #expect(post.headers[.allow] == "PATCH, DELETE, GET, HEAD, OPTIONS")
        }
    }

    @Test func `a viewer learns what it is sent and why not more, and nobody else does`() async throws {
        let bench = try SignalingBench(authorizer: StaticTokenAuthorizer(token: "t")!)
        try await bench.test { http in
            let created = try OpenSession(await http.post("/whep/lobby", Offers.watch, token: "t"))
            let path = "\(created.path)/statistics"
            let peer = PeerID(rawValue: 1)
            let layer = LayerDescription(rid: RID("r0"), temporalID: 1, height: 180, bitsPerSecond: 150_000)
            let statistics = PeerStatistics(
                isConnected: true,
                sent: [
                    PeerStatistics.Sent(
                        mid: try #require(MID("1")),
                        kind: .video,
                        ssrc: SSRC(rawValue: 1),
                        wanted: LayerDescription(spatialID: 2, temporalID: 2),
                        target: layer,
                        current: nil
                    )
                ],
                sending: SendingStatistics(
                    state: .steady,
                    limit: .delay,
                    feedback: .transportCC,
                    target: 800_000,
                    demand: 2_500_000,
                    queueDelay: .milliseconds(12),
                    lossRatio: 0.25
                )
            )
            #expect(try await http.send(.get, path, token: "t").status == .notFound, "without statistics")
            await bench.plane.setStatistics(statistics, of: peer)
            let answer = try await http.send(.get, path, token: "t")
            #expect(answer.status == .ok && answer.headers[.cacheControl] == "no-store")
            let document = try JSONValue(parsing: answer.text)
            let sending = try #require(document["sending"])
            #expect(sending["state"] == "steady" && sending["limit"] == "delay")
            #expect(sending["feedback"] == "transport-cc" && sending["delivered_bits_per_second"] == nil)
            #expect(sending["target_bits_per_second"] == 800_000 && sending["demand_bits_per_second"] == 2_500_000)
            #expect(sending["queue_delay_msec"]?.double == 12 && sending["loss"]?.double == 0.25)
            let slot = try #require(document["slots"]?.array?.first)
            #expect(slot["mid"] == "1" && slot["kind"] == "video" && slot["playing"] == false)
            #expect(slot["wanted"] == ["spatial_id": 2, "temporal_id": 2, "bits_per_second": 0])
            #expect(
                slot["target"]
                    == ["rid": "r0", "spatial_id": 0, "temporal_id": 1, "height": 180, "bits_per_second": 150_000]
            )
            #expect(slot["current"] == nil)
            #expect(try await http.send(.head, path, token: "t").body.readableBytes == 0)
            #expect(try await http.send(.get, path).status == .unauthorized)
            #expect(try await http.send(.get, path, token: "x").status == .unauthorized)
            #expect(try await http.send(.delete, path, token: "t").status == .methodNotAllowed)
            let id = String(repeating: "0", count: 26)
            #expect(try await http.send(.get, "/sessions/\(id)/statistics", token: "t").status == .notFound)
        }
    }

    @Test func `session URLs are long, unique and independent of the participant ID`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.publish()
            #expect(session.path.count >= 60)
            #expect(!session.path.contains(session.participant))
            let guess = "/sessions/" + session.participant
            #expect(try await http.send(.delete, guess).status == .notFound)
        }
    }
}
