import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing

@testable import Operators
@testable import Signaling
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct SessionForwardingTests {
    private static let secret = String(repeating: "A", count: 52)
    /// The tag of ``FakeOtherNodes/other``: 0x123456 in Base32.
    private static let path = "/sessions/14D2P\(secret)"

    @Test func `a session of another node is passed to that node with the fields that sessions use`() async throws {
        let cluster = FakeOtherNodes()
        cluster.change { state in
            state.result = .success(
                ForwardedResponse(
                    status: 200,
                    headers: [
                        ForwardedRequest.Field(name: "ETag", value: "\"x\""),
                        ForwardedRequest.Field(name: "Set-Cookie", value: "a=b"),
                    ],
                    body: Array("answer".utf8)
                )
            )
        }
        try await SignalingBench(cluster: cluster).test { http in
            let response = try await http.send(
                .patch,
                Self.path + "?auth_key=1",
                type: "application/trickle-ice-sdpfrag",
                token: "t",
                ifMatch: "*",
                body: Offers.restart
            )
            #expect(response.status == .ok && response.text == "answer" && response.headers[.eTag] == "\"x\"")
            #expect(response.headers[.setCookie] == nil)
            #expect(response.headers[.accessControlAllowOrigin] == "*")
            let request = try #require(cluster.forwarded.first)
            #expect(request.method == "PATCH" && request.target == Self.path + "?auth_key=1")
            #expect(request.body == Array(Offers.restart.utf8))
            let headers = Dictionary(request.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
            #expect(headers["authorization"] == "Bearer t" && headers["if-match"] == "*")
            #expect(headers["content-type"] == "application/trickle-ice-sdpfrag" && headers["traceparent"] == nil)
            #expect(headers["user-agent"] == nil)
            #expect(cluster.change { $0.forwarded.first?.node } == FakeOtherNodes.other)
        }
    }

    @Test func `a request that is passed on stays part of its client's trace`() async throws {
        let cluster = FakeOtherNodes()
        cluster.change { $0.result = .success(ForwardedResponse(status: 200, headers: [], body: [])) }
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        try await SignalingBench(cluster: cluster).test { http in
            let headers: HTTPFields = [.traceparent: parent]
            let response = try await http.client.execute(uri: Self.path, method: .delete, headers: headers, body: nil)
            #expect(response.status == .ok)
            let field = ForwardedRequest.Field(name: "traceparent", value: parent)
            #expect(cluster.forwarded.first?.headers == [field])
        }
    }

    @Test(arguments: [
        (NodeRequestError.noNode, HTTPResponse.Status.notFound), (.timedOut, .serviceUnavailable),
    ])
    func `a node that is gone has no sessions, and one that does not answer may be back`(
        failure: NodeRequestError,
        status: HTTPResponse.Status
    ) async throws {
        let cluster = FakeOtherNodes()
        cluster.change { $0.result = .failure(failure) }
        let bench = try SignalingBench(cluster: cluster)
        try await bench.test { http in
            for method in [HTTPRequest.Method.get, .delete] {
                let response = try await http.send(method, Self.path)
                #expect(response.status == status)
                #expect((response.headers[.retryAfter] == "1") == (status == .serviceUnavailable))
            }
        }
        #expect(bench.statistics.counts.refusals[.forwarding] == 2)
    }

    @Test func `a client without a token does not learn which nodes exist`() async throws {
        let authorizer = try #require(StaticTokenAuthorizer(token: "0123456789abcdef"))
        try await SignalingBench(authorizer: authorizer, cluster: FakeOtherNodes()).test { http in
            let refused = try await http.send(.delete, Self.path)
            #expect(refused.status == .unauthorized)
            #expect(try await http.send(.delete, Self.path, token: "0123456789abcdef").status == .notFound)
        }
    }

    @Test func `the events of a session are read at its node`() async throws {
        let cluster = FakeOtherNodes()
        try await SignalingBench(cluster: cluster).test { http in
            let response = try await http.send(.get, "\(Self.path)/events?a=b")
            #expect(response.status == .temporaryRedirect)
            #expect(response.headers[.location] == "https://b.example:8443\(Self.path)/events?a=b")
            // Its link is not up yet.
            cluster.change { $0.status.others[0].address = nil }
            let early = try await http.send(.get, "\(Self.path)/events")
            #expect(early.status == .serviceUnavailable && early.headers[.retryAfter] == "1")
            cluster.change { $0.status.others[0].isIgnored = true }
            #expect(try await http.send(.get, "\(Self.path)/events").status == .notFound)
            cluster.change { $0.status.others = [] }
            #expect(try await http.send(.get, "\(Self.path)/events").status == .notFound)
            #expect(cluster.forwarded.isEmpty)
        }
    }

    @Test(arguments: [
        "", "A", secret + "A", "ZZZZZ\(secret)", "14D2p\(secret)", "14D2P\(secret.dropLast())u",
    ])
    func `what is no identifier of a session is unknown and never passed on`(id: String) async throws {
        let cluster = FakeOtherNodes()
        try await SignalingBench(cluster: cluster).test { http in
            let response = try await http.send(.delete, "/sessions/\(id)")
            #expect(response.status == .notFound)
        }
        #expect(cluster.forwarded.isEmpty)
    }

    @Test func `a session is changed, read and ended through another node, and nothing else is`() async throws {
        let (a, b) = (JoinedNodes(FakeOtherNodes.own), JoinedNodes(FakeOtherNodes.other))
        let nodes = FakeCluster()
        let first = try SignalingBench(cluster: a, directory: nodes.seen(from: a.incarnation))
        let second = try SignalingBench(cluster: b, directory: nodes.seen(from: b.incarnation))
        nodes.add(first.directory, as: a.incarnation)
        nodes.add(second.directory, as: b.incarnation)
        b.connect(to: first.server)
        try await first.test { own in
            let session = try await own.publish()
            #expect(session.path.hasPrefix("/sessions/00007") && session.path.utf8.count == 10 + 57)
            try await second.test { http in
                #expect(try await http.send(.get, session.path).status == .noContent)
                #expect(try await http.send(.head, session.path).status == .noContent)
                let restarted = try await http.patch(session, ifMatch: session.tag, Offers.restart)
                #expect(restarted.status == .ok && restarted.text.contains("a=ice-ufrag:"))
                #expect(restarted.headers[.eTag] != nil && restarted.headers[.eTag] != session.tag)
                let refresh = try await http.send(.patch, session.path, type: "application/json", body: "[]")
                #expect(refresh.status == .badRequest, "its body arrives")
                let statistics = try await http.send(.get, "\(session.path)/statistics")
                let local = try await own.send(.get, "\(session.path)/statistics")
                #expect(statistics.status == local.status && statistics.text == local.text)
                #expect(statistics.headers[.contentType] == local.headers[.contentType])
                #expect(try await http.send(.delete, session.path).status == .ok)
                #expect(try await http.send(.delete, session.path).status == .notFound)
            }
        }
        for (method, target) in [
            ("POST", "/whip/lobby"), ("GET", "/api/channels/lobby"), ("GET", "/"), ("PUT", Self.path), ("", "/"),
            ("GET", "\(Self.path)/events"), ("GET", String(repeating: "x", count: 9_000)),
        ] {
            let request = ForwardedRequest(method: method, target: target, headers: [], body: [])
            let status = await first.server.respond(to: request).status
            #expect([400, 404].contains(status), "\(method) \(target.prefix(20))")
        }
    }

    @Test func `a connection of another node is listed with its statistics and its node`() async throws {
        let (a, b) = (JoinedNodes(FakeOtherNodes.own), JoinedNodes(FakeOtherNodes.other))
        let nodes = FakeCluster()
        let benches = try [a, b].map { try SignalingBench(cluster: $0, directory: nodes.seen(from: $0.incarnation)) }
        let apis = zip(benches, [a, b]).map { bench, node in
            AdminAPI(
                directory: bench.directory,
                statistics: SignalingStatistics(),
                clientStatistics: ClientStatistics(),
                node: NodeIdentity(name: node.incarnation == a.incarnation ? "a" : "b"),
                cluster: node
            )
        }
        for (bench, node) in zip(benches, [a, b]) { nodes.add(bench.directory, as: node.incarnation) }
        try await benches[0].test { first in
            _ = try await first.publish()
            let publisher = try #require(await benches[0].plane.peers.keys.first)
            await benches[0].plane.report(.connected(over: .udp), from: publisher)
            await benches[0].directory.takeEvents()
            try await benches[1].test { second in
                _ = try await second.watch()
                await nodes.settle()
                let lobby = try #require(ChannelName("lobby"))
                let ofOthers = await benches[1].directory.connections(in: lobby).filter { $0.node == a.incarnation }
                let connection = try #require(ofOthers.first)
                await benches[0].plane.setStatistics(PeerStatistics(isConnected: true), of: publisher)
                for (isReached, name) in [(false, ""), (true, "a")] {
                    b.connect(to: isReached ? apis[0] : nil)
                    let document = try #require(await apis[1].document(of: connection.member.id))
                    #expect(document["node_name"]?.string == name)
                    #expect(document["stats"]?["connected"] == (isReached ? true : nil))
                    #expect(document["connection_id"]?.string == connection.member.id.value)
                }
                let ids = [connection.member.id.value, "x"].map { JSONValue.string($0) }
                let answer = await apis[1].answer(connections: JSONValue.array(ids).bytes)
                #expect(answer == Array("{}".utf8), "it is not there")
            }
        }
        for text in ["", "{", "{}", "1"] { #expect(await apis[0].answer(connections: Array(text.utf8)) == nil) }
    }

    @Test func `a request that was passed on once is not passed on again`() async throws {
        let cluster = FakeOtherNodes()
        let bench = try SignalingBench(cluster: cluster)
        let request = ForwardedRequest(method: "DELETE", target: Self.path, headers: [], body: [])
        #expect(await bench.server.respond(to: request).status == 404)
        #expect(cluster.forwarded.isEmpty)
    }
}
