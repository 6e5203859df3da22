import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Synchronization
import Testing

@testable import Ayame
@testable import Web

/// One client of the Ayame protocol in virtual time.
private struct Client {
    var session: AyameSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    private(set) var actions: [AyameSession.Action] = []

    init() { session = AyameSession(configuration: AyameConfiguration(), at: now) }

    mutating func receive(_ text: String) { actions = session.received(text, at: now) }
    mutating func admit(_ decision: AyameDecision) { actions = session.admitted(decision) }

    /// Registers, is admitted and joins a room.
    mutating func join(_ members: String = "", _ media: CallMedia = .direct, lifetime: Interval? = nil) {
        receive(#"{"type":"register","roomId":"r"\#(members)}"#)
        admit(.allowed(AyamePermission(connectionID: "c")))
        _ = session.joined(media, lifetime: lifetime, at: now)
    }

    /// Joins a room whose media passes the node, and offers.
    mutating func call(_ members: String = "") {
        join(members, .server)
        receive(#"{"type":"offer","sdp":"v=0"}"#)
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
    static func isCheck(_ action: AyameSession.Action) -> Bool { if case .checkExpiry = action { true } else { false } }
    static func isWarning(_ action: AyameSession.Action) -> Bool { if case .warn = action { true } else { false } }
    static func leaves(_ actions: [AyameSession.Action]) -> Bool {
        actions.contains { if case .leave = $0 { true } else { false } }
    }
    /// The sent texts except pings.
    static func sent(_ actions: [AyameSession.Action]) -> [String] {
        actions.compactMap { if case .send(let text) = $0, text != AyameServerMessage.ping { text } else { nil } }
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
        #expect(
            client.session.registration?.credentials.signalingKey == "k"
                && client.session.registration?.clientID == "me"
        )
        #expect(client.session.registration?.credentials.metadata == ["a": 1])
        client.admit(.allowed(AyamePermission(connectionID: "c")))
        #expect(client.hasJoined)
        #expect(client.session.joined(.direct, at: client.now).isEmpty)
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
        (#"{"type":"register","roomId":"."}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":".."}"#, "INVALID-REGISTER"),
        (#"{"type":"register","roomId":" "}"#, "INVALID-REGISTER"),
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
        client.admit(.allowed(AyamePermission(connectionID: "c")))
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
        let actions = client.session.refused("full")
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

    // MARK: The end of a permission

    @Test func `a registration ends when its token expires, with a bye and the reason`() {
        var client = Client()
        client.join()
        #expect(client.session.expires(in: .seconds(12), at: client.now).isEmpty)
        let early = client.pass(.milliseconds(11_999))
        #expect(Client.close(early) == nil && !early.contains { Client.isCheck($0) })
        #expect(client.pass(.milliseconds(1)).contains { Client.isCheck($0) })
        // The real-time clock was set back meanwhile.
        #expect(client.session.expires(in: .seconds(3), at: client.now).isEmpty)
        #expect(client.pass(.seconds(3)).contains { Client.isCheck($0) })
        let actions = client.session.expires(in: .zero, at: client.now)
        #expect(Client.sent(actions) == [AyameServerMessage.bye])
        #expect(Client.close(actions)?.close == WebSocketClose(1000, "TOKEN-EXPIRED"))
        #expect(Client.leaves(actions) && client.session.nextDeadline == nil)
    }

    @Test func `a standalone client's registration expires too, without a bye`() {
        var client = Client()
        client.join(#","standalone":true"#)
        _ = client.session.expires(in: .seconds(100), at: client.now)
        #expect(client.pass(.seconds(100)).contains { Client.isCheck($0) })
        let actions = client.session.expires(in: .zero, at: client.now)
        #expect(Client.sent(actions).isEmpty && Client.close(actions) == .tokenExpired)
    }

    @Test func `a registration ends with its lifetime, however far away the expiry is`() {
        var client = Client()
        client.join(#","standalone":true"#, lifetime: .seconds(60))
        _ = client.session.expires(in: Interval(nanoseconds: .max), at: client.now)
        #expect(client.pass(.milliseconds(59_999)).isEmpty)
        #expect(Client.close(client.pass(.milliseconds(1))) == .lifetimeExpired)
    }

    @Test func `a client is warned once before its permission ends, and again before a later end`() {
        var client = Client()
        client.join()
        _ = client.session.expires(in: .seconds(50), at: client.now)
        #expect(!client.pass(.milliseconds(19_999)).contains { Client.isWarning($0) })
        #expect(client.pass(.milliseconds(1)).contains { Client.isWarning($0) })
        // The real-time clock was set back meanwhile.
        _ = client.session.expires(in: .seconds(40), at: client.now)
        #expect(!client.pass(.seconds(35)).contains { Client.isWarning($0) })
        client.receive(#"{"type":"pong"}"#)
        client.session.permissionExtended()
        _ = client.session.expires(in: .seconds(50), at: client.now)
        let later = client.pass(.seconds(49))
        client.receive(#"{"type":"pong"}"#)
        #expect(later.count { Client.isWarning($0) } == 1 && !later.contains { Client.isCheck($0) })
        // Nobody decided: it is asked again in a moment.
        client.session.warningFailed(at: client.now)
        #expect(!client.pass(.milliseconds(999)).contains { Client.isWarning($0) || Client.isCheck($0) })
        client.session.permissionExtended()
        // A permission that is extended for a few seconds at a time is no reason to ask at any rate.
        for _ in 0..<3 {
            _ = client.session.expires(in: .seconds(20), at: client.now)
            #expect(client.pass(.seconds(5)).count { Client.isWarning($0) } <= 1)
            client.session.permissionExtended()
        }
        client.receive(#"{"type":"pong"}"#)
        client.session.permissionExtended()
        #expect(!client.pass(.seconds(50)).contains { Client.isCheck($0) || Client.isWarning($0) }, "it has no end now")
    }

    @Test func `a new token is presented while the client is in its room, one at a time`() throws {
        var client = Client()
        client.receive(#"{"type":"refresh","signalingKey":"new"}"#)
        #expect(client.close == .notRegistered)
        client = Client()
        client.join()
        client.receive(#"{"type":"refresh","key":"new","authnMetadata":{"a":1}}"#)
        guard case .refresh(let credentials) = client.actions.first else {
            Issue.record("not presented")
            return
        }
        #expect(credentials.signalingKey == "new" && credentials.metadata == ["a": 1] && client.close == nil)
        #expect(Client.sent(client.session.refreshed(.success(9))) == [#"{"expiresAt":9,"type":"refreshed"}"#])
        client.receive(#"{"type":"refresh"}"#)
        let refusal = Client.sent(client.session.refreshed(.failure(AyameRefusal("no"))))
        #expect(refusal == [#"{"reason":"no","type":"refreshed"}"#])
        client.receive(#"{"type":"refresh"}"#)
        client.receive(#"{"type":"refresh"}"#)
        #expect(client.close == .refreshedAgain)
        client = Client()
        client.join()
        client.receive(#"{"type":"refresh","signalingKey":7}"#)
        #expect(client.close?.close.reason == "INVALID-MESSAGE")
    }

    // MARK: While the room answers

    @Test func `what a client sends before its node knows that it joined is passed on in order`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.admit(.allowed(AyamePermission(connectionID: "c")))
        let texts = [#"{"type":"offer","sdp":"v=0"}"#, #"{"type":"candidate","ice":{}}"#]
        for text in texts + [#"{"type":"pong"}"#] {
            client.receive(text)
            #expect(client.actions.isEmpty)
        }
        let relayed = client.session.joined(.direct, at: client.now).compactMap { action in
            if case .relay(let text) = action { text } else { nil }
        }
        #expect(relayed == texts)
        #expect(client.session.joined(.direct, at: client.now).isEmpty)
        client.receive(texts[0])
        #expect(client.relayed == texts[0])
    }

    @Test func `an offer that waited is negotiated in a room whose media passes the node`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.admit(.allowed(AyamePermission(connectionID: "c")))
        for _ in 0..<2 { client.receive(#"{"type":"offer","sdp":"v=0"}"#) }
        let actions = client.session.joined(.server, at: client.now)
        guard case .negotiate("v=0") = actions.first else {
            Issue.record("the offer is not negotiated")
            return
        }
        #expect(Client.close(actions) == .offeredAgain && client.session.hasEnded)
    }

    @Test(arguments: [#"{"type":"bye"}"#, nil] as [String?])
    func `a client that leaves while the room answers has left`(text: String?) {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.admit(.allowed(AyamePermission(connectionID: "c")))
        let actions = text.map { client.session.received($0, at: client.now) } ?? client.session.socketClosed()
        #expect(Client.leaves(actions) && client.session.hasEnded)
        #expect(client.session.joined(.direct, at: client.now).isEmpty)
        #expect(client.session.refused("full").isEmpty)
    }

    @Test func `a client cannot send without end while the room answers`() {
        var client = Client()
        client.receive(#"{"type":"register","roomId":"r"}"#)
        client.admit(.allowed(AyamePermission(connectionID: "c")))
        for _ in 0..<257 {
            #expect(client.close == nil)
            client.receive(#"{"type":"candidate","ice":{}}"#)
        }
        #expect(client.close == .tooManyMessages)
    }

    // MARK: Media through the node

    @Test func `the node answers an offer, and needs no candidates`() {
        var client = Client()
        client.call()
        guard case .negotiate("v=0") = client.actions.first else {
            Issue.record("the offer is not negotiated")
            return
        }
        client.receive(#"{"type":"candidate","ice":{}}"#)
        #expect(client.actions.isEmpty)
        client.receive(#"{"type":"answer","sdp":"v=0"}"#)
        #expect(client.actions.isEmpty)
        let actions = client.session.answered(.success("a=b"))
        #expect(Client.sent(actions) == [#"{"sdp":"a=b","type":"answer"}"#])
    }

    @Test(arguments: [(#"{"type":"offer","sdp":"v=0"}"#, "OFFERED-AGAIN"), (#"{"type":"offer"}"#, "OFFERED-AGAIN")])
    func `an offer before the answer to the one before ends the connection`(text: String, reason: String) {
        var client = Client()
        client.call()
        client.receive(text)
        #expect(client.close?.close.reason == reason)
        #expect(client.session.answered(.success("late")).isEmpty)
    }

    @Test func `an offer after the answer is answered, too`() {
        var client = Client()
        client.call()
        for number in 0..<3 {
            #expect(Client.sent(client.session.answered(.success("\(number)"))).count == 1)
            client.receive(#"{"type":"offer","sdp":"v=1"}"#)
            guard case .negotiate("v=1") = client.actions.first else {
                Issue.record("offer \(number) is not negotiated")
                return
            }
        }
        let actions = client.session.answered(.failure(AyameRefusal("no")))
        #expect(Client.close(actions)?.close.reason == "REJECTED")
    }

    @Test func `an offer without a description ends the connection`() {
        var client = Client()
        client.join("", .server)
        client.receive(#"{"type":"offer","sdp":7}"#)
        #expect(client.close == .offerMissing)
    }

    @Test func `a refused offer is rejected with the reason`() {
        var client = Client()
        client.call()
        let actions = client.session.answered(.failure(AyameRefusal(.appPublishersFull)))
        #expect(Client.sent(actions) == [#"{"reason":"PUBLISHERS-FULL","type":"reject"}"#])
        #expect(Client.close(actions)?.close.reason == "REJECTED")
    }

    @Test(arguments: [
        (EndReason.kicked, "KICKED"), (.banned, "BANNED"), (.tokenExpired, "TOKEN-EXPIRED"),
        (.channelTerminated, "CHANNEL-TERMINATED"), (.transport(.consentExpired), "ICE-CONNECTION-STATE-FAILED"),
    ])
    func `the end of the media ends the call with its reason`(end: EndReason, reason: String) {
        var client = Client()
        client.call()
        _ = client.session.answered(.success("v=0"))
        let actions = client.session.mediaEnded(end)
        #expect(Client.sent(actions) == [AyameServerMessage.bye])
        #expect(Client.close(actions)?.close == WebSocketClose(1000, reason))
    }

    @Test func `a standalone client whose media passes the node stays in the room without signaling`() {
        var client = Client()
        client.call(#","standalone":true"#)
        _ = client.session.answered(.success("v=0"))
        client.receive(#"{"type":"connected"}"#)
        #expect(client.close == .connected && !Client.leaves(client.actions))
        #expect(client.session.socketClosed().isEmpty)
        client = Client()
        client.call(#","standalone":true"#)
        client.receive(#"{"type":"connected"}"#)
        #expect(Client.leaves(client.actions), "nothing was answered yet")
    }

    @Test(arguments: [
        (RoomError.nodeFull, "InternalServerError"), (.channelFull, "full"), (.banned(untilUnixSeconds: nil), "BANNED"),
        (.streamBlocked(untilUnixSeconds: nil), "STREAM-BLOCKED"), (.media("x"), "InternalServerError"),
        (.userPresent, "DUPLICATED-CHANNEL-ID"), (.appMismatch, "CHANNEL-OF-OTHER-APP"),
    ])
    func `a refusal by the rooms has a reason`(error: RoomError, reason: String) {
        #expect(AyameRefusal(error).reason == reason)
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

/// Channels with recorded clients.
private final class Recorder: Sendable {
    private let texts = Mutex<[String]>([])
    private let closes = Mutex<[AyameClose]>([])
    private let accepts = Mutex<[AyameRooms.Notice]>([])
    var accepted: [AyameRooms.Notice] { accepts.withLock { $0 } }
    var sent: [String] { texts.withLock { $0 } }
    var closed: [AyameClose] { closes.withLock { $0 } }

    func member(
        _ id: String,
        _ registration: String = "",
        standalone: Bool = false,
        user: String? = nil,
        app: String? = nil
    ) throws -> AyameRooms.Member {
        let fields = try JSONFields(JSONValue(parsing: #"{"roomId":"r"\#(registration)}"#))
        return AyameRooms.Member(
            connectionID: id,
            identity: AyameRooms.Identity(try AyameRegistration(fields)),
            isStandalone: standalone,
            user: user ?? id,
            app: app,
            registeredAt: 0,
            origin: .here { notice in
                switch notice {
                case .accepted: self.accepts.withLock { $0.append(notice) }
                case .text(let text): self.texts.withLock { $0.append(text) }
                case .ended(let close): self.closes.withLock { $0.append(close) }
                }
            }
        )
    }
}

@Suite struct AyameRoomsTests {
    private let room = ChannelName("r")!
    private var rooms = AyameRooms()
    private let clients = (0..<3).map { _ in Recorder() }

    /// Tells the clients.
    private func perform(_ effects: [AyameRooms.Effect]) {
        for case .tell(let member, let notice) in effects {
            if case .here(let tell) = member.origin { tell(notice) }
        }
    }

    private mutating func join(
        _ member: AyameRooms.Member,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false
    ) -> AyameRooms.Answer {
        let (answer, effects) = rooms.join(room, member, media: media, isMediaRequired: isMediaRequired)
        perform(effects)
        return answer
    }

    /// - Returns: whether there is another member; `nil` for a client that is not in the room.
    private mutating func join(_ number: Int, _ member: AyameRooms.Member) -> Bool? {
        let before = clients[number].accepted.count
        let answer: AyameRooms.Answer = join(member)
        let isIn = clients[number].accepted.count > before
        #expect(answer == (isIn ? .joined(.direct) : .full))
        guard isIn, case .accepted(let hasPartner, .direct, nil) = clients[number].accepted.last else { return nil }
        return hasPartner
    }

    private mutating func leave(_ id: String) { perform(rooms.leave(room, id)) }

    @Test func `the second client has a partner, the third finds the room full and disturbs nobody`() async throws {
        let calls = AyameCalls()
        #expect(await calls.join(room, try clients[0].member("a")) == .joined(.direct))
        #expect(await calls.join(room, try clients[1].member("b")) == .joined(.direct))
        #expect(await calls.join(room, try clients[2].member("c")) == .full)
        #expect(clients[0].accepted == [.accepted(hasPartner: false, media: .direct)])
        #expect(clients[1].accepted == [.accepted(hasPartner: true, media: .direct)])
        #expect(await calls.relay("x", in: room, from: "a"))
        #expect(await !calls.relay("y", in: room, from: "c"), "a client outside the room reaches nobody")
        #expect(clients.map(\.sent) == [[], ["x"], []] && clients.allSatisfy(\.closed.isEmpty))
    }

    @Test func `a message to nobody is dropped`() async throws {
        let calls = AyameCalls()
        #expect(await calls.join(room, try clients[0].member("a")) == .joined(.direct))
        #expect(await !calls.relay("x", in: room, from: "a"))
        #expect(await calls.join(room, try clients[1].member("b")) == .joined(.direct))
        #expect(clients[1].sent.isEmpty)
    }

    @Test mutating func `a room ends for both members when one leaves`() throws {
        _ = try join(0, clients[0].member("a"))
        _ = try join(1, clients[1].member("b"))
        leave("c")
        #expect(rooms.count == 1)
        leave("a")
        #expect(rooms.count == 0)
        #expect(clients[1].sent == [AyameServerMessage.bye] && clients[1].closed == [.bye])
        #expect(clients[0].sent.isEmpty && clients[0].closed.isEmpty)
        leave("b")
        #expect(try join(2, clients[2].member("d")) == false, "a new room")
    }

    @Test mutating func `a standalone member gets no bye`() throws {
        _ = try join(0, clients[0].member("a"))
        _ = try join(1, clients[1].member("b", standalone: true))
        leave("a")
        #expect(clients[1].sent.isEmpty && clients[1].closed == [.bye])
    }

    @Test mutating func `a client with the same name and key takes its place over, without a key it does not`() throws {
        let own = #","clientId":"me","signalingKey":"k""#
        _ = try join(0, clients[0].member("a", own))
        _ = try join(1, clients[1].member("b", #","clientId":"other","signalingKey":"k""#))
        #expect(try join(2, clients[2].member("c", #","clientId":"me","signalingKey":"wrong""#)) == nil)
        #expect(try join(2, clients[2].member("c", #","clientId":"me""#)) == nil)
        #expect(try join(2, clients[2].member("c", own)) == false)
        #expect(clients[0].closed == [.replaced] && clients[0].sent.isEmpty)
        #expect(clients[1].closed == [.bye] && clients[1].sent == [AyameServerMessage.bye])
    }

    // MARK: Operators

    @Test(arguments: [
        (OperatorDecision.blocked(Block(.user("eve"))), ["a"], "BANNED"),
        (.blocked(Block(.member("eve", of: ChannelName("r")!))), ["a"], "BANNED"),
        (.blocked(Block(.stream(ChannelName("r")!))), ["a", "b"], "STREAM-BLOCKED"),
        (.kicked("eve", from: ChannelName("r")!), ["a"], "KICKED"),
        (.kicked("b", from: ChannelName("r")!), ["b"], "KICKED"),
        (.terminated(ChannelName("r")!), ["a", "b"], "CHANNEL-TERMINATED"),
        (.blocked(Block(.user("mallory"))), [], ""), (.blocked(Block(.member("eve", of: ChannelName("s")!))), [], ""),
        (.blocked(Block(.stream(ChannelName("s")!))), [], ""), (.kicked("eve", from: ChannelName("s")!), [], ""),
        (.kicked("mallory", from: ChannelName("r")!), [], ""), (.terminated(ChannelName("s")!), [], ""),
    ])
    mutating func `an operator's decision ends the registrations that it is about, and their rooms`(
        decision: OperatorDecision,
        ended: [String],
        reason: String
    ) throws {
        _ = try join(0, clients[0].member("a", user: "eve"))
        _ = try join(1, clients[1].member("b"))
        let (ids, effects) = rooms.end(by: decision)
        perform(effects)
        #expect(ids == ended)
        #expect(rooms.count == (ended.isEmpty ? 1 : 0))
        for (client, id) in zip(clients, ["a", "b"]) {
            let expected = ended.isEmpty ? [] : [ended.contains(id) ? reason : "BYE"]
            #expect(client.closed.map(\.close.reason) == expected)
            #expect(client.sent == (ended.isEmpty ? [] : [AyameServerMessage.bye]))
        }
    }

    @Test mutating func `rooms are listed with their members`() throws {
        #expect(rooms.listings.isEmpty && rooms.listing(of: room) == nil)
        _ = try join(0, clients[0].member("a", user: "eve", app: "live"))
        _ = try join(1, clients[1].member("b", standalone: true))
        let listing = try #require(rooms.listing(of: room))
        #expect(rooms.listings.map(\.room) == [room] && listing.media == .direct && listing.app == "live")
        #expect(listing.registrations.map(\.user) == ["eve", "b"])
        #expect(listing.registrations.map(\.connectionID) == ["a", "b"])
        #expect(listing.registrations.map(\.isStandalone) == [false, true])
    }

    // MARK: Apps

    @Test(
        arguments: [
            ("one", "one", true), ("one", "two", false), (nil, "two", true), ("one", nil, true), (nil, nil, true),
        ] as [(String?, String?, Bool)]
    )
    mutating func `clients of two apps do not meet in a room`(first: String?, second: String?, isIn: Bool) throws {
        _ = try join(0, clients[0].member("a", app: first))
        let answer: AyameRooms.Answer = join(try clients[1].member("b", app: second))
        #expect(answer == (isIn ? .joined(.direct) : .refused(.appMismatch)))
        #expect(clients[0].closed.isEmpty && rooms.listing(of: room)?.app == first ?? second)
        leave("a")
        let next: AyameRooms.Answer = join(try clients[2].member("c", app: "three"))
        #expect(next == .joined(.direct), "the room is over, and with it its app")
    }

    @Test func `a blocked client does not replace itself in a room`() async throws {
        let calls = AyameCalls()
        let identity = #","clientId":"me","key":"k""#
        #expect(await calls.join(room, try clients[0].member("a", identity)) == .joined(.direct))
        let ban = RoomError.banned(untilUnixSeconds: nil)
        #expect(await calls.join(room, try clients[1].member("b", identity), refusal: { ban }) == .refused(ban))
        #expect(await calls.rooms.count == 1 && clients[0].closed.isEmpty && clients[1].accepted.isEmpty)
    }

    // MARK: The path of the media

    @Test(arguments: [
        (CallMedia.direct, CallMedia.server, false, AyameRooms.Answer.joined(.direct)),
        (.server, .direct, false, .joined(.server)), (.server, .server, true, .joined(.server)),
        (.direct, .server, true, .otherMedia), (.server, .direct, true, .otherMedia),
    ])
    mutating func `the first member decides, unless an operator requires something else for the second`(
        first: CallMedia,
        second: CallMedia,
        isRequired: Bool,
        answer: AyameRooms.Answer
    ) throws {
        let one: AyameRooms.Answer = join(try clients[0].member("a"), media: first)
        #expect(one == .joined(first))
        let two: AyameRooms.Answer = join(try clients[1].member("b"), media: second, isMediaRequired: isRequired)
        #expect(two == answer)
        #expect(clients[0].accepted == [.accepted(hasPartner: false, media: first)])
        #expect(clients[1].accepted == (answer == .otherMedia ? [] : [.accepted(hasPartner: true, media: first)]))
        #expect(clients[0].closed.isEmpty)
    }
}
