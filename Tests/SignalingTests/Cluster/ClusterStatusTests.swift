import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import Testing

@testable import Operators
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct ClusterStatusTests {
    @Test func `the cluster is listed as JSON, with and without a token`() async throws {
        try await OperatorsBench.run(cluster: FakeOtherNodes()) { api in
            let status = try await api.call(.get, "/v1/cluster")
            #expect(status["cluster"] == "main" && status["node"] == "a" && status["incarnation"] == "000007")
            #expect(status["store"] == "down")
            #expect(status["rooms_by_nodes"] == [["nodes": 1, "rooms": 9], ["nodes": 2, "rooms": 3]])
            let nodes = try #require(status["nodes"]?.array)
            #expect(nodes.count == 2 && nodes[0]["link"] == nil && nodes[0]["load"] == 35)
            #expect(nodes[1]["link"] == "suspect" && nodes[1]["round_trip_us"] == 430)
            #expect(nodes[1]["address"] == "https://b.example:8443" && nodes[1]["state"] == "draining")
            #expect(try api.problem(try await api.send(.get, "/v1/cluster", token: nil)) == .unauthenticated)
            let probe = try await api.send(.get, "/clusterz", token: nil)
            #expect(probe.status == .ok && probe.headers[.contentType] == "application/json")
            #expect(try JSONValue(parsing: probe.text) == status)
            #expect(try await api.send(.post, "/clusterz").status == .methodNotAllowed)
        }
    }

    @Test func `a browser gets a page without markup from names, and with a strict policy`() async throws {
        try await OperatorsBench.run(cluster: FakeOtherNodes()) { api in
            let response = try await api.send(.get, "/clusterz", token: nil, accept: "text/html,*/*;q=0.8")
            #expect(response.headers[.contentType] == "text/html; charset=utf-8" && response.headers[.vary] == "Accept")
            let page = response.text
            #expect(page.contains("b&lt;i&gt;") && !page.contains("b<i>"))
            #expect(page.contains("1 of 2 nodes ready") && page.contains("9 rooms on 1 node, 3 rooms on 2 nodes"))
            #expect(page.contains("0.43 ms") && page.contains("store down"))
            let columns = page.matches(of: /<th scope="col">([^<]+)<\/th>/).map { String($0.1) }
            #expect(
                columns == ["Node", "State", "Load", "Members", "Rooms", "Link", "Round trip", "Place", "Version"]
            )
            let policy = try #require(response.headers[.contentSecurityPolicy])
            let nonce = try #require(page.firstMatch(of: /<style nonce="(\w+)">/)?.1)
            #expect(policy.contains("default-src 'none'; style-src 'nonce-\(nonce)'") && !policy.contains("unsafe"))
            #expect(!page.contains("<script") && !page.contains("style=\""))
        }
    }

    @Test func `nodes that are ignored are listed last, marked, and counted by nobody`() async throws {
        let cluster = FakeOtherNodes()
        cluster.change { state in
            var stranger = ClusterStatus.Node(name: "c", incarnation: FakeOtherNodes.other, state: .ready)
            stranger.members = 1_000
            stranger.isIgnored = true
            state.status.others.append(stranger)
        }
        try await OperatorsBench.run(cluster: cluster) { api in
            let status = try await api.call(.get, "/v1/cluster")
            let nodes = try #require(status["nodes"]?.array)
            #expect(nodes.map { $0["ignored"]?.bool } == [false, false, true])
            #expect(nodes.map { $0["link"]?.string } == [nil, "suspect", "none"])
            let page = try await api.send(.get, "/clusterz", token: nil, accept: "text/html").text
            #expect(page.contains("1 of 2 nodes ready · 1 ignored · 0 members") && page.contains("ready, ignored"))
            let answer = await api.admin.answer(target: "Sora_20211215.ListClusterNodes", body: [])
            #expect(answer.body.array?.count == 2)
        }
    }

    @Test func `Sora's API lists the nodes`() async throws {
        try await OperatorsBench.run(cluster: FakeOtherNodes()) { api in
            let answer = await api.admin.answer(target: "Sora_20211215.ListClusterNodes", body: [])
            #expect(answer.status == 200)
            #expect(
                answer.body == [
                    [
                        "node_name": "a", "cluster_node_name": "a", "epoch": 7, "mode": "normal", "sora_version": "",
                        "connected": true, "temporary_node": false,
                    ],
                    [
                        "node_name": "b<i>", "cluster_node_name": "b<i>", "epoch": 0x12_3456,
                        "mode": "block_new_connection", "sora_version": "", "connected": false,
                        "temporary_node": false, "cluster_signaling_url": "wss://b.example:8443/signaling",
                    ],
                ]
            )
            for name in ["RegisterClusterNode", "PurgeClusterNode"] {
                let refused = await api.admin.answer(target: "Sora_20211215.\(name)", body: [])
                #expect(refused.status == 400 && refused.body["error_type"] == "UNSUPPORTED-OPERATION")
            }
        }
        try await OperatorsBench.run { api in
            let answer = await api.admin.answer(target: "Sora_20211215.ListClusterNodes", body: [])
            #expect(answer.status == 400 && answer.body["error_type"] == "NOT-IN-CLUSTER")
        }
    }

    @Test func `a member's connections name their node`() async throws {
        for (cluster, name) in [
            (nil, "nagare"), (FakeOtherNodes(incarnation: .standalone), "a"), (FakeOtherNodes(), ""),
        ] {
            try await OperatorsBench.run(cluster: cluster) { api in
                _ = try await api.publish(as: "alice")
                let members = try await api.call(.get, "/v1/channels/lobby/members")["members"]?.array
                let connection = members?.first?["connections"]?.array?.first
                #expect(connection?["node"]?.string == name)
            }
        }
    }

    @Test(
        arguments: [
            ([], false), (["*/*"], false), (["application/json"], false), (["text/html"], true),
            (["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true),
            (["text/html;q=0.5, application/json"], false), (["text/html", "application/json;q=0.9"], true),
            (["TEXT/HTML ; q=0"], false), (["text/html;q=x"], true), ([",;,"], false),
        ] as [([String], Bool)]
    )
    func `the page is for clients that prefer it`(accept: [String], isPreferred: Bool) {
        #expect(AdminResponder.prefersHTML(accept) == isPreferred)
    }

    @Test func `a node without a cluster says so`() async throws {
        try await OperatorsBench.run { api in
            let probe = try await api.send(.get, "/clusterz", token: nil)
            #expect(probe.status == .notFound)
            let refused = try await api.send(.get, "/v1/cluster")
            #expect(try api.problem(refused) == .clusterMissing)
        }
    }
}
