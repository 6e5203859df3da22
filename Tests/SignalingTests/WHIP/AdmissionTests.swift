import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Room
import Synchronization
import Testing
import Wire

@testable import Signaling

/// Makes the same decision for every client, and records the requests.
final class Doorkeeper: Authorizer {
    private let answer: AccessDecision
    private let questions = Mutex<[AccessRequest]>([])
    private let tokens = Mutex<[String]>([])
    /// The tokens that were verified, in order.
    var verified: [String] { tokens.withLock { $0 } }
    var asked: [AccessRequest] { questions.withLock { $0 } }

    init(_ answer: AccessDecision) { self.answer = answer }

    func verify(_ token: String) -> Credential {
        tokens.withLock { $0.append(token) }
        return Credential(token: token)
    }
    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization { .allowed }
    func admit(_ request: AccessRequest) async -> AccessDecision {
        questions.withLock { $0.append(request) }
        return answer
    }
}

/// Judges requests as the authentication webhook does, and newcomers as a ``Doorkeeper``.
private final class Hook: Authorizer {
    private let doorkeeper: Doorkeeper
    var asked: [AccessRequest] { doorkeeper.asked }

    init(_ answer: AccessDecision) { doorkeeper = Doorkeeper(answer) }

    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization {
        switch action {
        case .publish, .watch, .probe: .allowed
        case .control: .asOwner
        case .observe: .asViewer
        }
    }
    func admit(_ request: AccessRequest) async -> AccessDecision { await doorkeeper.admit(request) }
}

@Suite(.timeLimit(.minutes(10)))
struct AdmissionTests {
    @Test func `the authorizer decides on WHIP and WHEP clients, and its grants apply`() async throws {
        var grants = Grants()
        grants.clientID = "given"
        grants.eventMetadata = ["e": 1]
        grants.permissions.channelConnectionsMax = 2
        let doorkeeper = Doorkeeper(.allowed(grants))
        let bench = try SignalingBench(authorizer: doorkeeper)
        try await bench.test { http in
            let publisher = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: "t"))
            _ = try await http.watch()
            let third = try await http.post("/whep/lobby", Offers.watch)
            #expect(third.status == .serviceUnavailable, "the channel is full")
            let asked = doorkeeper.asked
            #expect(asked.map(\.role) == [.sendonly, .recvonly, .recvonly])
            #expect(asked.map(\.agent.signaling) == [.whip, .whep, .whep])
            #expect(asked.map(\.credential?.token) == ["t", nil, nil])
            #expect(asked.first?.participant.value == publisher.participant)
            #expect(Set(asked.map(\.session)).count == 1, "all are of one session")
            let connection = try #require(await bench.directory.connections(in: nil).first)
            #expect(connection.member.clientID == "given" && connection.eventMetadataJSON == #"{"e":1}"#)
            #expect(connection.session == asked[0].session)
        }
    }

    @Test func `a join verifies its token once`() async throws {
        let doorkeeper = Doorkeeper(.allowed(Grants()))
        let bench = try SignalingBench(authorizer: doorkeeper)
        try await bench.test { http in
            _ = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: "a"))
            let viewer = try await http.post("/whep/lobby", Offers.watch, token: "b")
            #expect(viewer.status == .created)
            #expect(doorkeeper.verified == ["a", "b"])
        }
    }

    @Test func `an invalid offer is refused before the client is admitted`() async throws {
        let hook = Hook(.allowed(Grants()))
        let bench = try SignalingBench(authorizer: hook)
        try await bench.test { http in
            let publisher = try await http.post("/whip/lobby", "v=0", token: "t")
            let viewer = try await http.post("/whep/lobby", Offers.publish, token: "t")
            #expect(publisher.status == .badRequest && viewer.status == .badRequest)
            #expect(hook.asked.isEmpty)
        }
        await bench.expectNothingLeft()
    }

    @Test func `with a webhook only the token that opened a session controls it`() async throws {
        let bench = try SignalingBench(authorizer: Hook(.allowed(Grants())))
        try await bench.test { http in
            let owned = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: "t"))
            #expect(try await http.send(.delete, owned.path).status == .unauthorized)
            #expect(try await http.send(.patch, owned.path, ifMatch: "*", body: "").status == .unauthorized)
            #expect(try await http.send(.delete, owned.path, token: "other").status == .forbidden)
            #expect(try await http.send(.get, owned.path, token: "t").status == .noContent)
            #expect(try await http.send(.delete, owned.path, token: "t").status == .ok)
            let open = try await http.watch()
            #expect(try await http.send(.delete, open.path).status == .ok, "nothing was presented")
        }
        await bench.expectNothingLeft()
    }

    @Test func `with a webhook a client that may watch may list the participants`() async throws {
        let hook = Hook(.allowed(Grants()))
        let bench = try SignalingBench(authorizer: hook)
        try await bench.test { http in
            let document = try await http.send(.get, "/api/channels/lobby", token: "t")
            #expect(document.status == .ok)
            #expect(try await http.send(.head, "/api/channels/lobby/events", token: "t").status == .ok)
            #expect(hook.asked.map(\.role) == [.recvonly, .recvonly])
            #expect(hook.asked.map(\.credential?.token) == ["t", "t"])
        }
        let closed = try SignalingBench(authorizer: Hook(.denied(reason: nil)))
        try await closed.test { http in
            let document = try await http.send(.get, "/api/channels/lobby", token: "t")
            #expect(document.status == .forbidden)
            #expect(try await http.send(.get, "/api/channels/lobby/events").status == .unauthorized)
        }
        let dead = try SignalingBench(authorizer: Hook(.failed))
        try await dead.test { http in
            let events = try await http.send(.get, "/api/channels/lobby/events")
            #expect(events.status == .serviceUnavailable)
        }
        await bench.expectNothingLeft()
        await closed.expectNothingLeft()
    }

    @Test func `media of a kind that is not granted is refused over WHIP and WHEP`() async throws {
        for (audio, word) in [(true, "video"), (false, "audio")] {
            var grants = Grants()
            grants.permissions.kinds = audio ? [.audio] : [.video]
            let bench = try SignalingBench(authorizer: Doorkeeper(.allowed(grants)))
            try await bench.test { http in
                let sent = try await http.post("/whip/lobby", Offers.publish, token: "t")
                #expect(sent.status == .forbidden && sent.text.contains("You may not send \(word);"))
                let received = try await http.post("/whep/lobby", Offers.watch, token: "t")
                #expect(received.status == .forbidden && received.text.contains("You may not receive \(word);"))
            }
            await bench.expectNothingLeft()
        }
    }

    @Test func `a denial is 403 with the reason, 401 without a token, and 503 when the authorizer fails`() async throws
    {
        let denied = try SignalingBench(authorizer: Doorkeeper(.denied(reason: "No seat is left.")))
        try await denied.test { http in
            let known = try await http.post("/whip/lobby", Offers.publish, token: "t")
            #expect(known.status == .forbidden && known.text.contains("No seat is left."))
            let unknown = try await http.post("/whep/lobby", Offers.watch)
            #expect(unknown.status == .unauthorized && unknown.headers[.wwwAuthenticate] == "Bearer")
        }
        await denied.expectNothingLeft()
        let failed = try SignalingBench(authorizer: Doorkeeper(.failed))
        try await failed.test { http in
            let response = try await http.post("/whip/lobby", Offers.publish, token: "t")
            #expect(response.status == .serviceUnavailable && response.headers[.retryAfter] != nil)
        }
        await failed.expectNothingLeft()
    }
}
