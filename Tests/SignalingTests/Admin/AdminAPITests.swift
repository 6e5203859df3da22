import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import JSON
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import ServiceLifecycle
import Testing
import Wire

@testable import Operators
@testable import Web

/// An operators' listener over rooms with a publisher and a viewer in `lobby`, both connected.
private struct APIBench {
    let bench: SignalingBench
    let publisher: String
    let viewer: String
    let statistics: SignalingStatistics
    let clientStatistics: ClientStatistics
    let http: any TestClientProtocol

    static func run(
        origins: [String] = [],
        live: Bool = false,
        offer: String = Offers.publish,
        media: AdminAPI.MediaTotals = AdminAPI.MediaTotals(),
        _ body: @Sendable @escaping (APIBench) async throws -> Void
    ) async throws {
        let bench = try SignalingBench()
        let statistics = SignalingStatistics()
        let clientStatistics = ClientStatistics()
        let server = AdminServer(
            host: "127.0.0.1",
            port: 0,
            api: AdminAPI(
                directory: bench.directory,
                statistics: statistics,
                clientStatistics: clientStatistics,
                node: NodeIdentity(name: "n", label: "l", version: "9.9"),
                media: { media }
            ),
            origins: origins,
            logger: SignalingBench.quiet,
            metrics: { "" },
            whyNotReady: { nil }
        )
        try await bench.test { http in
            let publisher = try await http.publish("/whip/lobby", offer).participant
            let viewer = try await http.watch().participant
            for peer: UInt64 in [1, 2] {
                await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: peer))
            }
            await bench.directory.takeEvents()
            try await server.testable.test(live ? .live : .router) { client in
                try await body(
                    APIBench(
                        bench: bench,
                        publisher: publisher,
                        viewer: viewer,
                        statistics: statistics,
                        clientStatistics: clientStatistics,
                        http: client
                    )
                )
            }
        }
    }

    func post(_ target: String?, _ body: String, origin: String? = nil) async throws -> TestResponse {
        var headers = HTTPFields()
        headers[.soraTarget] = target
        headers[.origin] = origin
        return try await http.execute(uri: "/", method: .post, headers: headers, body: ByteBuffer(string: body))
    }

    /// The answer of an operation that succeeds.
    func call(_ operation: String, _ arguments: JSONValue = [:]) async throws -> JSONValue {
        let response = try await post("Sora_20260101.\(operation)", arguments.text)
        #expect(response.status == .ok, "\(operation): \(response.text)")
        return try JSONValue(parsing: response.text)
    }

    func call(
        _ operation: String,
        _ arguments: JSONValue = [:],
        is expected: JSONValue,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await call(operation, arguments)
        #expect(answer == expected, sourceLocation: location)
    }

    /// Status and error type of an operation that fails.
    @discardableResult
    func refusal(
        _ operation: String,
        _ arguments: JSONValue = [:],
        is expected: (status: Int, type: String),
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let response = try await post("Sora_20260101.\(operation)", arguments.text)
        let body = try JSONValue(parsing: response.text)
        let reason = body["error_reason"]?.string ?? ""
        #expect(!reason.isEmpty, sourceLocation: location)
        #expect(response.status.code == expected.status, sourceLocation: location)
        #expect(body["error_type"]?.string == expected.type, sourceLocation: location)
        return reason
    }

    var both: JSONValue { ["channel_id": "lobby", "connection_id": .string(publisher)] }
}

@Suite(.timeLimit(.minutes(10)))
struct AdminAPITests {
    @Test func `connections are listed with their properties`() async throws {
        try await APIBench.run { api in
            for list in [
                try await api.call("ListConnections"), try await api.call("GetStatsAllConnections"),
                try await api.call("ListChannelConnections", ["channel_id": "lobby"]),
            ] {
                let connections = try #require(list.array)
                #expect(connections.map { $0["connection_id"] } == [.string(api.publisher), .string(api.viewer)])
                #expect(connections.map { $0["role"] } == ["sendonly", "recvonly"])
                #expect(connections.allSatisfy { $0["channel_id"] == "lobby" && $0["connected"] == true })
                #expect(connections[0]["client_id"] == .string(api.publisher))
                #expect(connections[0]["created_time"]?.integer ?? 0 > 1_700_000_000)
                #expect(connections[0]["signaling"] == "whip")
            }
            try await api.call("ListChannelConnections", ["channel_id": "empty"], is: [])
            let one = try await api.call("GetStatsConnection", api.both)
            #expect(one["connection_id"] == .string(api.publisher) && one["node_name"] == "n")
            let clients = try await api.call("ListChannelClients", ["channel_id": "lobby"])
            #expect(clients.array?.count == 2)
        }
    }

    @Test func `statistics say what a connection is sent, and why not more`() async throws {
        try await APIBench.run { api in
            let viewer = PeerID(rawValue: 2)
            let layer = LayerDescription(rid: RID("r1"), height: 360, bitsPerSecond: 500_000)
            let slot = PeerStatistics.Sent(mid: MID("1")!, kind: .video, ssrc: SSRC(rawValue: 1), wanted: layer)
            let sending = SendingStatistics(state: .drain, limit: .loss, target: 1, demand: 2, delivered: 3, probes: 4)
            let statistics = PeerStatistics(isConnected: true, sent: [slot], sending: sending)
            await api.bench.plane.setStatistics(statistics, of: viewer)
            let arguments: JSONValue = ["channel_id": "lobby", "connection_id": .string(api.viewer)]
            let stats = try #require(try await api.call("GetStatsConnection", arguments)["stats"])
            #expect(stats["sending"]?["state"] == "drain" && stats["sending"]?["limit"] == "loss")
            #expect(stats["sending"]?["delivered_bits_per_second"] == 3 && stats["sending"]?["probes"] == 4)
            #expect(stats["sent"]?.array?.first?["wanted"]?["height"] == 360)
            #expect(stats["sent"]?.array?.first?["target"] == nil)
        }
    }

    @Test func `a connection has a document`() async throws {
        try await APIBench.run { api in
            let path = "/api/connections/\(api.publisher)"
            let found = try await api.http.execute(uri: path, method: .get)
            #expect(found.status == .ok)
            #expect(try JSONValue(parsing: found.text)["connection_id"] == .string(api.publisher))
            #expect(try await api.http.execute(uri: path, method: .head).status == .ok)
            #expect(try await api.http.execute(uri: path, method: .post).status == .methodNotAllowed)
            #expect(try await api.http.execute(uri: "/api/connections/nobody", method: .get).status == .notFound)
        }
    }

    @Test func `the API disconnects a connection and a whole channel`() async throws {
        try await APIBench.run { api in
            try await api.call("DisconnectConnection", api.both, is: api.both)
            try await api.refusal("DisconnectConnection", api.both, is: (404, "CONNECTION-NOT-FOUND"))
            #expect(await api.bench.directory.connections(in: nil).count == 1)
            try await api.call("DisconnectChannel", ["channel_id": "lobby"], is: ["channel_id": "lobby"])
            try await api.refusal("DisconnectChannel", ["channel_id": "lobby"], is: (404, "CHANNEL-NOT-FOUND"))
            await api.bench.expectNothingLeft()
        }
    }

    @Test func `the API disconnects clients and roles`() async throws {
        try await APIBench.run { api in
            _ = try await api.call("DisconnectChannelByRole", ["channel_id": "lobby", "role": "recvonly"])
            #expect(await api.bench.directory.connections(in: nil).map(\.member.id.value) == [api.publisher])
            let nobody: JSONValue = ["channel_id": "lobby", "client_id": "nobody"]
            try await api.refusal("DisconnectClient", nobody, is: (404, "CLIENT-NOT-FOUND"))
            let client: JSONValue = ["channel_id": "lobby", "client_id": .string(api.publisher)]
            try await api.call("DisconnectClient", client, is: client)
            #expect(await api.bench.directory.connections(in: nil).isEmpty)
        }
    }

    @Test func `a pushed message reaches its receivers only`() async throws {
        try await APIBench.run { api in
            let stranger = try await api.bench.test { try await $0.publish("/whip/hall").participant }
            await api.bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 3))
            await api.bench.directory.takeEvents()
            let members = [api.publisher, api.viewer, stranger]
            var events: [ParticipantEvents] = []
            for member in members {
                let id = try #require(ParticipantID(member))
                events.append(await api.bench.directory.events(of: id))
            }
            let (publisher, viewer) = (JSONValue.string(api.publisher), JSONValue.string(api.viewer))
            let pushes: [(operation: String, target: [String: JSONValue], receivers: [String])] = [
                ("PushChannel", [:], [api.publisher, api.viewer]),
                ("PushChannelByRole", ["role": "sendonly"], [api.publisher]),
                ("PushChannelByRole", ["role": "recvonly"], [api.viewer]),
                ("PushClient", ["client_id": publisher], [api.publisher]),
                ("PushClient", ["client_id": viewer], [api.viewer]),
                ("PushConnection", ["connection_id": publisher], [api.publisher]),
                ("PushConnection", ["connection_id": viewer], [api.viewer]),
            ]
            let data = { (number: Int) -> JSONValue in ["text": ["hello", .integer(number)]] }
            for (number, push) in pushes.enumerated() {
                let target = push.target.merging(["channel_id": "lobby"]) { $1 }
                let message = target.merging(["data": data(number)]) { $1 }
                try await api.call(push.operation, .object(message), is: .object(target))
                try await api.refusal(push.operation, .object(target), is: (400, "INVALID-PARAMETER"))
            }
            let nowhere: JSONValue = ["channel_id": "empty", "data": data(0)]
            try await api.refusal("PushChannel", nowhere, is: (404, "CHANNEL-NOT-FOUND"))
            // A member's events end with it.
            for channel in ["lobby", "hall"] as [JSONValue] {
                _ = try await api.call("DisconnectChannel", ["channel_id": channel])
            }
            for (member, events) in zip(members, events) {
                var texts: [String] = []
                for await case .push(let text) in events { texts.append(text) }
                let expected = pushes.indices.filter { pushes[$0].receivers.contains(member) }.map { data($0).text }
                #expect(texts == expected)
            }
        }
    }

    @Test func `filters are created, updated by version, and deleted`() async throws {
        try await APIBench.run { api in
            for (scope, name) in [("Channel", nil), ("Connection", api.viewer)] as [(String, String?)] {
                var place: [String: JSONValue] = ["channel_id": "lobby"]
                place["connection_id"] = name.map { .string($0) }
                let filter = place.merging([
                    "name": "mute", "priority": 5,
                    "rules": [[["field": "kind", "operator": "is_in", "values": ["audio"]]]],
                ]) { $1 }
                let made = try await api.call("Create\(scope)ForwardingFilter", .object(filter))
                let version = try #require(made["version"]?.string)
                try await api.refusal(
                    "Create\(scope)ForwardingFilter",
                    .object(filter),
                    is: (409, "DUPLICATED-FORWARDING-FILTER")
                )
                let listed = try await api.call("ListForwardingFilters", .object(place))
                #expect(listed.array?.count == 1 && listed.array?[0]["name"] == "mute")
                var update = filter
                update["version"] = "another"
                try await api.refusal(
                    "Update\(scope)ForwardingFilter",
                    .object(update),
                    is: (409, "FORWARDING-FILTER-VERSION-MISMATCH")
                )
                update["version"] = .string(version)
                let changed = try await api.call("Update\(scope)ForwardingFilter", .object(update))
                #expect(changed["version"] != .string(version))
                let name = place.merging(["name": "mute"]) { $1 }
                try await api.call("Delete\(scope)ForwardingFilter", .object(name), is: .object(name))
                try await api.refusal(
                    "Delete\(scope)ForwardingFilter",
                    .object(name),
                    is: (404, "FORWARDING-FILTER-NOT-FOUND")
                )
                try await api.call("ListForwardingFilters", .object(place), is: [])
            }
        }
    }

    @Test func `a list of filters that is too large is refused with its bounds`() async throws {
        try await APIBench.run { api in
            let rule: JSONValue = ["field": "kind", "operator": "is_in", "values": ["audio"]]
            let filter = { (name: String, rules: Int) -> JSONValue in
                [
                    "channel_id": "lobby", "name": .string(name), "priority": 5,
                    "rules": .array(Array(repeating: [rule], count: rules)),
                ]
            }
            _ = try await api.call("CreateChannelForwardingFilter", filter("a", 60))
            let reason = try await api.refusal(
                "CreateChannelForwardingFilter",
                filter("b", 5),
                is: (400, "FORWARDING-FILTER-TOO-LARGE")
            )
            #expect(reason.contains("32 forwarding filters, 64 rules and 1024 values in all"))
        }
    }

    @Test func `sessions, the mode and spotlight`() async throws {
        try await APIBench.run { api in
            let list = try await api.call("ListSessions")
            let session = try #require(list.array?.first?["session_id"])
            let named: JSONValue = ["channel_id": "lobby", "session_id": session]
            #expect(try await api.call("GetSession", named)["channel_connections"] == 2)
            let other: JSONValue = ["channel_id": "lobby", "session_id": .string(api.publisher)]
            try await api.refusal("GetSession", other, is: (404, "SESSION-NOT-FOUND"))
            try await api.refusal("TerminateSession", other, is: (404, "SESSION-NOT-FOUND"))

            try await api.call("GetMode", is: ["mode": "normal"])
            try await api.call("ChangeMode", ["mode": "block_new_session"], is: ["mode": "block_new_session"])
            try await api.call("GetMode", is: ["mode": "block_new_session"])
            try await api.refusal("ChangeMode", ["mode": "closed"], is: (400, "INVALID-PARAMETER"))

            let number: JSONValue = ["channel_id": "lobby", "spotlight_number": 3]
            try await api.call("ChangeSpotlightNumber", number, is: number)
            let tooMany: JSONValue = ["channel_id": "lobby", "spotlight_number": 9]
            try await api.refusal("ChangeSpotlightNumber", tooMany, is: (400, "INVALID-PARAMETER"))
            try await api.call("FocusSpotlightFixed", api.both, is: api.both)
            try await api.call("FocusSpotlight", api.both, is: api.both)
            try await api.call("UnfocusSpotlight", api.both, is: api.both)
            let rids: JSONValue = [
                "channel_id": "lobby", "recv_connection_id": .string(api.viewer), "spotlight_focus_rid": "r2",
                "spotlight_unfocus_rid": "none",
            ]
            try await api.refusal("RequestSpotlightRid", rids, is: (409, "SPOTLIGHT-NOT-USED"))
            let batch: JSONValue = ["channel_id": "lobby", "item_list": [rids, ["channel_id": "lobby"]]]
            let answers = try await api.call("BatchRequestSpotlightRid", batch)
            #expect(answers.array?.map { $0["error_type"] } == ["SPOTLIGHT-NOT-USED", "INVALID-PARAMETER"])

            try await api.call("TerminateSession", named, is: named)
            #expect(await api.bench.directory.connections(in: nil).isEmpty)
        }
    }

    @Test func `layers, by the names of Sora or of publishers, and key frames are requested`() async throws {
        let simulcast = """
            a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
            a=rid:q send
            a=rid:h send
            a=rid:f send
            a=simulcast:send q;h;f

            """
        try await APIBench.run(offer: Offers.publish + simulcast) { api in
            let plane = api.bench.plane
            let layers: [(rid: String, layer: LayerChoice)] = [
                ("r1", .level(1)), ("q", .level(0)), ("h", .level(1)), ("f", .level(2)), ("r0", .level(0)),
                ("r2", .level(2)),
            ]
            for (rid, layer) in layers {
                let wish: JSONValue = [
                    "channel_id": "lobby", "receiver_connection_id": .string(api.viewer), "rid": .string(rid),
                ]
                try await api.call("RequestSimulcastRid", wish, is: wish)
                await api.bench.directory.settle()
                let video = await plane.preferences.filter { $0.value.importance == .stage }
                #expect(video.map(\.key.peer) == [PeerID(rawValue: 2)], "\(rid)")
                #expect(video.map(\.value.cap) == [layer], "\(rid)")
            }
            let nothing: JSONValue = [
                "channel_id": "lobby", "receiver_connection_id": .string(api.viewer), "rid": "none",
            ]
            try await api.call("RequestSimulcastRid", nothing, is: nothing)
            await api.bench.directory.settle()
            #expect(await plane.preferences.values.allSatisfy { $0.importance != .stage })
            let sender: JSONValue = [
                "channel_id": "lobby", "receiver_connection_id": .string(api.publisher), "rid": "r1",
            ]
            try await api.refusal("RequestSimulcastRid", sender, is: (404, "CONNECTION-NOT-FOUND"))
            #expect(await plane.keyFrameRequests.isEmpty)
            try await api.call("RequestKeyFrame", api.both, is: api.both)
            #expect(await plane.keyFrameRequests == [PeerID(rawValue: 1)])
        }
    }

    @Test func `the height of a viewer's video and the rate to a connection are set and lifted`() async throws {
        try await APIBench.run { api in
            let viewer: JSONValue = ["channel_id": "lobby", "receiver_connection_id": .string(api.viewer)]
            let with = { (object: JSONValue, name: String, value: JSONValue) in
                JSONValue.object((object.object ?? [:]).merging([name: value]) { $1 })
            }
            let plane = api.bench.plane
            let heights = {
                await api.bench.directory.settle()
                return await plane.preferences.values.filter { $0.importance == .stage }.map(\.height)
            }
            let wish = with(viewer, "height", 360)
            try await api.call("RequestVideoHeight", wish, is: wish)
            #expect(await heights() == [360])
            try await api.call("RequestVideoHeight", viewer, is: viewer)
            #expect(await heights() == [nil])
            try await api.refusal("RequestVideoHeight", with(viewer, "height", 0), is: (400, "INVALID-PARAMETER"))

            let connection: JSONValue = ["channel_id": "lobby", "connection_id": .string(api.viewer)]
            let limit = with(connection, "receive_bit_rate", 800)
            try await api.call("LimitConnection", limit, is: limit)
            #expect(try await api.call("GetStatsConnection", connection)["receive_bit_rate"] == 800)
            try await api.call("LimitConnection", connection, is: connection)
            #expect(try await api.call("GetStatsConnection", connection)["receive_bit_rate"] == nil)
            await api.bench.directory.settle()
            #expect(await plane.sendLimits.map(\.bitsPerSecond) == [800_000, nil])
            let tooMuch = with(connection, "receive_bit_rate", 1_000_001)
            try await api.refusal("LimitConnection", tooMuch, is: (400, "INVALID-PARAMETER"))
            let publisher: JSONValue = ["channel_id": "lobby", "connection_id": .string(api.publisher)]
            try await api.refusal("LimitConnection", publisher, is: (404, "CONNECTION-NOT-FOUND"))
        }
    }

    @Test func `an operator extends no permission that has no end`() async throws {
        try await APIBench.run { api in
            let connection: JSONValue = ["channel_id": "lobby", "connection_id": .string(api.publisher)]
            try await api.refusal("ExtendConnection", connection, is: (400, "INVALID-PARAMETER"))
            let extended: JSONValue = [
                "channel_id": "lobby", "connection_id": .string(api.publisher), "expires_at": 4_000_000_000,
            ]
            try await api.refusal("ExtendConnection", extended, is: (400, "INVALID-PARAMETER"))
            let unknown: JSONValue = [
                "channel_id": "other", "connection_id": .string(api.publisher), "expires_at": 1,
            ]
            try await api.refusal("ExtendConnection", unknown, is: (404, "CONNECTION-NOT-FOUND"))
        }
    }

    @Test func `statistics count connections, clients and webhooks`() async throws {
        try await APIBench.run { api in
            let agents = [
                ("Sora iOS SDK 2025", "sora_ios_sdk"), ("WebRTC Native Client Momo", "webrtc_native_client_momo"),
            ]
            for ((name, _), transport) in zip(agents, [TransportProtocol.tcp, .udp]) {
                let agent = ClientAgent(signaling: .sora, name: name)
                api.statistics.take(.connectionCreated(RoomFixtures.report(agent: agent, transport: transport)))
            }
            api.statistics.take(.connectionDestroyed(RoomFixtures.report(minutes: 3), .left))
            api.statistics.take(.sessionCreated(RoomFixtures.session(), unixNanoseconds: 0))
            api.statistics.signalingFailed(client: "Sora JavaScript SDK 2026", reason: "INVALID-JSON")
            let report = try await api.call("GetStatsReport")
            let expected: [String: JSONValue] = [
                "version": "9.9", "total_connection_created": 2, "total_connection_destroyed": 1,
                "total_ongoing_connections": 1, "total_failed_connections": 1, "total_duration_sec": 180,
                "average_duration_sec": 180, "average_setup_time_msec": 200, "total_session_created": 1,
                "total_auth_webhook_allowed": 0, "total_ignored_event_webhook": 0, "total_sent_srtp": 0,
                "total_turn_udp_connections": 1, "total_turn_tcp_connections": 1,
            ]
            for (name, value) in expected { #expect(report[name] == value, "\(name)") }
            let clients = report["sora_client"]?["total_successful_sora_client_type"]
            for (_, name) in agents { #expect(clients?[name] == 1) }
            #expect(report["sora_client"]?["total_failed_sora_client_type"]?["sora_js_sdk"] == 1)
            #expect(report["error"]?["signaling_error"] == 1)
        }
    }

    @Test func `the report has what data channels and the links to other nodes carried`() async throws {
        var media = AdminAPI.MediaTotals()
        media.data = AdminAPI.Traffic(packetsReceived: 1, bytesReceived: 20, packetsSent: 3, bytesSent: 40)
        media.otherNodes = AdminAPI.Traffic(packetsReceived: 5, bytesReceived: 60, packetsSent: 7, bytesSent: 80)
        try await APIBench.run(media: media) { api in
            let report = try await api.call("GetStatsReport")
            #expect(report["total_received_sctp"] == 1 && report["total_received_sctp_byte_size"] == 20)
            #expect(report["total_sent_sctp"] == 3 && report["total_sent_sctp_byte_size"] == 40)
            let relay = try #require(report["cluster_relay"]?.array?.first)
            #expect(relay["total_received"] == 5 && relay["total_received_byte_size"] == 60)
            #expect(relay["total_sent"] == 7 && relay["total_sent_byte_size"] == 80)
        }
        try await APIBench.run { api in
            let report = try await api.call("GetStatsReport")
            #expect(report["cluster_relay"] == [])
        }
    }

    @Test func `statistics of clients are available while they are connected`() async throws {
        try await APIBench.run { api in
            try await api.refusal("GetRtcStats", api.both, is: (404, "RTC-STATS-NOT-FOUND"))
            let id = try #require(ParticipantID(api.publisher))
            let stats: JSONValue = [["id": "T1", "type": "transport", "bytesSent": 12]]
            let lobby = try #require(ChannelName("lobby"))
            api.clientStatistics.record(id, channel: lobby, reports: stats, unixNanoseconds: 0)
            api.clientStatistics.record(id, channel: lobby, reports: ["no": "list"], unixNanoseconds: 0)
            #expect(try await api.call("GetRtcStats", api.both)["rtc_stats"] == stats)
            #expect(try await api.call("ListRtcStats").array?.count == 1)
            try await api.call("ListChannelRtcStats", ["channel_id": "other"], is: [])
            api.clientStatistics.forget(id)
            try await api.call("ListRtcStats", is: [])
        }
    }

    @Test(arguments: [
        (nil, "{}", 400, "MISSING-TARGET"), ("ListConnections", "{}", 400, "INVALID-TARGET"),
        ("Sora_2020.ListConnections", "{}", 400, "INVALID-TARGET"),
        ("Sora_20201013.ListEverything", "{}", 400, "UNKNOWN-OPERATION"),
        ("Sora_20231220.StartRecording", "{}", 400, "UNSUPPORTED-OPERATION"),
        ("Sora_20171218.GetLicense", "", 400, "UNSUPPORTED-OPERATION"),
        ("Sora_20211215.ListClusterNodes", "", 400, "NOT-IN-CLUSTER"),
        ("Sora_20221221.StartAudioStreaming", "{}", 400, "UNSUPPORTED-OPERATION"),
        ("Sora_20151104.DisconnectChannel", "", 400, "INVALID-PARAMETER"),
        ("Sora_20151104.DisconnectChannel", "{", 400, "INVALID-JSON"),
        ("Sora_20151104.DisconnectChannel", "[]", 400, "INVALID-PARAMETER"),
        ("Sora_20151104.DisconnectChannel", #"{"channel_id":5}"#, 400, "INVALID-PARAMETER"),
        ("Sora_20151104.DisconnectConnection", #"{"channel_id":"a","connection_id":"x"}"#, 404, "CONNECTION-NOT-FOUND"),
        ("Sora_20201120.DisconnectChannelByRole", #"{"channel_id":"a","role":"host"}"#, 400, "INVALID-PARAMETER"),
    ])
    func `a failed operation gives the reason`(target: String?, body: String, status: Int, type: String) async throws {
        try await APIBench.run { api in
            let response = try await api.post(target, body)
            #expect(response.status.code == status)
            let answer = try JSONValue(parsing: response.text)
            #expect(answer["error_type"] == .string(type))
            #expect(answer["error_reason"]?.string?.hasSuffix(".") == true)
        }
    }

    @Test func `pages of other origins are refused unless their origin is configured`() async throws {
        try await APIBench.run(origins: ["https://ops.example"]) { api in
            let target = "Sora_20201013.ListConnections"
            let stranger = try await api.post(target, "", origin: "https://evil.example")
            #expect(stranger.status == .forbidden && stranger.text.contains("--admin-origin"))
            #expect(try JSONValue(parsing: stranger.text)["error_type"] == "ORIGIN-REFUSED")
            #expect(stranger.headers[.accessControlAllowOrigin] == nil)
            #expect(stranger.headers[.accessControlAllowMethods] == "POST, OPTIONS")
            let known = try await api.post(target, "", origin: "https://ops.example")
            #expect(known.status == .ok)
            #expect(known.headers[.accessControlAllowOrigin] == "https://ops.example")
            #expect(try await api.post(target, "").status == .ok, "no browser")
            let preflight = try await api.http.execute(uri: "/", method: .options)
            #expect(preflight.status == .noContent)
            #expect(preflight.headers[.accessControlAllowHeaders]?.contains("x-sora-target") == true)
            #expect(preflight.headers[.accessControlMaxAge] == "1000")
            #expect(try await api.http.execute(uri: "/", method: .get).status == .methodNotAllowed)
        }
    }

    @Test func `all origins may use the API with a configured *`() async throws {
        try await APIBench.run(origins: ["*"]) { api in
            let response = try await api.post("Sora_20201013.ListConnections", "", origin: "https://any.example")
            #expect(response.status == .ok && response.headers[.accessControlAllowOrigin] == "*")
        }
    }

    @Test func `a body that stops arriving closes its connection`() async throws {
        let bench = try SignalingBench()
        let api = AdminAPI(
            directory: bench.directory,
            statistics: SignalingStatistics(),
            clientStatistics: ClientStatistics(),
            node: NodeIdentity()
        )
        let responder = AdminResponder(
            api: api,
            access: AdminAccess(token: nil, isLoopback: true),
            origins: [],
            refusals: RefusalLog(SignalingBench.quiet, now: { DeadlineTimer.now }),
            metrics: { "" },
            whyNotReady: { nil },
            bodyTimeout: .milliseconds(50)
        )
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: responder,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0), serverName: nil),
            onServerRunning: { announce.yield($0.localAddress?.port ?? 0) },
            logger: SignalingBench.quiet
        )
        let group = ServiceGroup(services: [application], gracefulShutdownSignals: [], logger: SignalingBench.quiet)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let answer = try await withConnection(to: port) { client, input in
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
                return await input.readToEnd()
            }
            #expect(answer.hasPrefix("HTTP/1.1 413") && answer.lowercased().contains("connection: close"))
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test func `a long body is refused over TCP, and the next request is answered`() async throws {
        try await APIBench.run(live: true) { api in
            let long = try await api.post("Sora_20160711.PushChannel", String(repeating: "x", count: 1_100_000))
            #expect(long.status.code == 413)
            #expect(try await api.call("ListConnections").array?.count == 2)
        }
    }
}
