import Access
import Base
import ChannelTypes
import JSON
import Testing
import Wire

@testable import Sora
@testable import Web

@Suite struct ChannelRequestTests {
    private static func joined(_ nagare: String = "{}") throws -> SoraBench {
        var bench = SoraBench()
        try bench.connected(SoraBench.connect(.sendrecv, #""nagare":\#(nagare)"#))
        return bench
    }

    private static func request(_ id: String, _ method: String, _ parameters: String = "{}") -> String {
        #"{"type":"request","id":\#(id),"method":"\#(method)","params":\#(parameters)}"#
    }

    @Test func `the options of a client reach the rooms`() throws {
        var bench = SoraBench()
        let options =
            #"{"profile":"interactive","role":"audience","source":"screen","subscribe":"manual","resume":"t","x":1}"#
        let members = #""nagare":\#(options),"signaling_notify_metadata":{"name":"Anna"}"#
        bench.receive(SoraBench.connect(.sendrecv, members))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        guard case .reserve(let join) = try bench.request() else {
            Issue.record("no reservation")
            return
        }
        let expected = MemberOptions(
            profile: .interactive,
            role: .audience,
            source: .screen,
            subscribesManually: true,
            resumeToken: "t"
        )
        #expect(join.options == expected && join.displayName == "Anna")
        #expect(join.keepsPlace && join.resumeToken == "t")
    }

    /// The options that reach the rooms; `nil` without any.
    private static func options(_ members: String, _ granted: String = "{}") throws -> MemberOptions? {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, members))
        _ = try bench.request()
        let grants = try Grants(try #require(try JSONValue(parsing: granted).object))
        bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
        guard case .reserve(let join) = try bench.request() else { return nil }
        #expect(join.keepsPlace == (join.options != nil) && join.resumeToken == join.options?.resumeToken)
        return join.options
    }

    @Test(
        arguments: [
            (#""a":1"#, "{}", nil),
            (#""metadata":{"access_token":"t"}"#, "{}", nil),
            (#""metadata":"nagare""#, "{}", nil),
            // All SDKs send metadata.
            (#""metadata":{"nagare":{}}"#, "{}", MemberOptions()),
            (
                #""metadata":{"nagare":{"role":"audience","resume":"t"}}"#, "{}",
                MemberOptions(role: .audience, resumeToken: "t")
            ),
            (#""a":1"#, #"{"nagare":{"profile":"interactive"}}"#, MemberOptions(profile: .interactive)),
            // Grants decide over the message, and the message over its metadata, member by member.
            (
                #""nagare":{"role":"host"},"metadata":{"nagare":{"role":"audience","source":"screen","subscribe":"manual"}}"#,
                #"{"nagare":{"source":"camera","profile":"interactive"}}"#,
                MemberOptions(profile: .interactive, role: .host, source: .camera, subscribesManually: true)
            ),
            (
                #""nagare":{"role":"host","profile":"communication","subscribe":"auto"}"#,
                #"{"nagare":{"role":"audience","profile":"interactive","subscribe":"manual"}}"#,
                MemberOptions(profile: .interactive, role: .audience, subscribesManually: true)
            ),
        ] as [(String, String, MemberOptions?)]
    )
    func `the grants, the message and its metadata say what a member is, in this order`(
        members: String,
        granted: String,
        expected: MemberOptions?
    ) throws {
        let options = try Self.options(members, granted)
        #expect(options == expected)
    }

    @Test(arguments: [#"{"nagare":{"role":"x"}}"#, #"{"nagare":7}"#, #"{"nagare":{"profile":1}}"#])
    func `invalid options in metadata are refused, with their place`(metadata: String) {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, #""metadata":\#(metadata)"#))
        #expect(bench.close?.word == "INVALID-MESSAGE" && bench.close?.message.contains("metadata") == true)
    }

    @Test func `a sender cannot be granted the role of the audience, and who only receives is audience as host`() throws
    {
        for (role, granted, isAdmitted) in [
            (Role.sendonly, #"{"nagare":{"role":"audience"}}"#, false),
            (.recvonly, #"{"nagare":{"role":"host"}}"#, true),
        ] {
            var bench = SoraBench()
            bench.receive(SoraBench.connect(role))
            _ = try bench.request()
            let grants = try Grants(try #require(try JSONValue(parsing: granted).object))
            bench.take(bench.state.admitted(.allowed(grants), id: SoraBench.id, at: bench.now))
            #expect((bench.close == nil) == isAdmitted)
            if !isAdmitted { #expect(bench.close?.message.hasPrefix("The grants make the client audience") == true) }
        }
    }

    @Test func `a plain SDK with options in its metadata keeps its codec, and requests over its WebSocket`() throws {
        var bench = SoraBench()
        let sdp = try bench.offer(SoraBench.connect(.sendrecv, #""metadata":{"nagare":{}}"#))
        #expect(sdp.contains("VP9/90000"))
        bench.answer(sdp, "answer")
        _ = try bench.request()
        bench.take(bench.state.activated(at: bench.now))
        bench.receive(Self.request("1", "listMembers"))
        guard case .request(.listMembers) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.success(#"{"users":[]}"#)))
        #expect(try bench.next() == ["type": "response", "id": 1, "result": ["users": []]])
    }

    @Test(arguments: [
        (#"{"profile":"x"}"#, Role.sendrecv), (#"{"role":"host"}"#, .recvonly), (#"{"role":"audience"}"#, .sendonly),
        (#"{"source":1}"#, .sendrecv), ("[]", .sendrecv), (#"{"subscribe":"no"}"#, .sendrecv),
    ])
    func `invalid options are refused`(options: String, role: Role) {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(role, #""nagare":\#(options)"#))
        #expect(bench.close?.word == "INVALID-MESSAGE")
    }

    @Test(arguments: [#""new""#, #"{"appid":"a"}"#])
    func `a new token is passed on in any form`(token: String) throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", "refreshToken", #"{"access_token":\#(token)}"#))
        guard case .request(.refreshToken(let value)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        #expect(value.text == token)
        bench.take(bench.state.requested(.failure(RequestFailure(.expiryNotLater))))
        let response = try bench.next()
        #expect(response["error"]?["reason"] == "TOKEN-INVALID" && response["error"]?["code"] == 0x0201_0205)
    }

    @Test(arguments: [#"{}"#, #"{"access_token":1}"#])
    func `a request to refresh has a token`(parameters: String) throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", "refreshToken", parameters))
        #expect(try bench.next()["error"]?["reason"] == "PARAMETERS-INVALID")
    }

    @Test func `requests are performed one after the other, each with its response`() throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", "subscribe", #"{"user_id":"anna","kind":"video"}"#))
        bench.receive(Self.request(#""two""#, "unknown"))
        bench.receive(Self.request("3", "unsubscribe"))
        let anna = SubscriptionSelection(user: "anna", kind: .video)
        let subscribe = ChannelCommand.subscribe(true, to: anna, receiver: .participant(SoraBench.id))
        guard case .request(.perform(subscribe, result: "{}")) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        #expect(bench.rest.isEmpty && bench.sent.isEmpty)
        bench.take(bench.state.requested(.success(#"{"a":1}"#)))
        #expect(try bench.next() == ["type": "response", "id": 1, "result": ["a": 1]])
        let refusal = try bench.next()
        #expect(refusal["id"] == "two" && refusal["error"]?["reason"] == "PARAMETERS-INVALID")
        #expect(refusal["error"]?["code"] == 16_974_081)
        let all = ChannelCommand.subscribe(false, to: SubscriptionSelection(), receiver: .participant(SoraBench.id))
        guard case .request(.perform(all, result: "{}")) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.failure(RequestFailure(RoomError.subscriptionsFull))))
        #expect(try bench.next()["error"]?["reason"] == "SUBSCRIPTIONS-FULL")
    }

    @Test func `a client asks for its statistics`() throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", "statistics"))
        guard case .request(.statistics) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.success(#"{"sending":{}}"#)))
        #expect(try bench.next() == ["type": "response", "id": 1, "result": ["sending": [:]]])
    }

    @Test(arguments: [
        #"{"type":"request"}"#, #"{"type":"request","id":{},"method":"subscribe"}"#,
        #"{"type":"request","id":1,"method":"subscribe","params":{"kind":"smell"}}"#,
        #"{"type":"request","id":1,"method":"subscribe","params":[]}"#,
        #"{"type":"request","id":1,"method":"\#(String(repeating: "x", count: 70))"}"#,
        #"{"type":"request","id":1,"method":"subscribe","x":"\#(String(repeating: "x", count: 17_000))"}"#,
        #"{"type":"request","id":"\#(String(repeating: "x", count: 65))","method":"subscribe"}"#,
    ])
    func `an invalid request is answered, and the client stays`(text: String) throws {
        var bench = try Self.joined()
        bench.receive(text)
        #expect(try bench.next()["error"]?["reason"] == "PARAMETERS-INVALID")
        #expect(bench.close == nil && bench.rest.isEmpty)
    }

    @Test func `roles and mute are requested with their parameters`() throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", "setRole", #"{"role":"host"}"#))
        let host = ChannelCommand.setRole(.host, of: .participant(SoraBench.id))
        guard case .request(.perform(host, result: #"{"role":"host"}"#)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.failure(RequestFailure(RoomError.rolesUnused))))
        let refusal = try bench.next()
        #expect(refusal["error"]?["reason"] == "CHANNEL-NOT-INTERACTIVE" && refusal["error"]?["code"] == 16_908_801)
        bench.receive(Self.request("2", "setMuted", #"{"kind":"audio","muted":false}"#))
        let unmute = ChannelCommand.setMuted(false, kinds: [.audio], of: .participant(SoraBench.id))
        guard case .request(.perform(unmute, result: "{}")) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.success("{}")))
        #expect(try bench.next()["result"] == [:])
        for (id, error, reason) in [
            ("3", RoomError.mutedByOperator, "MUTED-BY-OPERATOR"),
            ("4", RoomError.changesTooFrequent, "CHANGES-TOO-FREQUENT"),
        ] {
            bench.receive(Self.request(id, "setMuted", #"{"kind":"audio","muted":false}"#))
            _ = try bench.request()
            bench.take(bench.state.requested(.failure(RequestFailure(error))))
            let refusal = try bench.next()["error"]
            #expect(refusal?["reason"]?.string == reason && refusal?["message"]?.string?.isEmpty == false)
        }
        for (method, parameters) in [("setRole", "{}"), ("setMuted", #"{"kind":"audio"}"#), ("setMuted", "{}")] {
            bench.receive(Self.request("3", method, parameters))
            #expect(try bench.next()["error"]?["reason"] == "PARAMETERS-INVALID")
        }
    }

    private static let ofOthers: [(method: String, parameters: String, command: ChannelCommand)] = [
        ("setRole", #"{"role":"host","user_id":"b"}"#, .setRole(.host, of: .user("b"))),
        ("setMuted", #"{"kind":"video","muted":true,"user_id":"b"}"#, .mute(.user("b"), kinds: [.video])),
        ("muteOthers", #"{"kind":"audio"}"#, .mute(.all, kinds: [.audio])),
        ("removeUser", #"{"user_id":"b"}"#, .end(.user("b"), .kicked)),
        ("raiseHand", #"{"raised":true}"#, .raiseHand(true, of: SoraBench.id)),
    ]

    @Test(arguments: ofOthers)
    func `what a moderator asks for is a command about others`(
        method: String,
        parameters: String,
        command: ChannelCommand
    ) throws {
        var bench = try Self.joined()
        bench.receive(Self.request("1", method, parameters))
        guard case .request(.perform(command, result: _)) = try bench.request() else {
            Issue.record("not performed")
            return
        }
        bench.take(bench.state.requested(.failure(RequestFailure(RoomError.moderatorsOnly))))
        #expect(try bench.next()["error"]?["reason"] == "NOT-A-MODERATOR")
    }

    @Test func `requests about others that lack something are refused`() throws {
        var bench = try Self.joined()
        for (method, parameters) in [
            ("setMuted", #"{"kind":"audio","muted":false,"user_id":"b"}"#), ("muteOthers", "{}"), ("removeUser", "{}"),
            ("raiseHand", "{}"),
        ] {
            bench.receive(Self.request("3", method, parameters))
            #expect(try bench.next()["error"]?["reason"] == "PARAMETERS-INVALID", "\(method)")
        }
    }

    @Test func `a client of another profile is refused`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, #""nagare":{"profile":"interactive"}"#))
        _ = try bench.request()
        bench.take(bench.state.admitted(.allowed(Grants()), id: SoraBench.id, at: bench.now))
        bench.take(bench.state.refused(.profileMismatch, at: bench.now))
        #expect(bench.close?.close == WebSocketClose(4490, "CHANNEL-PROFILE-MISMATCH"))
    }

    @Test func `requests before the offer and too many at once are refused`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect(.sendrecv, #""nagare":{}"#))
        bench.receive(Self.request("1", "subscribe"))
        #expect(try bench.next()["error"]?["reason"] == "NOT-JOINED")
        bench = try Self.joined()
        for _ in 0..<33 { bench.receive(Self.request("1", "subscribe")) }
        #expect(bench.rest.count == 1 && bench.sent.count == 1)
        #expect(try bench.next()["error"]?["reason"] == "REQUESTS-FULL")
    }

    @Test func `clients without the extension get no response`() throws {
        var bench = SoraBench()
        try bench.connected()
        bench.receive(Self.request("1", "subscribe"))
        #expect(bench.sent.isEmpty && bench.rest.isEmpty && bench.close == nil)
    }
}
