import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing

@testable import Sora
@testable import Web

/// Signaling over data channels.
@Suite struct SoraDataChannelTests {
    private static let wanted = #""data_channel_signaling":true"#

    private static func connected(
        _ members: String = SoraDataChannelTests.wanted,
        isSwitched: Bool = true
    ) throws -> SoraBench {
        var bench = SoraBench()
        try bench.connected(SoraBench.connect(.sendrecv, members))
        guard isSwitched else { return bench }
        bench.receive(.data(.opened))
        try bench.expectNext("switched")
        return bench
    }

    private static func message(_ text: String, _ label: String = "signaling") -> ParticipantEvent {
        .data(.message(label: label, Array(text.utf8), lease: nil))
    }

    // MARK: - The offer

    @Test func `the offer lists the channels, and the description has their section`() throws {
        var bench = SoraBench()
        let channels = ##"""
            "data_channels":[{"label":"#a","direction":"sendonly","compress":true,"ordered":false,"max_retransmits":2},
            {"label":"#b","direction":"recvonly","header":[{"type":"sender_connection_id"}],"protocol":"p",
            "max_packet_life_time":50}]
            """##
        bench.receive(SoraBench.connect(.sendrecv, Self.wanted + #","ignore_disconnect_websocket":true,"# + channels))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request(), let plan = request.data else {
            Issue.record("no data channels")
            return
        }
        #expect(plan.channels.map(\.parameters.label) == ["signaling", "notify", "push", "stats", "#a", "#b"])
        // What goes to the client only is not to be sent by it.
        let uses: [DataChannelPlan.Use] = [true, false, false, true].map { .signaling(sends: $0) }
        #expect(plan.channels.prefix(4).map(\.use) == uses)
        #expect(plan.channels.prefix(4).allSatisfy { $0.isCompressed })
        let (first, second) = (plan.channels[4], plan.channels[5])
        #expect(first.use == .messages(sends: true, receives: false) && first.isCompressed && first.header == .none)
        #expect(first.parameters.reliability == .retransmissions(2) && !first.parameters.isOrdered)
        #expect(second.use == .messages(sends: false, receives: true) && !second.isCompressed)
        #expect(second.header == .connection)
        #expect(second.parameters.reliability == .lifetime(milliseconds: 50) && second.parameters.subprotocol == "p")
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        let offer = try bench.next()
        #expect(offer["data_channel_signaling"]?.bool == true && offer["ignore_disconnect_websocket"]?.bool == true)
        #expect(offer["sdp"]?.string?.contains("m=application ") == true)
        let entries = try #require(offer["data_channels"]?.array)
        #expect(entries.map { $0["label"]?.string } == ["signaling", "notify", "push", "stats", "#a", "#b"])
        #expect(
            entries.map { $0["direction"]?.string } == [
                "sendrecv", "recvonly", "recvonly", "sendrecv", "sendonly", "recvonly",
            ]
        )
        #expect(entries.map { $0["compress"]?.bool } == [true, true, true, true, true, false])
        let header = entries[5]["header"]?.array?.first
        #expect(header?["type"] == "sender_connection_id" && header?["length"]?.integer == 26)
        #expect(
            plan.farewell(.kicked).map { String(decoding: $0.bytes, as: UTF8.self) }
                == #"{"type":"close","code":1000,"reason":"KICKED"}"#
        )
        #expect(plan.farewell(.left) == nil, "the client ended it")
    }

    @Test(
        arguments: [
            (#""a":1"#, nil, nil, false), (#""data_channel_signaling":false"#, nil, nil, false),
            (SoraDataChannelTests.wanted, nil, nil, true), (SoraDataChannelTests.wanted, false, nil, false),
            (#""a":1"#, true, nil, true), (#""nagare":{}"#, true, nil, false),
            (#""nagare":{},"# + SoraDataChannelTests.wanted, nil, nil, true),
            (#""nagare":{},"# + SoraDataChannelTests.wanted, false, nil, false),
            (SoraDataChannelTests.wanted, nil, false, false),
        ] as [(String, Bool?, Bool?, Bool)]
    )
    func `the client, its grants and the node decide`(members: String, granted: Bool?, node: Bool?, expected: Bool)
        throws
    {
        var configuration = SoraConfiguration()
        configuration.offersDataChannels = node ?? true
        var bench = SoraBench(configuration)
        var grants = Grants()
        grants.dataChannelSignaling = granted
        let sdp = try bench.offer(SoraBench.connect(.sendrecv, members), grants: grants)
        #expect(sdp.contains("m=application ") == expected)
    }

    @Test func `grants replace the client's channels`() throws {
        let fields = try #require(
            try JSONValue(
                parsing: ##"{"data_channel_signaling":true,"data_channels":[{"label":"#b","direction":"sendrecv"}]}"##
            ).object
        )
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.recvonly, ##""data_channels":[{"label":"#a","direction":"sendrecv"}]"##))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(try Grants(fields)), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request() else { return }
        #expect(request.data?.channels.last?.parameters.label == "#b" && request.data?.channels.count == 5)
    }

    @Test(arguments: [
        ##"[{"direction":"sendrecv"}]"##, ##"[{"label":"a","direction":"sendrecv"}]"##,
        ##"[{"label":"#","direction":"sendrecv"}]"##, ##"[{"label":"#a"}]"##, ##"[{"label":"#a","direction":"both"}]"##,
        ##"[{"label":"#a","direction":"sendrecv"},{"label":"#a","direction":"sendonly"}]"##,
        ##"[{"label":"#a","direction":"sendrecv","max_retransmits":1,"max_packet_life_time":1}]"##,
        ##"[{"label":"#a","direction":"sendrecv","max_retransmits":65536}]"##,
        ##"[{"label":"#a","direction":"sendrecv","header":[{"type":"other"}]}]"##,
        ##"[{"label":"#a","direction":"sendrecv","ordered":1}]"##, ##"{"label":"#a"}"##, ##"["#a"]"##,
    ])
    func `invalid channels are refused`(channels: String) {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.recvonly, Self.wanted + #","data_channels":"# + channels))
        #expect(bench.close?.word == "INVALID-MESSAGE")
    }

    @Test func `a client may have data channels alone`() throws {
        var bench = SoraBench()
        let sdp = try bench.offer(SoraBench.connect(.sendrecv, #""audio":false,"video":false,"# + Self.wanted))
        #expect(SDPAnswer.sections(sdp).count == 2)
        var none = SoraBench()
        none.receive(SoraBench.connect(.sendrecv, #""audio":false,"video":false"#))
        _ = try none.request()
        none.take(none.state.admitted(.allowed(Grants()), id: SoraBench.id, at: none.now))
        #expect(none.close?.word == "INVALID-MESSAGE")
    }

    // MARK: - Messages of the channel extension

    private static func extended(_ members: String) -> String {
        SoraBench.connect(.sendrecv, #""nagare":{"# + members + "}")
    }

    @Test func `a client of the extension has messages that name their sender, and its signaling stays`() throws {
        var bench = SoraBench()
        bench.receive(Self.extended(##""messages":["#chat","#b"]"##))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request(), let plan = request.data else {
            Issue.record("no data channels")
            return
        }
        #expect(plan.channels.map(\.parameters.label) == ["#chat", "#b"])
        #expect(plan.channels.allSatisfy { $0.use == .messages(sends: true, receives: true) && $0.header == .user })
        #expect(plan.channels.allSatisfy { $0.parameters.reliability == .reliable && !$0.isCompressed })
        #expect(plan.farewell(.kicked) == nil)
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        let offer = try bench.next()
        #expect(offer["data_channel_signaling"]?.bool == false)
        #expect(offer["sdp"]?.string?.contains("m=application ") == true)
        let entries = try #require(offer["data_channels"]?.array)
        #expect(entries.map { $0["label"]?.string } == ["#chat", "#b"])
        #expect(entries.allSatisfy { $0["header"] == [["type": "sender_user"]] })
    }

    @Test func `the signaling of such a client stays on the WebSocket when its channels open`() throws {
        var bench = SoraBench()
        try bench.connected(Self.extended(##""messages":["#chat"]"##))
        bench.receive(.data(.opened))
        #expect(bench.sent.isEmpty)
        bench.receive(.push("1"))
        #expect(try bench.next()["type"] == "push")
        bench.receive(.data(.closed(label: "#chat")))
        #expect(bench.close == nil && bench.sentData.isEmpty)
    }

    @Test(
        arguments: [
            (#"{"data_channel_signaling":true}"#, ["#chat", "#b"]), (#"{"data_channel_signaling":false}"#, nil),
            (##"{"data_channels":[{"label":"#b","direction":"recvonly","compress":true}]}"##, ["#b"]),
            (#"{"data_channels":[]}"#, nil),
        ] as [(String, [String]?)]
    )
    func `grants decide which messages such a client has`(grants: String, expected: [String]?) throws {
        let fields = try #require(try JSONValue(parsing: grants).object)
        var bench = SoraBench()
        bench.receive(Self.extended(##""messages":["#chat","#b"]"##))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(try Grants(fields)), id: SoraBench.id, at: bench.now))
        guard case .reserve(let request) = try bench.request() else { return }
        let channels = request.data?.channels
        #expect(channels?.map(\.parameters.label) == expected)
        #expect(channels?.allSatisfy { !$0.isCompressed } ?? true)
        if expected == ["#b"] { #expect(channels?.first?.use == .messages(sends: false, receives: true)) }
    }

    @Test(arguments: [##"["chat"]"##, ##"["#"]"##, ##"["#a","#a"]"##, "[1]", ##""#a""##, "65"])
    func `invalid labels of messages are refused`(labels: String) {
        let many = (0..<65).map { "\"#\($0)\"" }.joined(separator: ",")
        var bench = SoraBench()
        bench.receive(Self.extended(#""messages":"# + (labels == "65" ? "[\(many)]" : labels)))
        #expect(bench.close?.word == "INVALID-MESSAGE")
    }

    // MARK: - After the switch

    @Test func `messages go over the WebSocket before all channels are open, and over data channels behind`() throws {
        var bench = try Self.connected(isSwitched: false)
        bench.receive(.push("1"))
        try bench.expectNext("push")
        bench.receive(.data(.opened))
        let switched = try bench.next()
        #expect(switched["type"] == "switched" && switched["ignore_disconnect_websocket"]?.bool == false)
        bench.receive(.push("2"))
        let push = try bench.nextData()
        #expect(push.label == "push" && push.message["data"]?.integer == 2)
        bench.receive(.subscriptionsChanged)
        guard case .findStreams = try bench.request() else { return }
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        let offer = try bench.nextData()
        #expect(offer.label == "signaling" && offer.message["type"] == "re-offer")
        let sdp = try #require(offer.message["sdp"]?.string)
        let answer = SDPAnswer.make(to: sdp, own: bench.own)
        bench.receive(Self.message(JSONValue.object(["type": "re-answer", "sdp": .string(answer)]).text))
        guard case .changeSlots(let added, _) = try bench.request() else {
            Issue.record("the answer was not applied: \(String(describing: bench.close))")
            return
        }
        #expect(added.count == 2 && bench.sent.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a lost WebSocket ends the connection unless it may go on without`(ignores: Bool) throws {
        var bench = try Self.connected(Self.wanted + #","ignore_disconnect_websocket":\#(ignores)"#)
        bench.take(bench.state.socketClosed())
        #expect(bench.left == (ignores ? nil : .signalingLost) && bench.state.hasEnded == !ignores)
        guard ignores else { return }
        // No pings, no timeout of pongs; statistics are still asked for.
        let start = bench.now
        while bench.wait(until: start + .seconds(300)) {}
        #expect(bench.sent.isEmpty && bench.left == nil)
        #expect(bench.sentData.count == 10 && bench.sentData.allSatisfy { $0.label == "stats" })
        bench.receive(Self.message(#"{"type":"disconnect","reason":"NO-ERROR"}"#))
        #expect(bench.left == .left && bench.state.hasEnded)
    }

    @Test func `a WebSocket that is lost before the switch ends the connection`() throws {
        var bench = try Self.connected(Self.wanted + #","ignore_disconnect_websocket":true"#, isSwitched: false)
        bench.take(bench.state.socketClosed())
        #expect(bench.left == .signalingLost)
    }

    @Test func `statistics are asked for and come over their channel`() throws {
        var bench = try Self.connected()
        let start = bench.now
        while bench.sentData.isEmpty, bench.wait(until: start + .seconds(60)) {
            bench.receive(#"{"type":"pong"}"#)
        }
        let request = try bench.nextData()
        #expect(request.label == "stats" && request.message.text == #"{"type":"req-stats"}"#)
        #expect(bench.sent.allSatisfy { $0["type"] == "ping" && $0["stats"] == nil })
        bench.receive(Self.message(#"{"type":"stats","reports":[{"id":"x"}]}"#, "stats"))
        guard case .record(let reports) = try bench.request() else { return }
        #expect(reports.text == #"[{"id":"x"}]"#)
        bench.receive(Self.message(#"{"type":"stats","reports":[{"id":"y"}]}"#, "stats"))
        #expect(bench.rest.isEmpty, "nothing that was not asked for")
    }

    @Test func `a disconnect over a data channel closes the WebSocket, too`() throws {
        var bench = try Self.connected()
        bench.receive(Self.message(#"{"type":"disconnect","reason":"NO-ERROR"}"#))
        #expect(bench.close == .disconnected && bench.left == .left)
    }

    @Test(
        arguments: [
            (.data(.closed(label: "signaling")), "INTERNAL-ERROR"), (.data(.closed(label: "stats")), "INTERNAL-ERROR"),
            (.data(.refused(label: "signaling", .malformed)), "INVALID-MESSAGE"),
            (.data(.refused(label: "push", .notPermitted)), "INVALID-MESSAGE"),
            (.data(.refused(label: "stats", .rate)), "INVALID-MESSAGE"),
            (.data(.refused(label: "rpc", .tooLong)), "INVALID-MESSAGE"),
            (.data(.message(label: "signaling", [0xFF, 0xFE], lease: nil)), "INVALID-JSON"),
            (.data(.message(label: "signaling", Array("{".utf8), lease: nil)), "INVALID-JSON"),
            (.data(.message(label: "stats", Array("[]".utf8), lease: nil)), "INVALID-MESSAGE"),
        ] as [(ParticipantEvent, String)]
    )
    func `a closed channel of signaling and invalid messages end the connection`(
        event: ParticipantEvent,
        reason: String
    ) throws {
        var bench = try Self.connected()
        bench.receive(event)
        #expect(bench.close?.word == reason && bench.state.hasEnded)
    }

    @Test(
        arguments: [
            (.notPermitted, "only receives"), (.rate, "rate limit"), (.malformed, "not a zlib stream"),
            (.tooLong, "256 KiB"),
        ] as [(DataViolation, String)]
    )
    func `the log says which channel a client was ended for, and why`(violation: DataViolation, words: String) {
        let close = SoraClose(violation, on: "stats")
        #expect(close.message.contains("data channel stats") && close.message.contains(words))
        #expect(close.limit == (violation == .rate ? .clientMessageRate : .dataMessage))
    }

    @Test func `closed channels of messages and messages of other labels change nothing`() throws {
        var bench = try Self.connected()
        bench.receive(.data(.closed(label: "#a")))
        bench.receive(Self.message("garbage", "notify"))
        bench.receive(Self.message("garbage", "#a"))
        #expect(bench.close == nil && bench.sent.isEmpty && bench.sentData.isEmpty)
    }

    @Test func `the budget of messages counts those of data channels`() throws {
        var bench = try Self.connected()
        for _ in 0..<1_100 { bench.receive(Self.message(#"{"type":"pong"}"#)) }
        #expect(bench.close == .messageRate)
    }

    @Test func `events of data channels that were not negotiated are ignored`() throws {
        var bench = try Self.connected(#""a":1"#, isSwitched: false)
        bench.receive(.data(.opened))
        bench.receive(Self.message(#"{"type":"disconnect"}"#))
        #expect(bench.sent.isEmpty && bench.close == nil)
    }
}
