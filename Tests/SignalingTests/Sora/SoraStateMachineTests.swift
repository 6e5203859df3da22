import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import Room
import RoomTestSupport
import Testing
import Wire

@testable import Admission
@testable import Sora
@testable import Web

@Suite struct SoraStateMachineTests {
    @Test(arguments: CapturedExchange.all)
    func `every captured exchange completes`(exchange: CapturedExchange) throws {
        var bench = SoraBench()
        let offer = try bench.offer(exchange.connect, streams: [SoraBench.stream(SoraBench.other, video: .vp9)])
        // The captured answers are to offers of other codecs and sections where the server offers what is asked for.
        let isAnswered = SDPAnswer.sections(offer).count == SDPAnswer.sections(exchange.answer).count
        if isAnswered, exchange.name != "sendonly_codec" {
            let sdp = SDPAnswer.fitted(exchange.answer, to: offer)
            bench.receive(JSONValue.object(["type": "answer", "sdp": .string(sdp)]).text)
        } else {
            bench.answer(offer, "answer")
        }
        guard case .activate(let outcome) = try bench.request() else {
            Issue.record("\(String(describing: bench.close))")
            return
        }
        #expect(outcome.remote.localRole == .server)
        let sends = exchange.connect.contains(#""role":"recvonly""#) ? 0 : 2
        #expect(outcome.receive.count == (exchange.name == "sendonly_audio_only" ? 1 : sends))
        bench.take(bench.state.activated(at: bench.now))
        bench.receive(.connected)
        for text in exchange.after { bench.receive(text) }
        #expect(bench.close == .disconnected)
        #expect(bench.left == .left)
    }

    @Test func `a sender joins and leaves`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.receive(.subscriptionsChanged)
        guard case .findStreams = try bench.request() else { return }
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        let offer = try bench.next()
        #expect(offer["type"] == "re-offer")
        let sdp = try #require(offer["sdp"]?.string)
        #expect(sdp.contains("a=msid:\(SoraBench.other.value) "))
        bench.answer(sdp)
        guard case .changeSlots(let added, let removed) = try bench.request() else {
            Issue.record("no slots")
            return
        }
        #expect(added.map(\.sender) == [SoraBench.other, SoraBench.other] && removed.isEmpty)
        bench.take(bench.state.slotsChanged(at: bench.now))

        bench.now += .seconds(1)
        bench.receive(.subscriptionsChanged)
        _ = try bench.request()
        bench.take(bench.state.found([], at: bench.now))
        bench.answer(try #require(try bench.next()["sdp"]?.string))
        guard case .changeSlots(let none, let gone) = try bench.request() else { return }
        #expect(none.isEmpty && gone == added.map(\.parameters.mid))
    }

    @Test func `one offer is outstanding, and the next has all changes`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.receive(.subscriptionsChanged)
        _ = try bench.request()
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        let first = try #require(try bench.next()["sdp"]?.string)
        for _ in 0..<5 { bench.receive(.subscriptionsChanged) }
        #expect(bench.rest.isEmpty && bench.sent.isEmpty, "nothing before the answer")
        bench.answer(first)
        guard case .changeSlots = try bench.request() else { return }
        for _ in 0..<5 { bench.receive(.subscriptionsChanged) }
        #expect(bench.rest.isEmpty && bench.sent.isEmpty, "nothing before the slots are there")
        bench.now += .seconds(1)
        bench.take(bench.state.slotsChanged(at: bench.now))
        guard case .findStreams = try bench.request() else { return }
        #expect(bench.rest.isEmpty, "asked once")
        let both = [SoraBench.stream(SoraBench.other), SoraBench.stream(SoraBench.third)]
        bench.take(bench.state.found(both, at: bench.now))
        #expect(bench.sent.count == 1)
    }

    /// The line of the client's layers in the next message, which is a re-offer.
    private func layers(in bench: inout SoraBench) throws -> (line: Substring, sdp: String) {
        let offer = try bench.next()
        #expect(offer["type"] == "re-offer")
        let sdp = try #require(offer["sdp"]?.string)
        return (try #require(sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=simulcast:") }), sdp)
    }

    private func simulcastBench(_ role: Role) throws -> (bench: SoraBench, unused: ([String]) -> ParticipantEvent) {
        var bench = SoraBench()
        try bench.connected(SoraBench.connect(role, #""simulcast":true"#))
        let mid = try #require(bench.own.compactMap { MID($0) }.first { $0.value.hasPrefix("video") })
        return (bench, { .unusedLayers(mid: mid, rids: $0.compactMap { RID($0) }) })
    }

    @Test(arguments: [Role.sendonly, .sendrecv])
    func `layers that nobody wants are paused by a re-offer, and sent again by the next`(role: Role) throws {
        var (bench, unused) = try simulcastBench(role)
        bench.receive(unused(["r1", "r2"]))
        guard case .findStreams = try bench.request() else { return }
        bench.take(bench.state.found([], at: bench.now))
        let paused = try layers(in: &bench)
        #expect(paused.line == "a=simulcast:recv r0;~r1;~r2")

        bench.receive(unused(["r2"]))
        #expect(bench.rest.isEmpty && bench.sent.isEmpty, "one offer at a time")
        bench.answer(paused.sdp)
        guard case .findStreams = try bench.request() else {
            Issue.record("a wanted layer waits")
            return
        }
        bench.take(bench.state.found([], at: bench.now))
        let resumed = try layers(in: &bench)
        #expect(resumed.line == "a=simulcast:recv r0;r1;~r2")
        bench.answer(resumed.sdp)
        #expect(bench.rest.isEmpty && bench.close == nil)
    }

    @Test func `a re-offer has changes of streams and of layers together`() throws {
        var (bench, unused) = try simulcastBench(.sendrecv)
        bench.receive(.subscriptionsChanged)
        _ = try bench.request()
        bench.receive(unused(["r2"]))
        #expect(bench.rest.isEmpty, "asked once")
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        let offer = try layers(in: &bench)
        #expect(offer.line == "a=simulcast:recv r0;r1;~r2")
        #expect(offer.sdp.contains("a=msid:\(SoraBench.other.value) "))
        #expect(bench.sent.isEmpty)
    }

    @Test func `the same layers again, other tracks, and unknown layers cause no offer`() throws {
        var (bench, unused) = try simulcastBench(.sendonly)
        bench.receive(unused([]))
        bench.receive(.unusedLayers(mid: MID("other")!, rids: [RID("r2")!]))
        bench.receive(unused(["r9"]))
        while case .findStreams? = bench.rest.first {
            _ = try bench.request()
            bench.take(bench.state.found([], at: bench.now))
        }
        #expect(bench.sent.isEmpty && bench.rest.isEmpty)
    }

    @Test func `layers are paused after the quiet time, and sent again without it`() throws {
        let crowd = (0..<150).map { number in
            let digits = String(number)
            return SoraBench.stream(ParticipantID("4" + String(repeating: "0", count: 25 - digits.count) + digits)!)
        }
        var bench = SoraBench()
        try bench.connected(SoraBench.connect(.sendrecv, #""simulcast":true"#), streams: crowd)
        let start = bench.now
        let mid = try #require(bench.own.compactMap { MID($0) }.first { $0.value.hasPrefix("video") })
        bench.receive(.unusedLayers(mid: mid, rids: [RID("r2")!]))
        #expect(bench.rest.isEmpty && bench.state.nextDeadline == start + .seconds(1))
        let hasWaited = bench.wait(until: start + .seconds(1))
        #expect(hasWaited)
        _ = try bench.request()
        bench.take(bench.state.found(crowd, at: bench.now))
        bench.answer(try layers(in: &bench).sdp)
        bench.receive(.unusedLayers(mid: mid, rids: []))
        guard case .findStreams = try bench.request() else {
            Issue.record("a wanted layer waits")
            return
        }
        bench.take(bench.state.found(crowd, at: bench.now))
        let line = try layers(in: &bench).line
        #expect(line == "a=simulcast:recv r0;r1;r2")
    }

    @Test func `simultaneous joins share an offer, and a single join causes one at once`() throws {
        var bench = SoraBench()
        let crowd = (0..<150).map { number in
            let digits = String(number)
            let name = "4" + String(repeating: "0", count: 25 - digits.count) + digits
            return SoraBench.stream(ParticipantID(name)!)
        }
        try bench.connected(streams: crowd)
        let start = bench.now
        bench.receive(.subscriptionsChanged)
        #expect(bench.rest.isEmpty && bench.state.nextDeadline == start + .seconds(1))
        let hasWaited = bench.wait(until: start + .seconds(1))
        #expect(hasWaited)
        guard case .findStreams = try bench.request() else { return }
        bench.take(bench.state.found(crowd, at: bench.now))
        bench.now += .seconds(3)
        bench.receive(.subscriptionsChanged)
        guard case .findStreams = try bench.request() else {
            Issue.record("it waits")
            return
        }
    }

    @Test func `changes during the reservation cause an offer`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        _ = try bench.request()
        bench.receive(.subscriptionsChanged)
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        bench.answer(try #require(try bench.next()["sdp"]?.string), "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        guard case .findStreams = try bench.request() else {
            Issue.record("not asked")
            return
        }
    }

    @Test func `notifications follow the offer that they belong to`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.receive(.subscriptionsChanged)
        bench.receive(.push("1"))
        let news = Notification(
            .forwarding(isBlocked: true, kind: .audio, source: SoraBench.other, destination: SoraBench.id),
            timestamp: 0
        )
        bench.receive(.notification(news))
        try bench.expectNext("push")
        #expect(bench.sent.isEmpty)
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        try bench.expectNext("re-offer")
        try bench.expectNext("notify")
        bench.receive(.notification(news))
        try bench.expectNext("notify")
    }

    @Test func `no offer is sent without a change`() throws {
        var bench = SoraBench()
        try bench.connected(streams: [SoraBench.stream(SoraBench.other)])
        bench.now += .seconds(1)
        bench.receive(.subscriptionsChanged)
        _ = try bench.request()
        bench.take(bench.state.found([SoraBench.stream(SoraBench.other)], at: bench.now))
        #expect(bench.sent.isEmpty && bench.close == nil)
    }

    @Test func `a sendonly client gets no offers of remote media`() throws {
        var bench = SoraBench()
        let streams = [SoraBench.stream(SoraBench.other)]
        let offer = try bench.offer(SoraBench.connect(.sendonly), streams: streams)
        #expect(!offer.contains(SoraBench.other.value))
        bench.answer(offer, "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        bench.receive(.subscriptionsChanged)
        #expect(bench.rest.isEmpty)
    }

    @Test func `a client without video gets no video m-line`() throws {
        var bench = SoraBench()
        let streams = [SoraBench.stream(SoraBench.other)]
        let offer = try bench.offer(SoraBench.connect(.recvonly, #""video":false"#), streams: streams)
        #expect(offer.contains("m=audio") && !offer.contains("m=video"))
    }

    // MARK: Refusals

    @Test func `an unsupported track is reported, and a declined one is not`() throws {
        let video = { (offer: String, sender: ParticipantID) in
            SDPAnswer.sections(offer).filter { $0[0].hasPrefix("m=video") }
                .filter { SDPAnswer.value("msid", $0)?.hasPrefix(sender.value) == true }
                .compactMap { SDPAnswer.value("mid", $0) }
        }
        var bench = SoraBench()
        let first = try bench.offer(streams: [SoraBench.stream(SoraBench.other, video: .h265)])
        let lacked = video(first, SoraBench.other)
        bench.answer(first, "answer", lacking: Set(lacked))
        guard case .reportUnsupported(let tracks) = try bench.request() else {
            Issue.record("nothing was reported")
            return
        }
        #expect(tracks.map(\.streamID) == [SoraBench.other.value] && tracks.map(\.codec) == [.h265])
        #expect(tracks.map(\.mid.value) == lacked)
        guard case .activate(let outcome) = try bench.request() else { return }
        #expect(outcome.added.map(\.parameters.kind) == [.audio])
        bench.take(bench.state.activated(at: bench.now))

        bench.now += .seconds(1)
        bench.receive(.subscriptionsChanged)
        guard case .findStreams = try bench.request() else { return }
        let streams = [SoraBench.stream(SoraBench.other, video: .h265), SoraBench.stream(SoraBench.third)]
        bench.take(bench.state.found(streams, at: bench.now))
        let second = try #require(try bench.next()["sdp"]?.string)
        bench.answer(second, refused: Set(video(second, SoraBench.third)), lacking: Set(lacked))
        guard case .changeSlots = try bench.request() else {
            Issue.record("reported again, or what is not wanted was reported")
            return
        }
    }

    @Test func `messages out of order are refused`() throws {
        let answer = #"{"type":"answer","sdp":"v=0"}"#
        for text in [answer, #"{"type":"candidate","candidate":""}"#, #"{"type":"pong"}"#] {
            var bench = SoraBench()
            bench.receive(text)
            #expect(bench.close?.close.code == 4490 && bench.close?.word == "INVALID-MESSAGE")
        }
        var twice = SoraBench()
        twice.receive(SoraBench.connect())
        twice.receive(SoraBench.connect())
        #expect(twice.close?.close.code == 4490 && twice.close?.word == "INVALID-MESSAGE")
        var early = SoraBench()
        early.receive(SoraBench.connect())
        early.receive(answer)
        #expect(early.close?.close.code == 4490 && early.close?.word == "INVALID-MESSAGE")
        var late = SoraBench()
        try late.connected()
        late.receive(answer)
        #expect(late.close?.close.code == 4490 && late.close?.word == "INVALID-MESSAGE")
        #expect(late.left == .rejected("INVALID-MESSAGE"))
    }

    @Test func `early candidates and unknown messages are ignored`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        bench.receive(#"{"type":"candidate","candidate":"candidate:1 1 udp 1 x.local 9 typ host"}"#)
        bench.receive(#"{"type":"something"}"#)
        #expect(bench.close == nil)
    }

    static let decisions: [(AccessDecision, String)] = [
        (.denied(reason: nil), "AUTHENTICATION-FAILURE"), (.denied(reason: "NOT-TODAY"), "NOT-TODAY"),
        (.failed, "AUTHENTICATION-INTERNAL-ERROR"),
    ]
    @Test(arguments: 0..<3) func `who is not let in is told why`(row: Int) {
        let (decision, reason) = Self.decisions[row]
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        bench.take(bench.state.admitted(decision, id: SoraBench.id, at: bench.now))
        #expect(bench.close?.close == WebSocketClose(4490, reason))
        #expect(bench.state.hasEnded && bench.sent.isEmpty)
    }

    static let ends: [(EndReason, UInt16, String)] = [
        (.disconnectedByOperator, 1000, "DISCONNECTED-API"), (.sessionTerminated, 1000, "DISCONNECTED-API"),
        (.lifetimeExpired, 1000, "LIFETIME-EXPIRED"), (.tokenExpired, 1000, "TOKEN-EXPIRED"),
        (.shutdown, 1001, "SERVER-SHUTDOWN"),
        (.left, 1000, "TYPE-DISCONNECT"), (.transport(.closedByPeer), 1000, "TYPE-DISCONNECT"),
        (.transport(.consentExpired), 4490, "ICE-CONNECTION-STATE-FAILED"),
        (.transport(.setupTimedOut), 4490, "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"),
        (.transport(.handshakeFailed), 4490, "CONNECTION-STATE-FAILED"),
        (.transport(.fingerprintMismatch), 4490, "BAD-FINGERPRINT"), (.tooSlow, 4490, "INTERNAL-ERROR"),
        (.setupFailed, 4490, "INTERNAL-ERROR"), (.replaced, 1000, "USER-REPLACED"),
        (.kicked, 1000, "KICKED"), (.banned, 1000, "BANNED"), (.channelTerminated, 1000, "CHANNEL-TERMINATED"),
        (.rejected("WHY"), 4490, "WHY"), (.unanswered, 4490, "ANSWER-TIMEOUT-ERROR"),
        (.unreachable, 4490, "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"), (.evicted, 4490, "INTERNAL-ERROR"),
    ]
    private static func extended() throws -> SoraBench {
        var bench = SoraBench()
        try bench.connected(SoraBench.connect(.sendrecv, #""nagare":{}"#))
        return bench
    }

    @Test func `who closes DTLS and says that it leaves has left, in any order`() throws {
        var bench = try Self.extended()
        bench.receive(.ended(.transport(.closedByPeer)))
        #expect(bench.close == nil && bench.left == nil)
        bench.receive(#"{"type":"pong"}"#)
        bench.receive(#"{"type":"disconnect"}"#)
        #expect(bench.close?.close == WebSocketClose(1000, "TYPE-DISCONNECT") && bench.left == .left)
    }

    @Test func `who only closes DTLS is told so a second later`() throws {
        var bench = try Self.extended()
        bench.receive(.ended(.transport(.closedByPeer)))
        _ = bench.wait(until: bench.now + .milliseconds(999))
        #expect(bench.close == nil)
        _ = bench.wait(until: bench.now + .milliseconds(1))
        #expect(bench.close?.close == WebSocketClose(1000, "TYPE-DISCONNECT"))
        #expect(bench.left == .transport(.closedByPeer))
    }

    @Test(arguments: ends.indices) func `each end has its code and reason`(row: Int) throws {
        let (reason, code, text) = Self.ends[row]
        var bench = SoraBench()
        try bench.connected()
        bench.receive(.ended(reason))
        #expect(bench.close?.close == WebSocketClose(code, text))
    }

    @Test(arguments: [
        (Role.sendonly, "", "VP8"), (.sendonly, #""video":{"codec_type":"AV1"}"#, "AV1"), (.recvonly, "", "VP9"),
    ])
    func `a sender without a codec choice gets one that all viewers can play`(
        role: Role,
        members: String,
        codec: String
    ) throws {
        var generator = SystemRandomNumberGenerator()
        let viewer = ParticipantID(using: &generator)
        let session = ChannelSessionID(using: &generator)
        let room = ChannelName("room")!
        let join = JoinRequest(channel: room, role: .recvonly)
        var node = NodeModel(locations: .loops(1))
        var model = ChannelModel(name: room)
        _ = try model.joined(join, as: node.admit(join, id: viewer, at: model.now).result.get(), session: session)
        _ = try model.setupCompleted(viewer, publications: [], slots: [], decodedVideo: [.vp8, .h264])
        var bench = SoraBench()
        bench.receive(SoraBench.connect(role, members))
        _ = try bench.request()
        let decoders = model.decoders
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, decoders: decoders, at: bench.now))
        _ = try bench.request()
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(try bench.next()["video_codec_type"] == .string(codec))
    }

    @Test(arguments: [("", "VP9"), (#""nagare":{}"#, "VP8")])
    func `the browser module's default codec is one that all browsers decode, and Sora's SDKs get Sora's`(
        members: String,
        codec: String
    ) throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, members))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        _ = try bench.request()
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(try bench.next()["video_codec_type"] == .string(codec))
    }

    @Test func `grants are in the join request and override bundle_id`() throws {
        var grants = Grants()
        grants.permissions.channelConnectionsMax = 3
        grants.clientID = "alice"
        let request = { (grants: Grants) in
            var bench = SoraBench()
            bench.receive(SoraBench.connect(.sendrecv, #""bundle_id":"b""#))
            _ = try bench.request()
            bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
            guard case .reserve(let request) = try bench.request() else { throw SoraClose.stopping }
            return request
        }
        let known = try request(grants)
        #expect(known.channelConnectionsMax == 3 && known.clientID == "alice")
        #expect(known.bundleID == "b" && known.bundleScope == .client("alice"))
        grants.bundleID = "given"
        let given = try request(grants)
        #expect(given.bundleID == "given" && given.bundleScope == .granted)
        let stranger = try request(Grants())
        #expect(stranger.bundleID == "b" && stranger.bundleScope == nil, "bound to its network")
    }

    @Test func `a refusal by the rooms closes the connection`() throws {
        for error: RoomError in [
            .nodeFull, .networkFull(.unconnected), .connectionsBlocked, .media("There is no port."),
        ] {
            var bench = SoraBench()
            bench.receive(SoraBench.connect())
            bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
            bench.take(bench.state.refused(error, at: bench.now))
            #expect(bench.close?.close == WebSocketClose(4490, "INTERNAL-ERROR"))
            #expect(bench.close?.message.hasSuffix(".") == true)
        }
    }

    @Test func `a node that is shutting down tells new clients`() {
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        bench.take(bench.state.refused(.draining, at: bench.now))
        #expect(bench.close?.close == WebSocketClose(1001, "SERVER-SHUTDOWN"))
    }

    @Test func `a late reservation is cancelled`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        bench.take(bench.state.socketClosed())
        #expect(bench.left == .signalingLost)
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(bench.sent.isEmpty && bench.left == .signalingLost)
    }

    @Test func `an invalid answer is refused`() throws {
        var bench = SoraBench()
        _ = try bench.offer()
        bench.receive(#"{"type":"answer","sdp":"nonsense"}"#)
        #expect(bench.close?.close.code == 4490 && bench.close?.word == "INVALID-MESSAGE")
    }

    @Test func `a flood of messages closes its connection`() throws {
        var bench = SoraBench()
        try bench.connected()
        for _ in 0..<900 { bench.receive(#"{"type":"pong"}"#) }
        #expect(bench.close == nil)
        for _ in 0..<200 { bench.receive(#"{"type":"pong"}"#) }
        #expect(bench.close?.word == "INVALID-MESSAGE")
    }

    @Test func `unparsed statistics count as a sign of life`() throws {
        var bench = SoraBench()
        try bench.connected()
        let start = bench.now
        let text = #"{"type":"pong","stats":[{"id":"x"}]}"#
        for second in 1...200 {
            while bench.wait(until: start + .seconds(second)) {}
            bench.take(bench.state.received(text, isRead: false, at: bench.now))
        }
        #expect(bench.close == nil && bench.rest.isEmpty, "neither too late nor recorded")
        for _ in 0..<1_100 { bench.take(bench.state.received(text, isRead: false, at: bench.now)) }
        #expect(bench.close?.message.contains("rate limit") == true, "they count for the client's own budget")
        #expect(bench.close?.limit == .clientMessageRate)
    }

    @Test func `statistics are recognized by their first or last bytes`() {
        let statistics = [
            #"{"type":"pong","stats":[]}"#, #" { "type" : "pong" , "stats": [1]}"#,
            #"{"stats":[{"id":"x"}],"type":"pong"}"#,
            "{\"stats\": [],\n \"type\": \"pong\" \n}\n",
        ]
        for text in statistics { #expect(SoraClientMessage.isStatistics(text), "\(text)") }
        let others = [
            "", "{", #"{"type":"pong"}"#, #"{"type":"ponga","stats":[]}"#,
            #"{"type":"answer","sdp":"\"type\":\"pong\"}"#,
            #"{"type":"answer","sdp":"{\"type\":\"pong\","}"#, #"{"a":1,"b":{"c":1,"type":"pong"}}"#,
            #"["type","pong"]"#,
        ]
        for text in others { #expect(!SoraClientMessage.isStatistics(text), "\(text)") }
    }

    @Test func `a message with many values costs several messages`() throws {
        var bench = SoraBench()
        try bench.connected()
        let text = #"{"type":"x","a":[1"# + String(repeating: ",1", count: 16_000) + "]}"
        for _ in 0..<3 { bench.receive(text) }
        #expect(bench.close == nil)
        bench.receive(text)
        #expect(bench.close?.word == "INVALID-MESSAGE" && bench.close?.message.contains("rate limit") == true)
    }

    @Test func `a message larger than every budget is refused for its size`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.now += .seconds(10)
        bench.receive(#"{"type":"x","a":[1"# + String(repeating: ",1", count: 200_000) + "]}")
        #expect(bench.close?.word == "INVALID-JSON")
    }

    @Test func `the length of the first message is bounded`() {
        func close(_ length: Int) -> SoraClose? {
            var bench = SoraBench()
            let (start, end) = (#"{"type":"x","a":""#, #""}"#)
            bench.receive(start + String(repeating: "a", count: length - start.utf8.count - end.utf8.count) + end)
            return bench.close
        }
        #expect(close(128 * 1024)?.message.contains("is not \"connect\"") == true)
        #expect(close(128 * 1024 + 1)?.message.contains("at most 131072 bytes") == true)
    }

    // MARK: Time

    @Test func `a silent WebSocket is closed`() {
        var bench = SoraBench()
        let start = bench.now
        while bench.wait(until: start + .milliseconds(9_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(10)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "CONNECT-WAIT-TIMEOUT-ERROR"))
        #expect(bench.state.nextDeadline == nil)
    }

    @Test(arguments: [false, true])
    func `a client without a timely reservation is closed, and a late reservation is cancelled`(isAdmitted: Bool) throws
    {
        var bench = SoraBench()
        let start = bench.now
        bench.receive(SoraBench.connect())
        bench.now += .seconds(60)
        if isAdmitted { bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now)) }
        while bench.wait(until: start + .milliseconds(74_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(75)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "INTERNAL-ERROR") && bench.left != nil)
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        bench.take(bench.state.reserved(SoraBench.reservation, streams: [], at: bench.now))
        #expect(bench.sent.isEmpty && bench.left == .signalingLost && bench.state.nextDeadline == nil)
    }

    @Test func `an answer that is never applied ends the connection`() throws {
        var bench = SoraBench()
        bench.answer(try bench.offer(), "answer")
        let start = bench.now
        while bench.wait(until: start + .milliseconds(59_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(61)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"))
    }

    @Test func `an unanswered offer closes the connection`() throws {
        var bench = SoraBench()
        _ = try bench.offer()
        let start = bench.now
        while bench.wait(until: start + .milliseconds(29_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(31)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "ANSWER-TIMEOUT-ERROR"))
    }

    @Test func `a transport that does not connect in time closes the connection`() throws {
        var bench = SoraBench()
        bench.answer(try bench.offer(), "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        let start = bench.now
        while bench.wait(until: start + .milliseconds(59_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(61)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"))
    }

    @Test func `pings are sent every five seconds, and every sixth asks for statistics`() throws {
        var bench = SoraBench()
        try bench.connected()
        let start = bench.now
        var pings: [JSONValue] = []
        while pings.count < 12, bench.wait(until: start + .seconds(100)) {
            pings.append(try bench.next())
            bench.receive(#"{"type":"pong","stats":[{"id":"x"}]}"#)
            bench.receive(#"{"type":"pong","stats":[{"id":"y"}]}"#)
            guard pings.count % 6 == 0 else {
                #expect(bench.rest.isEmpty, "nobody asked")
                continue
            }
            guard case .record(let reports) = try bench.request() else { return }
            #expect(reports == [["id": "x"]] && bench.rest.isEmpty, "once for each time that it was asked")
        }
        #expect(pings.count == 12 && bench.now == start + .seconds(60))
        #expect(pings.allSatisfy { $0["type"] == "ping" })
        #expect(pings.map { $0["stats"] == true } == (1...12).map { $0 % 6 == 0 })
    }

    @Test func `unanswered pings close a connected connection`() throws {
        var bench = SoraBench()
        try bench.connected()
        let start = bench.now
        while bench.wait(until: start + .milliseconds(59_999)) {}
        #expect(bench.close == nil)
        while bench.close == nil, bench.wait(until: start + .seconds(70)) {}
        #expect(bench.close?.close == WebSocketClose(4490, "PONG-TIMEOUT-ERROR"))
        #expect(bench.left == .pongTimedOut)
    }

    @Test func `the quality of the client's network is sent every two seconds, once it is known`() throws {
        var bench = SoraBench()
        try bench.connected()
        let start = bench.now
        let tell = { (bench: inout SoraBench, quality: LinkQuality, seconds: Int64) in
            let timestamp = 1_700_000_000_000_000_000 + seconds * 1_000_000_000
            bench.receive(.notification(Notification(.networkQuality(quality), timestamp: timestamp)))
        }
        func messages(_ bench: inout SoraBench, until second: Int) throws -> [(Interval, [Int?], String?)] {
            var messages: [(Interval, [Int?], String?)] = []
            var waits = true
            while waits {
                while !bench.sent.isEmpty {
                    let message = try bench.next()
                    guard message["event_type"] == "network.quality" else { continue }
                    let levels = [message["uplink"]?.integer, message["downlink"]?.integer]
                    messages.append((bench.now - start, levels, message["timestamp"]?.string))
                }
                waits = bench.wait(until: start + .seconds(second))
            }
            return messages
        }
        #expect(try messages(&bench, until: 4).isEmpty)
        tell(&bench, LinkQuality(uplink: .excellent, downlink: .good), 0)
        let first = try messages(&bench, until: 9)
        #expect(first.map(\.0) == [.seconds(4), .seconds(6), .seconds(8)] && first.allSatisfy { $0.1 == [1, 2] })
        #expect(
            first.map { $0.2?.contains("22:13:2\($0.0 == .seconds(4) ? 0 : $0.0 == .seconds(6) ? 2 : 4)") } == [
                true, true, true,
            ]
        )
        // A change waits for the next message.
        tell(&bench, .disconnected, 5)
        let second = try messages(&bench, until: 13)
        #expect(second.map(\.0) == [.seconds(10), .seconds(12)] && second.allSatisfy { $0.1 == [6, 6] })
    }

    @Test func `a shutdown of the node has its own close code`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.take(bench.state.stopping())
        #expect(bench.close?.close.code == 1001 && bench.left == .shutdown)
        bench.receive(.ended(.shutdown))
        #expect(bench.state.hasEnded)
    }
}
