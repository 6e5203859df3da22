import JSON
import Room
import Synchronization
import Testing
import Wire

@testable import Signaling

/// One client of the Ayame protocol in virtual time.
private struct Client {
    var session: AyameSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    private(set) var actions: [AyameSession.Action] = []

    init() { session = AyameSession(configuration: AyameConfiguration(), at: now) }

    mutating func receive(_ text: String) { actions = session.received(text, at: now) }
    mutating func admit(_ decision: AyameDecision) { actions = session.admitted(decision) }

    /// Registers and is admitted.
    mutating func join(_ members: String = "") {
        receive(#"{"type":"register","roomId":"r"\#(members)}"#)
        admit(.allowed(connectionID: "c", AyameAcceptance()))
    }

    /// Moves the time, and performs what is due.
    mutating func pass(_ interval: Interval) -> [AyameSession.Action] {
        let end = now + interval
        var actions: [AyameSession.Action] = []
        while let deadline = session.nextDeadline, deadline <= end {
            now = max(now, deadline)
            actions += session.handleTimeout(at: now)
        }
        now = end
        return actions
    }

    var isAuthorizing: Bool {
        if case .authorize = actions.first { true } else { false }
    }
    var hasJoined: Bool {
        if case .join = actions.first { true } else { false }
    }
    var relayed: String? {
        if case .relay(let text) = actions.first { text } else { nil }
    }
    var sent: String? {
        if case .send(let text) = actions.first { text } else { nil }
    }
    var close: AyameClose? { Self.close(actions) }
    static func close(_ actions: [AyameSession.Action]) -> AyameClose? {
        for case .close(let close) in actions { return close }
        return nil
    }
    static func pings(_ actions: [AyameSession.Action]) -> Int {
        actions.count { if case .send(AyameServerMessage.ping) = $0 { true } else { false } }
    }
}

@Suite struct AyameSessionTests {
    @Test func `a client registers, is admitted and joins, and its descriptions pass unchanged`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r","clientId":"me","key":"k","authnMetadata":{"a":1}}"#)
        #expect(client.isAuthorizing)
        #expect(client.session.registration?.signalingKey == "k" && client.session.registration?.clientID == "me")
        #expect(client.session.registration?.metadata == ["a": 1])
        client.admit(.allowed(connectionID: "c", AyameAcceptance()))
        #expect(client.hasJoined)
        for type in ["offer", "answer", "candidate"] {
            let text = #"{ "type" : "\#(type)", "sdp":"v=0\r\n", "unknown":[null] }"#
            client.receive(text)
            #expect(client.relayed == text)
        }
        client.receive(#"{"type":"pong"}"#)
        #expect(client.actions.isEmpty)
    }

    @Test(arguments: [
        ("", "INVALID-JSON"), ("[", "INVALID-JSON"), ("null", "INVALID-MESSAGE"), ("[]", "INVALID-MESSAGE"),
        (#"{"type":7}"#, "INVALID-MESSAGE"), (#"{"type":"nonsense"}"#, "UNKNOWN-TYPE"), (#"{"type":"bye"}"#, "BYE"),
        (#"{"type":"register"}"#, "INVALID-REGISTER"), (#"{"type":"register","roomId":""}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":5}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":"a\nb"}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":"r","clientId":"\u0000"}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":"r","standalone":"yes"}"#, "INVALID-REGISTER"),
        (#"{"type":"offer","sdp":""}"#, "NOT-REGISTERED"), (#"{"type":"answer","sdp":""}"#, "NOT-REGISTERED"),
        (#"{"type":"candidate","ice":{}}"#, "NOT-REGISTERED"), (#"{"type":"connected"}"#, "NOT-REGISTERED"),
    ])
    func `a wrong first message closes with code 1000 and without a reject`(text: String, reason: String) {
        var client = Client()
        client.receive(text)
        #expect(client.close?.close == WebSocketClose(1000, reason))
        #expect(client.sent == nil && client.session.nextDeadline == nil)
    }

    @Test func `a name or key that is too long is refused`() {
        for (name, count) in [("roomId", 256), ("clientId", 256), ("signalingKey", 8_193), ("key", 8_193)] {
            var client = Client()
            let value = String(repeating: "x", count: count)
            client.receive(#"{"type":"register","roomId":"r","\#(name)":"\#(value)"}"#)
            #expect(client.close?.close.reason == "INVALID-REGISTER", "\(name)")
        }
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r","ayameClient":"\#(String(repeating: " ", count: 200_000))"}"#)
        #expect(client.close?.close.reason == "TOO-LONG")
    }

    @Test func `a second register closes, also during the admission`() {
        var client = Client()
        client.join()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        #expect(client.close == .registeredTwice)
        client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.receive(#"{"type":"register","roomId":"r"}"#)
        #expect(client.close == .registeredTwice)
        client.admit(.allowed(connectionID: "c", AyameAcceptance()))
        #expect(client.actions.isEmpty, "a decision that comes late")
    }

    @Test func `a rejected client gets the reason, and so does one in a full room`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.admit(.rejected(reason: "not \"you\""))
        #expect(client.sent == #"{"reason":"not \"you\"","type":"reject"}"#)
        #expect(client.close?.close.code == 1000)
        client = Client()
        client.join()
        let actions = client.session.refusedAsFull()
        guard case .send(let text) = actions.first else {
            Issue.record("nothing was sent")
            return
        }
        #expect(text == #"{"reason":"full","type":"reject"}"#)
        #expect(Client.close(actions) != nil)
    }

    @Test func `pings go out every 5 s from the start, and silence of 60 s ends the connection`() {
        var client = Client()
        #expect(Client.pings(client.pass(.seconds(14))) == 2)
        client.join()
        #expect(Client.pings(client.pass(.seconds(56))) == 12)
        client.receive(#"{"type":"pong"}"#)
        let actions = client.pass(.seconds(60))
        #expect(Client.close(actions) == .pongTimeout)
        #expect(Client.pings(actions) <= 12)
    }

    @Test func `a client has 30 s to register`() {
        var client = Client()
        #expect(Client.close(client.pass(.milliseconds(29_999))) == nil)
        #expect(Client.close(client.pass(.milliseconds(1))) == .registerTimeout)
    }

    @Test func `an admission without a decision ends in a reject`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        var actions: [AyameSession.Action] = []
        for _ in 0..<16 {
            client.receive(#"{"type":"pong"}"#)
            actions += client.pass(.seconds(5))
        }
        #expect(Client.close(actions)?.close.reason == "REJECTED")
    }

    @Test func `a standalone client gets no pings, may be silent, and leaves once it is connected`() {
        var client = Client()
        client.join(#","standalone":true"#)
        #expect(client.pass(.seconds(3_600)).isEmpty)
        client.receive(#"{"type":"connected"}"#)
        #expect(client.close == .connected)
        client = Client()
        client.join()
        client.receive(#"{"type":"connected"}"#)
        #expect(client.actions.isEmpty, "other clients stay")
    }

    @Test func `a flood of messages ends the connection`() {
        var client = Client()
        client.join()
        var count = 0
        while client.close == nil, count < 100_000 {
            client.receive(#"{"type":"candidate","ice":{}}"#)
            count += 1
        }
        #expect(client.close == .tooManyMessages)
        #expect(count < 2_000)
    }
}

/// Rooms with recorded clients.
private final class Recorder: Sendable {
    private let texts = Mutex<[String]>([])
    private let closes = Mutex<[AyameClose]>([])
    var sent: [String] { texts.withLock { $0 } }
    var closed: [AyameClose] { closes.withLock { $0 } }

    func member(_ id: String, _ registration: String = "", standalone: Bool = false) throws -> AyameRooms.Member {
        let fields = try JSONFields(JSONValue(parsing: #"{"roomId":"r"\#(registration)}"#))
        return AyameRooms.Member(
            connectionID: id,
            identity: AyameRooms.Identity(try AyameRegistration(fields)),
            isStandalone: standalone,
            send: { text in self.texts.withLock { $0.append(text) } },
            close: { close in self.closes.withLock { $0.append(close) } }
        )
    }
}

@Suite struct AyameRoomsTests {
    private let rooms = AyameRooms()
    private let clients = (0..<3).map { _ in Recorder() }

    private func join(_ member: AyameRooms.Member) throws -> Bool? {
        var answer: Bool?
        let isIn = rooms.join(try #require(.init("r")), member) { answer = $0 }
        #expect(isIn == (answer != nil))
        return answer
    }

    @Test func `the second client has a partner, the third finds the room full and disturbs nobody`() throws {
        #expect(try join(clients[0].member("a")) == false)
        #expect(try join(clients[1].member("b")) == true)
        #expect(try join(clients[2].member("c")) == nil)
        #expect(rooms.relay("x", in: try #require(.init("r")), from: "a"))
        #expect(!rooms.relay("y", in: try #require(.init("r")), from: "c"), "a client outside the room reaches nobody")
        #expect(clients.map(\.sent) == [[], ["x"], []] && clients.allSatisfy(\.closed.isEmpty))
    }

    @Test func `a message to nobody is dropped`() throws {
        #expect(try join(clients[0].member("a")) == false)
        #expect(!rooms.relay("x", in: try #require(.init("r")), from: "a"))
        #expect(try join(clients[1].member("b")) == true)
        #expect(clients[1].sent.isEmpty)
    }

    @Test func `a room ends for both members when one leaves`() throws {
        let room = try #require(ChannelName("r"))
        _ = try join(clients[0].member("a"))
        _ = try join(clients[1].member("b"))
        rooms.leave(room, "c")
        #expect(rooms.count == 1)
        rooms.leave(room, "a")
        #expect(rooms.count == 0)
        #expect(clients[1].sent == [AyameServerMessage.bye] && clients[1].closed == [.bye])
        #expect(clients[0].sent.isEmpty && clients[0].closed.isEmpty)
        rooms.leave(room, "b")
        #expect(try join(clients[2].member("d")) == false, "a new room")
    }

    @Test func `a standalone member gets no bye`() throws {
        _ = try join(clients[0].member("a"))
        _ = try join(clients[1].member("b", standalone: true))
        rooms.leave(try #require(ChannelName("r")), "a")
        #expect(clients[1].sent.isEmpty && clients[1].closed == [.bye])
    }

    @Test func `a client with the same name and key takes its place over, without a key it does not`() throws {
        let own = #","clientId":"me","signalingKey":"k""#
        _ = try join(clients[0].member("a", own))
        _ = try join(clients[1].member("b", #","clientId":"other","signalingKey":"k""#))
        #expect(try join(clients[2].member("c", #","clientId":"me","signalingKey":"wrong""#)) == nil)
        #expect(try join(clients[2].member("c", #","clientId":"me""#)) == nil)
        #expect(try join(clients[2].member("c", own)) == false)
        #expect(clients[0].closed == [.replaced] && clients[0].sent.isEmpty)
        #expect(clients[1].closed == [.bye] && clients[1].sent == [AyameServerMessage.bye])
    }
}
