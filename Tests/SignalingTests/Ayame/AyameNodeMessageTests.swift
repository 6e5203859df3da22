import ChannelTypes
import MediaTypes
import Room
import TestSupport
import Testing

@testable import Ayame
@testable import Operators
@testable import Signaling
@testable import Web

/// The coding of what nodes tell each other of rooms of the relay.
@Suite struct AyameNodeMessageTests {
    private static let id = ParticipantID.random().value

    private static func guest(user: String = "alice", key: String = "k", at time: Int64 = 7) -> AyameGuest {
        let member = AyameRooms.Member(
            connectionID: id,
            identity: AyameRooms.Identity(clientID: "me", signalingKey: key),
            isStandalone: true,
            user: user,
            app: "live",
            registeredAt: time,
            origin: .at("a")
        )
        return AyameGuest(member, in: ChannelName("räum")!, media: .server, isMediaRequired: true)
    }

    private static func turn(_ urls: String..., password: String = "p") -> TURNAccess {
        TURNAccess(urls: urls, username: "u", password: password)
    }

    private static let messages: [AyameNodeMessage] = [
        .register(guest()), .relay("x", from: id), .leave(id, reason: "LEFT"),
        .accepted(id, hasPartner: true, media: .direct), .refused(id, reason: "full"),
        .accepted(id, hasPartner: true, media: .direct, turn: turn("turn:192.0.2.1:7000?transport=udp")),
        .text("{\"sdp\":\"v=0\\r\\n\"}", to: id), .closed(id, code: 1001, reason: "SERVER-SHUTDOWN", message: "s"),
    ]

    @Test(arguments: messages)
    func `a message is read as it was written`(message: AyameNodeMessage) throws {
        #expect(AyameNodeMessage(try #require(message.encoded)) == message)
    }

    @Test func `an end is written and read as by nodes of earlier builds`() throws {
        let end = AyameNodeMessage.closed(Self.id, code: 1001, reason: "SERVER-SHUTDOWN", message: "s")
        let earlier = #"{"closed":{"_0":"\#(Self.id)","code":1001,"reason":"SERVER-SHUTDOWN","sentence":"s"}}"#
        #expect(AyameNodeMessage(Array(earlier.utf8)) == end)
        #expect(String(decoding: try #require(end.encoded), as: UTF8.self).contains(#""sentence":"s""#))
    }

    @Test func `an acceptance is read as nodes of earlier builds write it, and written as they read it`() throws {
        let plain = AyameNodeMessage.accepted(Self.id, hasPartner: true, media: .direct)
        let earlier = #"{"accepted":{"_0":"\#(Self.id)","hasPartner":true,"media":"direct"}}"#
        #expect(AyameNodeMessage(Array(earlier.utf8)) == plain)
        #expect(!String(decoding: try #require(plain.encoded), as: UTF8.self).contains("turn"))
    }

    @Test func `the longest description passes, with every character escaped`() throws {
        let text = String(repeating: "\"", count: WebSocketLimits().messageBytesMax)
        let message = AyameNodeMessage.text(text, to: Self.id)
        #expect(AyameNodeMessage(try #require(message.encoded)) == message)
        #expect(AyameNodeMessage.text(text + "x", to: Self.id).encoded == nil)
    }

    @Test(
        arguments: [
            .register(guest(user: String(repeating: "u", count: 1_021))),
            .register(guest(key: String(repeating: "k", count: 8_193))), .register(guest(key: "")),
            .register(guest(at: -1)), .relay("x", from: "nobody"), .text("x", to: ""),
            .leave(id, reason: String(repeating: "r", count: 1_025)),
            .accepted(id, hasPartner: true, media: .direct, turn: turn()),
            .accepted(id, hasPartner: true, media: .direct, turn: turn("http://192.0.2.1")),
            .accepted(id, hasPartner: true, media: .direct, turn: turn("turn:" + String(repeating: "a", count: 508))),
            .accepted(id, hasPartner: true, media: .direct, turn: turn("turn:a", "", "", "", "", "", "")),
            .accepted(
                id,
                hasPartner: true,
                media: .direct,
                turn: turn("turn:a", password: String(repeating: "p", count: 513))
            ),
            .closed(id, code: 1006, reason: "", message: ""),
            .closed(id, code: 1000, reason: String(repeating: "r", count: 124), message: ""),
        ] as [AyameNodeMessage]
    )
    func `what is out of its limits is not sent`(message: AyameNodeMessage) {
        #expect(message.encoded == nil)
    }

    private static let register = #"""
        {"connectionID":"ID","room":"ROOM","isStandalone":false,"user":"u","registeredAt":TIME,"media":"direct",
        "isMediaRequired":false}
        """#

    private static func registering(_ room: String, at time: Int) -> String {
        let guest = register.replacing("ROOM", with: room).replacing("TIME", with: "\(time)")
        return #"{"register":{"_0":\#(guest)}}"#
    }

    @Test(arguments: [
        "", "{}", "[]", "nonsense", #"{"later":{}}"#, #"{"relay":{"_0":"x"}}"#,
        #"{"relay":{"_0":"x","from":"nobody"}}"#,
        #"{"closed":{"_0":"ID","code":99999,"reason":"","message":""}}"#,
        #"{"closed":{"_0":"ID","code":1,"reason":"","message":""}}"#,
        #"{"accepted":{"_0":"ID","hasPartner":true,"media":"pigeon"}}"#,
        registering(".", at: 1), registering("r", at: -1),
    ])
    func `what is no message is refused, and changes nothing`(text: String) async {
        let bytes = Array(text.replacing("\"ID\"", with: "\"\(Self.id)\"").utf8)
        #expect(AyameNodeMessage(bytes) == nil)
        let calls = AyameCalls(cluster: RelayNodes(open: []).cluster(of: "a"))
        #expect(calls.received(bytes, from: "b", refusal: { _, _ in nil }) == .malformed)
        await calls.takeMessages()
        #expect(await calls.rooms.count == 0)
        #expect(await calls.answer(bytes) == nil)
    }

    @Test func `a message without what is optional is read`() {
        let text = Self.registering("r", at: 1).replacing("\"ID\"", with: "\"\(Self.id)\"")
        #expect(AyameNodeMessage(Array(text.utf8)) != nil)
    }

    @Test func `random bytes are refused`() throws {
        var generator = SeededGenerator(seed: 5)
        let room = try #require(ChannelName("r"))
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...200, using: &generator)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(AyameNodeMessage(bytes) == nil && AyameNodeQuestion(bytes) == nil)
            #expect(AyameNodeAnswer(bytes, about: room) == nil)
        }
    }

    @Test func `a message with a changed byte is refused, or another message within its limits`() throws {
        var generator = SeededGenerator(seed: 5)
        let valid = Self.messages.compactMap(\.encoded)
        try #require(valid.count == Self.messages.count)
        var refused = 0
        for number in 0..<2_000 {
            var bytes = valid[number % valid.count]
            let index = Int.random(in: bytes.indices, using: &generator)
            bytes[index] ^= UInt8.random(in: 1...255, using: &generator)
            #expect(AyameNodeQuestion(bytes) == nil)
            if let message = AyameNodeMessage(bytes) {
                #expect(message != Self.messages[number % valid.count])
                #expect(AyameNodeMessage(try #require(message.encoded)) == message)
            } else {
                refused += 1
            }
        }
        #expect(refused > 1_000, "most bytes are syntax, names or an ID")
    }

    @Test func `an answer is about the room that was asked for`() async throws {
        let room = try #require(ChannelName("r"))
        let calls = AyameCalls()
        let question = AyameNodeQuestion.find(room).encoded
        let none = try #require(await calls.answer(question))
        #expect(try #require(AyameNodeAnswer(none, about: room)).room == nil)
        #expect(await calls.join(room, Self.guest().member(at: "b")) == .joined(.direct))
        let some = try #require(await calls.answer(question))
        #expect(AyameNodeAnswer(some, about: room)?.room?.registrations.map(\.user) == ["alice"])
        #expect(AyameNodeAnswer(some, about: try #require(ChannelName("other"))) == nil)
        for text in ["", "[]", #"{"room":{"room":"r","media":"direct","registrations":[]}}"#] {
            #expect(AyameNodeAnswer(Array(text.utf8), about: room) == nil)
        }
    }
}
