import Testing

@testable import NagareClient

/// What the application calls.
@Suite struct CallTests {
    private func answer(_ rig: inout Rig, _ number: Int, _ result: String = "{}") {
        rig.say(#"{"type":"response","id":"\#(number)","result":\#(result)}"#)
    }

    private func refuse(_ rig: inout Rig, _ number: Int, _ reason: String, code: Int = 0) {
        rig.say(
            #"{"type":"response","id":"\#(number)","error":{"code":\#(code),"reason":"\#(reason)","message":"No."}}"#
        )
    }

    @Test func `a request gets its own answer, by number`() {
        var rig = Rig.joined()
        rig.machine.request("listMembers", call: 7, at: rig.now)
        rig.machine.request("statistics", call: 8, at: rig.now)
        #expect(rig.take().requests == ["listMembers ", "statistics "])
        answer(&rig, 2, #"{"x":1}"#)
        answer(&rig, 99)
        refuse(&rig, 1, "CHANGES-TOO-FREQUENT", code: 5)
        answer(&rig, 1)
        let actions = rig.take()
        #expect(actions.result(8) == .success(["x": 1]))
        #expect(actions.result(7) == .failure(NagareError(reason: "CHANGES-TOO-FREQUENT", message: "No.", code: 5)))
        #expect(actions.count == 2, "each call is answered once")
    }

    @Test func `a request without an answer fails after eight seconds`() {
        var rig = Rig.joined()
        rig.machine.request("statistics", call: 1, at: rig.now)
        rig.pass(.milliseconds(7_999))
        #expect(rig.take().result(1) == nil)
        rig.pass(.milliseconds(1))
        #expect(rig.take().result(1)?.failure?.reason == "TIMEOUT")
    }

    @Test func `without a connection a request fails at once, and with the connection`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.machine.request("statistics", call: 1, at: rig.now)
        #expect(rig.take().result(1) == .failure(.notConnected))
        rig.connect()
        rig.machine.request("statistics", call: 2, at: rig.now)
        rig.lose()
        #expect(rig.take().result(2) == .failure(.notConnected))
    }

    @Test func `sixteen requests are under way, the others wait in order`() {
        var rig = Rig.joined()
        for call in 1...2_100 { rig.machine.request("statistics", call: call, at: rig.now) }
        let first = rig.take()
        #expect(first.requests.count == 16)
        #expect(first.result(2_016) == nil && first.result(2_017)?.failure?.reason == "REQUESTS-FULL")
        answer(&rig, 1)
        #expect(rig.take().requests.count == 1)
    }

    // MARK: Mutes

    @Test func `a mute is immediate, an unmute waits for the node`() {
        var rig = Rig.joined()
        rig.machine.setMuted(.video, true, call: 1, at: rig.now)
        var actions = rig.take()
        #expect(actions.contains(.muteMedia(.camera, true)) && rig.machine.muted == [.video])
        #expect(actions.requests == ["setMuted kind=video muted=true"])
        answer(&rig, 1)
        #expect(rig.take().result(1)?.isSuccess == true)
        rig.machine.setMuted(.video, false, call: 2, at: rig.now)
        #expect(!rig.take().contains(.muteMedia(.camera, false)))
        answer(&rig, 2)
        actions = rig.take()
        #expect(actions.contains(.muteMedia(.camera, false)) && actions.result(2)?.isSuccess == true)
        #expect(rig.machine.muted.isEmpty)
    }

    @Test func `an operator's mute holds`() {
        var rig = Rig.joined()
        rig.event("muted", #""kind":"audio","muted":true,"by":"operator""#)
        #expect(rig.take().contains(.muteMedia(.microphone, true)))
        rig.machine.setMuted(.audio, false, call: 1, at: rig.now)
        refuse(&rig, 1, "MUTED-BY-OPERATOR")
        #expect(rig.take().result(1)?.failure?.reason == "MUTED-BY-OPERATOR" && rig.machine.muted == [.audio])
        rig.event("muted", #""kind":"audio","muted":false,"by":"operator""#)
        let actions = rig.take()
        #expect(!actions.contains(.muteMedia(.microphone, false)), "the user unmutes itself")
        #expect(actions.events == [.muted(.audio, isMuted: false, by: .operator)])
    }

    @Test func `a mute without a connection is told when there is one`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.machine.setMuted(.audio, true, call: 1, at: rig.now)
        let actions = rig.take()
        #expect(actions.result(1)?.isSuccess == true && actions.contains(.muteMedia(.microphone, true)))
        rig.connect()
        #expect(rig.take().requests == ["setMuted kind=audio muted=true"])
        // An operator muted the kind of a place that was kept.
        rig.lose()
        rig.pass(.seconds(1))
        rig.connect()
        _ = rig.take()
        refuse(&rig, 2, "MUTED-BY-OPERATOR")
        #expect(rig.take().contains(.muteMedia(.camera, true)))
    }

    // MARK: Roles

    @Test func `a role decides what is published`() throws {
        var rig = Rig.joined(message: Rig.joinedMessage(profile: "interactive"))
        rig.machine.setRole(.audience, call: 1, at: rig.now)
        #expect(rig.machine.role == .host, "until the node agrees")
        answer(&rig, 1)
        var actions = rig.take()
        #expect(actions.events == [.roleChanged(.audience, by: .`self`)])
        #expect(actions.contains(.stopMedia(.camera)) && actions.contains(.stopMedia(.microphone)))
        #expect(throws: NagareError.notHost) { try rig.machine.publish(.camera, at: rig.now) }
        rig.event("role.changed", #""role":"host","by":"operator""#)
        actions = rig.take()
        #expect(actions.events == [.roleChanged(.host, by: .operator)] && actions.contains(.startMedia(.camera)))
        rig.event("role.changed", #""role":"host","by":"self""#)
        #expect(rig.events().isEmpty)
        rig.machine.setRole(.audience, call: 2, at: rig.now)
        refuse(&rig, 2, "ROLE-SET-BY-OPERATOR", code: 0x0102_0201)
        #expect(rig.take().result(2)?.failure?.code == 0x0102_0201 && rig.machine.role == .host)
        // A return asks for the present role.
        rig.lose()
        rig.pass(.seconds(1))
        rig.open()
        #expect(rig.take().connects.map(\.role) == [.host])
    }

    @Test func `the node's own choice of the role counts`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.connect(message: Rig.joinedMessage(role: "audience", profile: "interactive"))
        let actions = rig.take()
        #expect(actions.events.contains(.roleChanged(.audience, by: .`self`)) && actions.contains(.stopMedia(.camera)))
    }

    // MARK: Subscriptions

    @Test func `subscriptions are repeated on return, without those that a later one replaced`() {
        var rig = Rig.joined()
        typealias Subscription = ChannelMachine.Subscription
        rig.machine.subscribe(Subscription(isWanted: false, user: "a", kind: .video), call: 1, at: rig.now)
        rig.machine.subscribe(Subscription(isWanted: false, kind: .audio), call: 2, at: rig.now)
        rig.machine.subscribe(Subscription(isWanted: true, user: "a"), call: 3, at: rig.now)
        rig.machine.subscribe(Subscription(isWanted: false, user: "b", source: .screen), call: 4, at: rig.now)
        #expect(
            rig.take().requests == [
                "unsubscribe kind=video user_id=a", "unsubscribe kind=audio", "subscribe user_id=a",
                "unsubscribe source=screen user_id=b",
            ]
        )
        rig.lose()
        rig.pass(.seconds(1))
        rig.connect()
        #expect(
            rig.take().requests.filter { !$0.hasPrefix("setMuted") } == [
                "unsubscribe kind=audio", "subscribe user_id=a", "unsubscribe source=screen user_id=b",
            ]
        )
        for number in 0..<2_000 {
            rig.machine.subscribe(Subscription(isWanted: true, user: "\(number)"), call: number, at: rig.now)
        }
        rig.lose()
        rig.pass(.seconds(1))
        _ = rig.take()
        rig.connect()
        #expect(rig.take().requests.count == 16, "the rest waits")
    }

    // MARK: Devices and the screen

    @Test func `a device that cannot be opened is a failure, and no end`() {
        var rig = Rig.joined()
        rig.machine.mediaFailed(.camera, "no permission", at: rig.now)
        rig.machine.mediaFailed(.camera, "no permission", at: rig.now)
        let events = rig.events()
        guard case .failed(let error)? = events.first else {
            Issue.record("the failure is not told")
            return
        }
        #expect(events.count == 1 && error.message.contains("no permission") && rig.machine.published == [.microphone])
    }

    @Test func `the screen is a second connection of the same user`() throws {
        var rig = Rig.joined(message: Rig.joinedMessage(profile: "interactive"))
        try rig.machine.publish(.screen, at: rig.now)
        try rig.machine.publish(.screen, at: rig.now)
        rig.open(.screen)
        let connect = try #require(rig.take().connects.first)
        #expect(connect.direction == .sendonly && connect.source == .screen && connect.user == "me" && !connect.audio)
        #expect(connect.role == .host && rig.urls.count == 2)
        rig.connect(.screen)
        rig.lose(.screen)
        rig.pass(.seconds(1))
        rig.open(.screen)
        let actions = rig.take()
        #expect(actions.connects.map(\.resumeToken) == ["r1"])
        #expect(actions.events.isEmpty, "the main connection tells how the network is")
        rig.connect(.screen)
        _ = rig.take()
        rig.machine.unpublish(.screen, at: rig.now)
        let end = rig.take()
        #expect(end.contains(.stopMedia(.screen)) && end.sent == [.disconnect])
        #expect(rig.machine.nextDeadline == nil, "nothing of it is left")
        // The first screen's connection may still close.
        let (socket, number) = (try #require(rig.sockets[.screen]), rig.machine.lastNumber)
        try rig.machine.publish(.screen, at: rig.now)
        _ = rig.take()
        #expect(try #require(rig.sockets[.screen]).number > socket.number)
        let later = ChannelMachine(Rig.parameters(), after: number, random: { 0.5 })
        #expect(later.lastNumber == number)
    }

    @Test func `a refused screen is a failure of its own`() throws {
        var rig = Rig.joined()
        try rig.machine.publish(.screen, at: rig.now)
        rig.open(.screen)
        rig.close(4490, "PUBLISHERS-FULL-X", .screen)
        let actions = rig.take()
        guard case .failed(let error)? = actions.events.last else {
            Issue.record("the failure is not told")
            return
        }
        #expect(error.message.hasPrefix("The screen is not shared") && actions.contains(.stopMedia(.screen)))
        #expect(rig.machine.status == .connected && !rig.machine.published.contains(.screen))
        // An end of the main connection ends the screen.
        try rig.machine.publish(.screen, at: rig.now)
        rig.open(.screen)
        _ = rig.take()
        rig.close(1000, "KICKED")
        #expect(rig.take().sent == [.disconnect])
    }

    // MARK: Tokens

    @Test func `a new token is used by later connections`() throws {
        var rig = Rig.joined()
        rig.machine.refreshToken("second", call: 1, at: rig.now)
        #expect(rig.take().requests == ["refreshToken access_token=second"])
        refuse(&rig, 1, "TOKEN-INVALID", code: 0x0201_0205)
        #expect(rig.take().result(1)?.failure?.code == 0x0201_0205)
        rig.machine.refreshToken("third", call: 2, at: rig.now)
        answer(&rig, 2, #"{"expires_at":99}"#)
        #expect(rig.take().result(2) == .success(["expires_at": 99]))
        rig.lose()
        rig.pass(.seconds(1))
        rig.open()
        #expect(rig.take().connects.map(\.accessToken) == ["third"])
    }
}
