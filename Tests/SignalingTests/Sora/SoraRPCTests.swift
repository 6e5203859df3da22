import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Testing

@testable import Sora
@testable import Web

/// Methods that a client calls over the data channel `rpc`.
@Suite struct SoraRPCTests {
    private static let all = SoraRPC.SoraMethod.allCases.map(\.rawValue)

    private static func bench(_ methods: [String] = all, _ members: String = "") throws -> SoraBench {
        var bench = SoraBench()
        var grants = Grants()
        grants.rpcMethods = methods
        let connect = SoraBench.connect(.sendrecv, #""data_channel_signaling":true"# + members)
        bench.answer(try bench.offer(connect, grants: grants), "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        bench.receive(.connected)
        bench.receive(.data(.opened))
        try bench.expectNext("switched")
        return bench
    }

    private static func message(_ text: String) -> ParticipantEvent {
        .data(.message(label: "rpc", Array(text.utf8), lease: nil))
    }

    private static func call(_ method: String, _ parameters: String, id: String = "1") -> ParticipantEvent {
        message(#"{"jsonrpc":"2.0","method":"2025.2.0/\#(method)","params":\#(parameters),"id":\#(id)}"#)
    }

    private static func code(_ bench: inout SoraBench) throws -> Int? {
        let (label, response) = try bench.nextData()
        #expect(label == "rpc" && response["jsonrpc"] == "2.0" && response["result"] == nil)
        #expect(response["error"]?["message"]?.string?.isEmpty == false)
        return response["error"]?["code"]?.integer
    }

    @Test func `the offer lists the methods of the grant that exist, and the channel is there for them`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.recvonly, #""data_channel_signaling":true"#))
        _ = try bench.request()
        let granted = #"{"rpc_methods":["2025.2.0/RequestSimulcastRid","2030.1.0/Other"]}"#
        let grants = try Grants(try #require(try JSONValue(parsing: granted).object))
        bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request() else {
            Issue.record("no reservation")
            return
        }
        let channel = try #require(request.data?.channels.last)
        #expect(channel.parameters.label == "rpc" && channel.use == .signaling(sends: true) && channel.isCompressed)
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        let offer = try bench.next()
        #expect(offer["rpc_methods"] == ["2025.2.0/RequestSimulcastRid"])
        #expect(offer["data_channels"]?.array?.last == ["label": "rpc", "direction": "sendrecv", "compress": true])
    }

    private static let ofChannels = [
        "nagare/setRole", "nagare/setMuted", "nagare/raiseHand", "nagare/muteOthers", "nagare/removeUser",
        "nagare/subscribe", "nagare/unsubscribe", "nagare/statistics", "nagare/listMembers", "nagare/refreshToken",
    ]

    @Test(
        arguments: [
            (#""metadata":{"nagare":{}}"#, "{}", ofChannels), (#""nagare":{}"#, "{}", ofChannels),
            (#""a":1"#, #"{"nagare":{"role":"host"}}"#, ofChannels),
            (#""a":1"#, #"{"rpc_methods":["nagare/setMuted"]}"#, ["nagare/setMuted"]),
            (#""a":1"#, "{}", nil),
        ] as [(String, String, [String]?)]
    )
    func `who says what it is in the channel may call the methods of channels`(
        members: String,
        granted: String,
        expected: [String]?
    ) throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, #""data_channel_signaling":true,"# + members))
        _ = try bench.request()
        let grants = try Grants(try #require(try JSONValue(parsing: granted).object))
        bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request() else { return }
        #expect(request.data?.channels.contains { $0.parameters.label == "rpc" } == (expected != nil))
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(try bench.next()["rpc_methods"]?.array?.compactMap(\.string) == expected)
    }

    @Test func `a method of channels is performed as over the WebSocket, with its result and its refusal`() throws {
        var bench = try Self.bench(Self.ofChannels)
        let role = #"{"jsonrpc":"2.0","method":"nagare/setRole","params":{"role":"host"},"id":7}"#
        bench.receive(Self.message(role))
        let host = ChannelCommand.setRole(.host, of: .participant(SoraBench.id))
        guard case .request(.perform(host, result: #"{"role":"host"}"#)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.success(#"{"role":"host"}"#)))
        let (label, response) = try bench.nextData()
        #expect(label == "rpc" && response == ["jsonrpc": "2.0", "id": 7, "result": ["role": "host"]])
        bench.receive(Self.message(role))
        _ = try bench.request()
        bench.take(bench.state.requested(.failure(RequestFailure(RoomError.rolesUnused))))
        let (_, refusal) = try bench.nextData()
        #expect(refusal["error"]?["code"] == -32_000 && refusal["error"]?["message"]?.string?.isEmpty == false)
        #expect(refusal["error"]?["data"] == ["reason": "CHANNEL-NOT-INTERACTIVE", "code": 16_908_801])
        for parameters in ["{}", #"{"role":"x"}"#, #"{"role":"host","rule":1}"#] {
            bench.receive(Self.message(#"{"jsonrpc":"2.0","method":"nagare/setRole","params":\#(parameters),"id":1}"#))
            #expect(try Self.code(&bench) == -32_602)
        }
    }

    @Test
    func `granted methods are there for a client whose signaling stays on the WebSocket, if it has data channels`()
        throws
    {
        var bench = SoraBench()
        var grants = Grants()
        grants.rpcMethods = Self.all
        let connect = SoraBench.connect(.sendrecv, ##""nagare":{"messages":["#chat"]}"##)
        bench.answer(try bench.offer(connect, grants: grants), "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        bench.receive(.connected)
        bench.receive(.data(.opened))
        bench.receive(Self.call("RequestSimulcastRid", #"{"rid":"r1"}"#))
        _ = try bench.request()
        bench.take(bench.state.requested(.success("{}")))
        #expect(try bench.nextData().label == "rpc")
        bench.receive(.data(.closed(label: "rpc")))
        #expect(bench.close == nil, "its signaling is elsewhere")
    }

    @Test(arguments: [nil, [], ["2030.1.0/Other"]] as [[String]?])
    func `without methods there is no channel`(methods: [String]?) throws {
        var bench = SoraBench()
        var grants = Grants()
        grants.rpcMethods = methods
        bench.receive(SoraBench.connect(.recvonly, #""data_channel_signaling":true"#))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request() else { return }
        #expect(request.data?.channels.contains { $0.parameters.label == "rpc" } == false)
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(try bench.next()["rpc_methods"] == nil)
    }

    @Test(arguments: ["{}", #"{"rpc_methods":1}"#, #"{"rpc_methods":[1]}"#])
    func `a grant of methods is a list of names`(text: String) throws {
        let members = try #require(try JSONValue(parsing: text).object)
        #expect((try? Grants(members)) == nil || text == "{}")
    }

    private static let other = SoraBench.other.value
    private static let own = SoraBench.id.value

    @Test(
        arguments: [
            (
                "RequestSimulcastRid", #"{"rid":"r1"}"#,
                .perform(
                    .requestLayer(RequestedRID.r1.layer, receiver: SoraBench.id, sender: nil),
                    result: #"{"channel_id":"room","receiver_connection_id":"\#(own)","rid":"r1"}"#
                )
            ),
            (
                "RequestSimulcastRid", #"{"rid":"none","sender_connection_id":"\#(other)"}"#,
                .perform(
                    .requestLayer(.nothing, receiver: SoraBench.id, sender: SoraBench.other),
                    result: #"{"channel_id":"room","receiver_connection_id":"\#(own)","rid":"none","#
                        + #""sender_connection_id":"\#(other)"}"#
                )
            ),
            (
                "RequestSimulcastRid",
                #"{"rid":"r2","sender_connection_id":null,"channel_id":"room","receiver_connection_id":"\#(own)"}"#,
                .perform(
                    .requestLayer(RequestedRID.r2.layer, receiver: SoraBench.id, sender: nil),
                    result: #"{"channel_id":"room","receiver_connection_id":"\#(own)","rid":"r2"}"#
                )
            ),
            (
                "RequestSpotlightRid", #"{"spotlight_focus_rid":"r2","spotlight_unfocus_rid":"r0"}"#,
                .perform(
                    .requestSpotlightLayers(
                        SpotlightLayers(focus: RequestedRID.r2.layer, unfocus: RequestedRID.r0.layer),
                        receiver: SoraBench.id,
                        sender: nil
                    ),
                    result: #"{"channel_id":"room","recv_connection_id":"\#(own)","spotlight_focus_rid":"r2","#
                        + #""spotlight_unfocus_rid":"r0"}"#
                )
            ),
            (
                "ResetSpotlightRid", "{}",
                .perform(
                    .requestSpotlightLayers(nil, receiver: SoraBench.id, sender: nil),
                    result: #"{"channel_id":"room","recv_connection_id":"\#(own)"}"#
                )
            ),
            (
                "ResetSpotlightRid", #"{"send_connection_id":"\#(other)"}"#,
                .perform(
                    .requestSpotlightLayers(nil, receiver: SoraBench.id, sender: SoraBench.other),
                    result: #"{"channel_id":"room","recv_connection_id":"\#(own)","send_connection_id":"\#(other)"}"#
                )
            ),
            (
                "PutSignalingNotifyMetadata", #"{"metadata":{"a":1},"push":true}"#,
                .putMetadata(.whole(["a": 1]), pushes: true)
            ),
            ("PutSignalingNotifyMetadata", #"{"metadata":null}"#, .putMetadata(.whole(nil), pushes: false)),
            (
                "PutSignalingNotifyMetadataItem", #"{"key":"k","value":[1]}"#,
                .putMetadata(.item("k", [1]), pushes: false)
            ),
        ] as [(String, String, ChannelRequest.Method)]
    )
    func `a method is performed with its parameters`(
        name: String,
        parameters: String,
        expected: ChannelRequest.Method
    ) throws {
        var bench = try Self.bench()
        bench.receive(Self.call(name, parameters))
        guard case .request(let method) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        #expect(method == expected)
        bench.take(bench.state.requested(.success(#"{"x":1}"#)))
        let (label, response) = try bench.nextData()
        #expect(label == "rpc" && response == ["jsonrpc": "2.0", "id": 1, "result": ["x": 1]])
    }

    @Test(arguments: [
        ("RequestSimulcastRid", "{}"), ("RequestSimulcastRid", #"{"rid":"r3"}"#), ("RequestSimulcastRid", "[]"),
        ("RequestSimulcastRid", #"{"rid":"r1","x":1}"#), ("RequestSimulcastRid", #"{"rid":"r1","channel_id":"else"}"#),
        ("RequestSimulcastRid", #"{"rid":"r1","receiver_connection_id":"\#(other)"}"#),
        ("RequestSimulcastRid", #"{"rid":"r1","sender_connection_id":"x"}"#),
        ("RequestSpotlightRid", #"{"spotlight_focus_rid":"r1"}"#), ("ResetSpotlightRid", #"{"send_connection_id":1}"#),
        ("PutSignalingNotifyMetadata", "{}"), ("PutSignalingNotifyMetadata", #"{"metadata":1,"push":"yes"}"#),
        ("PutSignalingNotifyMetadataItem", #"{"key":"a"}"#), ("PutSignalingNotifyMetadataItem", #"{"value":1}"#),
        ("PutSignalingNotifyMetadataItem", #"{"key":"","value":1}"#),
    ])
    func `invalid parameters are answered, and the client stays`(name: String, parameters: String) throws {
        var bench = try Self.bench()
        bench.receive(Self.call(name, parameters))
        #expect(try Self.code(&bench) == -32_602)
        #expect(bench.rest.isEmpty && bench.close == nil)
    }

    @Test(arguments: [
        ("{", -32_700), ("\u{0}", -32_700), ("[]", -32_600), ("1", -32_600), ("{}", -32_600),
        (#"{"jsonrpc":"1.0","method":"x","id":1}"#, -32_600), (#"{"jsonrpc":"2.0","id":1}"#, -32_600),
        (#"{"jsonrpc":"2.0","method":"x","id":{}}"#, -32_600), (#"{"jsonrpc":"2.0","method":"x","id":1}"#, -32_601),
        (#"{"jsonrpc":"2.0","method":"x","params":"\#(String(repeating: "y", count: 17_000))","id":1}"#, -32_600),
    ])
    func `a request that is none gets the code of its fault`(text: String, code: Int) throws {
        var bench = try Self.bench()
        bench.receive(Self.message(text))
        #expect(try Self.code(&bench) == code)
        #expect(bench.rest.isEmpty && bench.close == nil)
    }

    @Test func `a method outside the grant does not exist for the client`() throws {
        var bench = try Self.bench(["2025.2.0/ResetSpotlightRid"])
        bench.receive(Self.call("RequestSimulcastRid", #"{"rid":"r1"}"#, id: #""a""#))
        #expect(bench.sentData.first?.message["id"] == "a")
        #expect(try Self.code(&bench) == -32_601)
    }

    @Test func `a notification has no response, whatever comes of it`() throws {
        var bench = try Self.bench()
        bench.receive(Self.message(#"{"jsonrpc":"2.0","method":"2025.2.0/ResetSpotlightRid"}"#))
        guard case .request(.perform(.requestSpotlightLayers(nil, _, _), _)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.failure(RequestFailure(.spotlightUnused, "No spotlight."))))
        bench.receive(Self.message(#"{"jsonrpc":"2.0","method":"x"}"#))
        #expect(bench.sentData.isEmpty && bench.sent.isEmpty && bench.rest.isEmpty)
    }

    @Test func `calls are performed one after the other, and a few wait`() throws {
        var bench = try Self.bench()
        for id in 1...40 { bench.receive(Self.call("ResetSpotlightRid", "{}", id: "\(id)")) }
        #expect(bench.rest.count == 1 && bench.sentData.count == 8, "those beyond 32")
        for _ in 0..<8 { #expect(try Self.code(&bench) == -32_000) }
        for id in 1...32 {
            guard case .request(.perform(.requestSpotlightLayers(nil, _, _), _)) = try bench.request() else { return }
            bench.take(bench.state.requested(.failure(RequestFailure(.spotlightUnused, "No spotlight."))))
            #expect(bench.sentData.first?.message["id"]?.integer == id)
            #expect(try Self.code(&bench) == -32_000)
        }
        #expect(bench.rest.isEmpty)
    }

    @Test func `a push beyond the member's budget is refused, and the client stays`() throws {
        var bench = try Self.bench()
        bench.receive(Self.call("PutSignalingNotifyMetadata", #"{"metadata":1,"push":true}"#))
        guard case .request(.putMetadata(_, pushes: true)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.failure(RequestFailure(RoomError.changesTooFrequent))))
        let error = try #require(bench.sentData.first?.message["error"])
        #expect(error["message"]?.string?.contains("wait a second") == true)
        #expect(try Self.code(&bench) == -32_000 && bench.close == nil)
    }

    @Test func `the budget of messages counts calls`() throws {
        var bench = try Self.bench()
        for _ in 0..<1_100 { bench.receive(Self.message("{")) }
        #expect(bench.close?.word == "INVALID-MESSAGE")
    }

    @Test func `a closed channel of calls ends the connection, as clients do`() throws {
        var bench = try Self.bench()
        bench.receive(.data(.closed(label: "rpc")))
        #expect(bench.close?.close.reason == "INTERNAL-ERROR")
    }

    // MARK: - Metadata

    @Test func `an item is added to an object, and replaces one of its name`() throws {
        let change = MetadataChange.item("k", [1])
        #expect(try change.applied(to: nil) == ["k": [1]])
        #expect(try change.applied(to: "null") == ["k": [1]])
        #expect(try change.applied(to: #"{"a":true,"k":0}"#) == ["a": true, "k": [1]])
        #expect(throws: RequestFailure.self) { _ = try change.applied(to: "7") }
        #expect(try MetadataChange.whole(7).applied(to: #"{"a":1}"#) == 7)
    }

    @Test func `metadata has at most 4 KiB`() throws {
        let long = JSONValue.string(String(repeating: "x", count: 4_000))
        #expect(try MetadataChange.item("k", long).applied(to: nil)["k"] == long)
        #expect(throws: RequestFailure.self) {
            _ = try MetadataChange.item("k", long).applied(to: #"{"a":"\#(String(repeating: "y", count: 200))"}"#)
        }
    }

    @Test func `a push names the client and the change`() {
        #expect(
            SoraServerMessage.metadataPush(.item("k", "v"), of: SoraBench.id)
                == #"{"type":"signaling_notify_metadata_ext","connection_id":"\#(Self.own)","action":"PutMetadataItem","key":"k","value":"v"}"#
        )
        #expect(
            SoraServerMessage.metadataPush(.whole(["a": 1]), of: SoraBench.id)
                == #"{"type":"signaling_notify_metadata_ext","connection_id":"\#(Self.own)","action":"PutMetadata","metadata":{"a":1}}"#
        )
    }
}
