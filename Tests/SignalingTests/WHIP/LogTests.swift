import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Logging
import MediaTypes
import Room
import Testing
import Wire

@testable import Signaling
@testable import Web

/// What the log tells of clients.
@Suite(.timeLimit(.minutes(10)))
struct LogTests {
    @Test func `each line of a connection's life says whose, where, over what, for how long and why`() async throws {
        let log = RecordedLog()
        let bench = try SignalingBench(onEvent: logNotices(to: log.logger))
        try await bench.test { http in
            let session = try OpenSession(try await http.post("/whip/a%22%20reason=none", Offers.publish))
            await bench.report(.formatUnsupported(slot: try #require(MID("0")), codec: .h265))
            #expect(try await http.send(.delete, session.path).status == .ok)
            await bench.directory.settle()
            let unplayed = try #require(
                log.entries("viewer cannot play the publisher's codec, so it sees nothing").first
            )
            #expect(unplayed.fields["codec"] == "H265" && unplayed.fields["channel"] == "a\" reason=none")
            #expect(unplayed.fields["participant"] == session.participant && unplayed.fields["address"] != nil)
            let joined = try #require(log.entries("participant joined").first)
            let ended = try #require(log.entries("participant ended").first)
            for entry in [joined, ended] {
                #expect(entry.level == .info)
                #expect(entry.fields["channel"] == "a\" reason=none", "the handler quotes it")
                #expect(entry.fields["participant"] == session.participant && entry.fields["peer"] != nil)
                #expect(entry.fields["protocol"] == "whip" && entry.fields["role"] == "sendonly")
                #expect(entry.fields["address"] != nil)
            }
            #expect(ended.fields["reason"] == "left" && ended.fields["seconds"].flatMap { Int($0) } != nil)
            let place = try await bench.directory.reserve(
                JoinRequest(
                    channel: try #require(ChannelName("early")),
                    role: .sendonly,
                    agent: ClientAgent(signaling: .whip),
                    network: ClientNetwork(try #require(IPAddress("192.0.2.7")))
                )
            )
            await bench.directory.cancel(place)
            let early = try #require(log.entries("participant ended before it joined").first)
            #expect(early.fields["channel"] == "early" && early.fields["address"] == "192.0.2.7")
            #expect(early.fields["participant"] == place.participant.value && early.fields["reason"] != nil)
        }
    }

    @Test func `a warning names the client whose data channels the node ended, and the reason`() async throws {
        let log = RecordedLog()
        let bench = try SignalingBench(onEvent: logNotices(to: log.logger))
        try await bench.test { http in
            let session = try await http.publish()
            for reason in DataAssociationEnd.allCases { await bench.report(.dataEnded(reason)) }
            let lines = log.entries("the node ended the data channels of a participant")
            #expect(Set(lines.map { $0.fields["reason"] }).count == DataAssociationEnd.allCases.count)
            for line in lines {
                #expect(line.level == .warning && line.fields["channel"] == "lobby")
                #expect(line.fields["participant"] == session.participant && line.fields["address"] != nil)
            }
        }
    }

    @Test func `a refusal is logged with its reason, without secrets`() async throws {
        let log = RecordedLog()
        let authorizer = try #require(StaticTokenAuthorizer(token: "s3cret"))
        let bench = try SignalingBench(authorizer: authorizer, logger: log.logger)
        try await bench.test { http in
            _ = try await http.post("/whip/lobby", Offers.publish, token: "guess")
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: "s3cret"))
            _ = try await http.send(.delete, session.path)
            let refusals = log.entries("request refused")
            #expect(refusals.map(\.level) == [.notice, .notice])
            let first = try #require(refusals.first)
            #expect(first.fields["channel"] == "lobby" && first.fields["protocol"] == "whip")
            #expect(first.fields["status"] == "401" && first.fields["reason"]?.isEmpty == false)
            #expect(first.fields["address"] != nil && refusals.last?.fields["protocol"] == "session")
            for text in log.values {
                #expect(!text.contains("s3cret") && !text.contains("guess") && !text.contains(session.path))
            }
        }
    }

    @Test
    func `the refusal of a signed token names the token, the claim and the client, and the client learns the claim`()
        async throws
    {
        let log = RecordedLog()
        let key = try JWTKey(.hs256, text: OperatorsBench.jwtSecret)
        let other = try JWTKey(.hs256, text: String(OperatorsBench.jwtSecret.reversed()))
        let authorizer = SignatureAuthorizer(
            keys: AccessKeys(jwt: [key]),
            logger: log.logger,
            now: { 1_500_000_000 }
        )
        let bench = try SignalingBench(authorizer: authorizer, logger: log.logger)
        try await bench.test { http in
            for (id, claims, status, message) in [
                ("a", ["exp": 1_400_000_000], 401, "The token expired."),
                ("b", ["nbf": 1_600_000_000], 401, "The token is not valid yet."),
                ("c", ["channel_id": "other"], 403, "The token is for another channel."),
                ("d", ["role": "recvonly"], 403, "The token's role does not permit to publish."),
            ] as [(String, [String: JSONValue], Int, String)] {
                let common: [String: JSONValue] = ["channel_id": "lobby", "jti": .string(id)]
                let token = try #require(key.token(claims: common.merging(claims) { $1 }))
                let refused = try await http.post("/whip/lobby", Offers.publish, token: token)
                #expect(Int(refused.status.code) == status && refused.text.contains(message))
                let line = try #require(log.entries("token refused").last)
                #expect(line.level == .notice && line.fields["token_id"] == id && line.fields["reason"] == message)
                #expect(line.fields["address"] != nil && line.fields["action"] == "publish to lobby")
            }
            let forged = try #require(other.token(claims: ["channel_id": "lobby", "jti": "e", "exp": 1]))
            let refused = try await http.post("/whip/lobby", Offers.publish, token: forged)
            #expect(refused.status == .unauthorized && refused.text.contains("The token is not valid."))
            let line = try #require(log.entries("token refused").last)
            #expect(line.fields["token_id"] == "-", "the signature is not valid, so anybody may have written it")
        }
    }

    @Test func `a member of the claims without effect is logged once, with the reason`() async throws {
        let log = RecordedLog()
        let noted = IgnoredGrants(of: "token", logger: log.logger)
        var grants = Grants()
        grants.ignored = ["cluster_affinity", "tenant\u{7}"]
        for _ in 0..<3 { await noted.note(grants) }
        grants.ignored = (0..<200).map { "n\($0)" }
        await noted.note(grants)
        let lines = log.entries("a member of the token has no effect")
        #expect(lines.count == 64)
        #expect(lines.first?.fields["reason"] == "A channel can be on every node of the cluster.")
        #expect(lines[1].fields["reason"] == "There is no grant of this name.")
        #expect(lines[1].fields["name"]?.contains("\u{7}") == false)
    }

    @Test func `a refused offer is logged with its reason, and what exceeds the rate at level debug`() async throws {
        let log = RecordedLog()
        let bench = try SignalingBench(
            http: HTTPLimits(requestBurst: 2, requestsPerSecond: 0.001),
            logger: log.logger
        )
        try await bench.test { http in
            let malformed = try await http.post("/whip/lobby", "v=0")
            #expect(malformed.status == .badRequest)
            let mistyped = try await http.send(.post, "/whip/lobby", type: "text/plain", body: "v=0")
            #expect(mistyped.status == .unsupportedMediaType)
            #expect(try await http.post("/whip/lobby", Offers.publish).status == .tooManyRequests)
            #expect(try await http.post("/nowhere", Offers.publish).status == .notFound)
        }
        let lines = log.entries("request refused")
        #expect(lines.map { $0.fields["status"] } == ["400", "415", "429", "404"])
        #expect(lines.map(\.level) == [.notice, .notice, .debug, .debug])
        #expect(lines.allSatisfy { $0.fields["reason"]?.isEmpty == false && $0.fields["address"] != nil })
    }

    @Test func `each change of an operator is logged, and nothing that only reads`() async throws {
        let log = RecordedLog()
        try await OperatorsBench.run(readToken: OperatorsBench.readToken, logger: log.logger) { bench in
            let refused = try await bench.send(.put, "/v1/blocks/users/x", token: nil)
            let read = try await bench.send(.get, "/v1/channels")
            #expect(refused.status == .unauthorized && read.status == .ok)
            let listed = try await bench.command("Sora_20201013.ListConnections", token: OperatorsBench.readToken)
            #expect(listed.status == .ok)
            #expect(log.entries("operator made a change").isEmpty)
            let reader = try await bench.send(.put, "/v1/blocks/users/x", token: OperatorsBench.readToken)
            #expect(reader.status == .forbidden && log.entries("operator made a change").isEmpty)
            let changed = try await bench.send(.put, "/v1/blocks/users/x")
            #expect(changed.status.code < 300)
            let (channel, users) = (JSONValue.string("lobby"), JSONValue.array(["alice", "bob\n"]))
            _ = try await bench.publish(as: "alice")
            let made = try await bench.call(
                .post,
                "/v1/tokens",
                ["kind": "jwt", "channel": channel, "role": "recvonly", "claims": ["metadata": "s3cret"]]
            )
            let kicked = try await bench.send(.post, "/v1/channels/lobby/kick", ["users": users])
            #expect(kicked.status.code < 300)
            _ = try await bench.publish(as: "carol")
            let sora = try await bench.command(
                "Sora_20201013.DisconnectChannel",
                ["channel_id": channel, "metadata": "s3cret"],
                token: OperatorsBench.token
            )
            #expect(sora.status == .ok)
            let lines = log.entries("operator made a change")
            #expect(lines.allSatisfy { $0.fields["address"] != nil && $0.fields["role"] == "operate" })
            let token = try #require(lines.first { $0.fields["token_id"] == made["jti"]?.string })
            #expect(token.fields["channel"] == "lobby" && token.fields["member_role"] == "recvonly")
            let kick = try #require(lines.first { $0.fields["operation"] == "POST /v1/channels/lobby/kick" })
            #expect(kick.fields["users"] == "alice bob\u{FFFD}")
            let end = try #require(lines.first { $0.fields["operation"] == "Sora_20201013.DisconnectChannel" })
            #expect(end.fields["channel_id"] == "lobby" && end.fields["metadata"] == nil)
        }
        let change = try #require(log.entries("operator made a change").first)
        #expect(change.level == .notice && change.fields["operation"] == "PUT /v1/blocks/users/x")
        #expect(change.fields["role"] == "operate" && change.fields["token"] == "admin-token")
        let attempt = try #require(log.entries("operator may not make a change").first)
        #expect(attempt.fields["role"] == "read" && attempt.fields["token"] == "admin-read-token")
        for token in [OperatorsBench.token, OperatorsBench.readToken, "s3cret"] {
            #expect(!log.values.contains { $0.contains(token) })
        }
    }
}
