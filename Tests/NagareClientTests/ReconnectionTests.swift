import Testing

@testable import NagareClient

/// Redirections, losses, silence, and the way back.
@Suite struct ReconnectionTests {
    @Test func `a lost connection is resumed where the place is`() throws {
        var rig = Rig.joined { $0.urls = Rig.urls }
        rig.lose()
        let lost = rig.take()
        #expect(lost.events.map { "\($0)".prefix { $0 != "(" } } == ["connectionStatus"])
        #expect(lost.contains { if case .connection(.end(_, _, keepsPlace: true)) = $0 { true } else { false } })
        #expect(!lost.contains(.stopMedia(.camera)), "the devices stay open")
        rig.pass(.milliseconds(299))
        #expect(rig.urls == [Rig.urls[0]])
        rig.pass(.milliseconds(1))
        #expect(rig.urls == [Rig.urls[0], Rig.urls[0]] && rig.machine.status == .reconnecting)
        rig.open()
        #expect(rig.take().connects.map(\.resumeToken) == ["r1"])
        rig.connect()
        let back = rig.take()
        guard case .joined(let joined)? = back.events.first(where: { if case .joined = $0 { true } else { false } })
        else {
            Issue.record("the return is not told")
            return
        }
        #expect(joined.isReturn && joined.elapsed == .milliseconds(300) && rig.machine.status == .connected)
        // The place may have been kept with another state.
        #expect(back.requests == ["setMuted kind=audio muted=false", "setMuted kind=video muted=false"])
    }

    @Test func `users who left meanwhile are gone, the others stay`() {
        let both =
            #"[{"user_id":"a","connections":[{"connection_id":"A"}]},{"user_id":"b","connections":[{"connection_id":"B"}]}]"#
        var rig = Rig.joined(message: Rig.joinedMessage(users: both))
        rig.lose()
        rig.pass(.seconds(1))
        _ = rig.take()
        rig.connect(message: Rig.joinedMessage(users: #"[{"user_id":"b","connections":[{"connection_id":"B2"}]}]"#))
        let events = rig.events()
        #expect(events.filter { if case .userOnline = $0 { true } else { false } }.isEmpty)
        guard
            case .userOffline(let user, .quit)? = events.first(where: {
                if case .userOffline = $0 { true } else { false }
            })
        else {
            Issue.record("the user who left is still there")
            return
        }
        #expect(user.id == "a" && rig.machine.users.first?.connections.map(\.id) == ["B2"])
    }

    @Test func `the pauses grow to fifteen seconds`() {
        #expect((1...8).map { Backoff.pause(attempt: $0, random: 0.5) }.last == .seconds(15))
        #expect(Backoff.pause(attempt: 2, random: 0.5) == .seconds(0.6))
        #expect(Backoff.pause(attempt: .max, random: 1) == .seconds(18.75))
        #expect(Backoff.crowdPause(random: 0) == .seconds(0.5) && Backoff.crowdPause(random: 1) == .seconds(5))
        var rig = Rig { $0.joinTimeout = nil }
        rig.machine.join(at: rig.now)
        for _ in 0..<20 {
            rig.lose()
            rig.pass((rig.machine.nextDeadline ?? rig.now) - rig.now)
        }
        #expect(rig.urls.count == 21 && rig.take().join == nil && rig.now > .seconds(200) && rig.now < .seconds(250))
    }

    @Test func `a node that does not answer is followed by the next`() {
        var rig = Rig { $0.urls = Rig.urls }
        rig.machine.join(at: rig.now)
        rig.pass(.seconds(4))
        #expect(rig.machine.status == .disconnected)
        rig.pass(.seconds(1))
        #expect(rig.urls == Rig.urls)
        rig.connect()
        #expect(rig.take().join?.isSuccess == true)
    }

    @Test(arguments: [(1001, "SERVER-SHUTDOWN"), (1013, "TRY-AGAIN-LATER")])
    func `a node that stops is followed by the next`(code: Int, reason: String) {
        var rig = Rig.joined { $0.urls = Rig.urls }
        rig.close(code, reason)
        rig.pass(.seconds(3))
        #expect(rig.urls == Rig.urls)
    }

    @Test func `a change of the network ends a pause`() {
        var rig = Rig.joined()
        rig.lose()
        rig.machine.networkChanged(at: rig.now)
        _ = rig.take()
        #expect(rig.urls.count == 2 && rig.machine.status == .reconnecting)
    }

    // MARK: Redirections

    @Test func `a redirection is followed once, and says so`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.say(#"{"type":"redirect","location":"wss://c.example/signaling"}"#)
        rig.open()
        #expect(rig.take().connects.map(\.isRedirected) == [false, true])
        rig.say(#"{"type":"redirect","location":"wss://d.example/signaling"}"#)
        #expect(rig.urls == [Rig.urls[0], "wss://c.example/signaling"])
        rig.connect()
        #expect(rig.take().join?.isSuccess == true)
    }

    @Test func `a client that cannot reach the other node stays at the first`() {
        for isTimeout in [true, false] {
            var rig = Rig()
            rig.machine.join(at: rig.now)
            rig.open()
            rig.say(#"{"type":"redirect","location":"wss://c.example/signaling"}"#)
            if isTimeout { rig.pass(.seconds(15)) } else { rig.lose() }
            _ = rig.take()
            #expect(rig.urls == [Rig.urls[0], "wss://c.example/signaling", Rig.urls[0]])
            rig.open()
            #expect(rig.take().connects.map(\.isRedirected) == [true], "a node keeps a client that says so")
        }
    }

    @Test(arguments: ["https://c.example", "", "wss://", "javascript:1", "ws:/x", "wss:///path"])
    func `a redirection to no node is ignored`(location: String) {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.say(#"{"type":"redirect","location":"\#(location)"}"#)
        #expect(rig.urls.count == 1)
    }

    // MARK: Silence

    @Test func `three missing pings are silence`() {
        var rig = Rig.joined { $0.urls = Rig.urls }
        for _ in 0..<3 {
            rig.pass(.seconds(5))
            rig.say(#"{"type":"ping"}"#)
        }
        #expect(rig.sent() == Array(repeating: .pong(statistics: nil), count: 3))
        rig.pass(.milliseconds(14_999))
        #expect(rig.machine.status == .connected)
        rig.pass(.milliseconds(1))
        #expect(rig.machine.status == .disconnected)
        guard case .connectionStatus(_, let failure)? = rig.events().first else {
            Issue.record("the silence is not told")
            return
        }
        #expect(failure?.reason == "SIGNALING-SILENT" && failure?.code == 0x0102_020C)
        rig.pass(.seconds(1))
        #expect(rig.urls == Rig.urls, "another node may not be silent")
    }

    @Test func `a node that pings seldom has more time`() {
        var rig = Rig.joined()
        for _ in 0..<2 {
            rig.pass(.seconds(14))
            rig.say(#"{"type":"ping","stats":true}"#)
        }
        #expect(rig.take().contains { if case .connection(.sendStatistics) = $0 { true } else { false } })
        rig.pass(.seconds(41))
        #expect(rig.machine.status == .connected)
        rig.pass(.seconds(1))
        #expect(rig.machine.status == .disconnected)
    }

    @Test func `a short loss of the media is no reconnection`() {
        var rig = Rig.joined()
        rig.media(.stateChanged(.disconnected))
        #expect(rig.machine.status == .disconnected)
        rig.pass(.milliseconds(1_900))
        rig.media(.stateChanged(.connected))
        #expect(rig.machine.status == .connected)
        rig.say(#"{"type":"response","id":"1","result":{}}"#)
        rig.pass(.seconds(10))
        #expect(rig.urls.count == 1)
    }

    @Test(arguments: [true, false])
    func `media that stays away ends the connection`(answers: Bool) {
        var rig = Rig.joined { $0.urls = Rig.urls }
        rig.media(.stateChanged(.disconnected))
        #expect(rig.take().requests == ["statistics "])
        rig.pass(.milliseconds(500))
        if answers { rig.say(#"{"type":"response","id":"1","result":{}}"#) }
        rig.pass(.milliseconds(1_500))
        rig.pass(.seconds(1))
        // A node that does not answer either hangs.
        #expect(rig.urls == [Rig.urls[0], Rig.urls[answers ? 0 : 1]])
    }

    @Test func `a network that changed is found dead by an unanswered question`() {
        var rig = Rig.joined()
        rig.machine.networkChanged(at: rig.now)
        rig.pass(.seconds(2))
        #expect(rig.machine.status == .connected)
        rig.pass(.seconds(1))
        #expect(rig.machine.status == .disconnected)
        var living = Rig.joined()
        living.machine.networkChanged(at: living.now)
        living.pass(.seconds(1))
        living.say(#"{"type":"response","id":"1","error":{"reason":"NOT-JOINED"}}"#)
        living.pass(.seconds(10))
        #expect(living.machine.status == .connected)
    }

    @Test(arguments: [
        ("MEDIA-UNREACHABLE", [Rig.offer], 15), ("UNSUPPORTED", [Rig.offer, Rig.created], 5),
        ("UNREACHABLE", [], 15),
    ])
    func `each step of joining has its time`(reason: String, messages: [String], seconds: Int) {
        var rig = Rig { $0.joinTimeout = nil }
        rig.machine.join(at: rig.now)
        rig.open()
        for message in messages { rig.say(message) }
        rig.pass(.milliseconds(seconds * 1_000 - 1))
        #expect(rig.machine.status == .connecting)
        rig.pass(.milliseconds(1))
        guard case .connectionStatus(let status, let failure)? = rig.events().last else {
            Issue.record("the failure is not told")
            return
        }
        #expect(failure?.reason == reason && status == (reason == "UNSUPPORTED" ? .failed : .disconnected))
    }

    /// A node that ends a member closes both, and its media is often faster.
    @Test(arguments: ["TOKEN-EXPIRED", "KICKED"])
    func `the close says why the media failed`(reason: String) {
        var rig = Rig.joined()
        rig.media(.stateChanged(.failed))
        rig.media(.stateChanged(.connected))
        rig.pass(.milliseconds(400))
        rig.close(1000, reason)
        let events = rig.events()
        #expect(rig.machine.isOver && rig.urls.count == 1)
        switch events.last {
        case .tokenExpired(let error), .bye(.kicked, let error): #expect(error.reason == reason)
        default: Issue.record("the reason is not told")
        }
    }

    @Test func `failed media ends a session, with its code`() {
        for isJoined in [true, false] {
            var rig = isJoined ? Rig.joined() : Rig()
            if !isJoined {
                rig.machine.join(at: rig.now)
                rig.open()
                rig.say(Rig.offer)
            }
            rig.media(.stateChanged(.failed))
            rig.pass(.milliseconds(isJoined ? 500 : 0))
            #expect(rig.machine.nextDeadline == rig.now + .milliseconds(300), "it connects again")
            guard case .connectionStatus(.disconnected, let failure)? = rig.events().last else {
                Issue.record("the failure is not told")
                return
            }
            #expect(failure?.code == (isJoined ? 0x0105_0202 : 0x0105_0201))
        }
    }
}
