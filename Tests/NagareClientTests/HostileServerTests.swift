import TestSupport
import Testing

@testable import NagareClient

/// Messages that no node sends: nothing traps, and nothing grows without a bound.
@Suite struct HostileServerTests {
    private static let valid = [
        Rig.offer, Rig.created,
        Rig.joinedMessage(users: #"[{"user_id":"you","connections":[{"connection_id":"C1"}]}]"#),
        #"{"type":"redirect","location":"wss://c.example/signaling"}"#, #"{"type":"re-offer","sdp":"v=0"}"#,
        #"{"type":"ping","stats":true}"#, #"{"type":"push","data":{"a":[1,2]}}"#,
        #"{"type":"response","id":"1","result":{}}"#, #"{"type":"response","id":"1","error":{"code":1,"reason":"x"}}"#,
        #"{"type":"notify","event_type":"user.online","user_id":"you","role":"host","metadata":{"a":[]}}"#,
        #"{"type":"notify","event_type":"track.changed","user_id":"you","connection_id":"C1","audio":true}"#,
        #"{"type":"notify","event_type":"token.expiring","expires_at":1}"#,
        #"{"type":"notify","event_type":"muted","kind":"audio","muted":true,"by":"operator"}"#,
    ]

    @Test(arguments: [
        "", " ", "null", "1", "[]", "{}", "{", "\"x\"", #"{"type":1}"#, #"{"type":null}"#, "\u{0}",
        String(repeating: "[", count: 100_000), String(repeating: #"{"type":"#, count: 40),
        #"{"type":"push","data":"# + String(repeating: "[", count: 33) + String(repeating: "]", count: 33) + "}",
        #"{"type":"push","data":""# + String(repeating: "x", count: 1 << 20) + "\"}",
    ])
    func `what is no message ends the session, and the client returns`(text: String) {
        #expect(ServerMessage.parse(text) == .unreadable)
        var rig = Rig.joined()
        rig.say(text)
        #expect(rig.machine.status == .disconnected)
        rig.pass(.seconds(1))
        rig.connect()
        #expect(rig.machine.status == .connected)
    }

    @Test(arguments: [
        #"{"type":"offer"}"#, #"{"type":"offer","sdp":1,"connection_id":"x"}"#, #"{"type":"offer","sdp":"x"}"#,
        #"{"type":"re-offer"}"#, #"{"type":"update","sdp":[]}"#, #"{"type":"redirect"}"#,
        #"{"type":"redirect","location":{}}"#, #"{"type":"ping","stats":"yes"}"#, #"{"type":"notify"}"#,
        #"{"type":"notify","event_type":"channel.joined","users":{}}"#,
        #"{"type":"notify","event_type":"token.expiring","expires_at":1e300}"#,
        #"{"type":"notify","event_type":"network.quality","uplink":9223372036854775808}"#,
        #"{"type":"response"}"#, #"{"type":"response","id":7}"#, #"{"type":"response","id":"x"}"#,
        #"{"type":"response","id":"99999999999999999999"}"#, #"{"type":"response","id":"1","error":"no"}"#,
        #"{"type":"later","x":1}"#, #"{"type":"disconnect"}"#,
    ])
    func `a message with wrong members is ignored`(text: String) {
        #expect(ServerMessage.parse(text) == .ignored)
        var rig = Rig.joined()
        rig.say(text)
        #expect(rig.take().isEmpty && rig.machine.status == .connected)
    }

    @Test(arguments: [
        "user.online", "user.offline", "user.interrupted", "user.resumed", "track.changed", "track.first_frame",
        "connection.created", "connection.destroyed", "role.changed", "muted", "network.quality",
        "user.network_quality", "token.expiring", "channel.joined", "unknown",
    ])
    func `an event without its members changes nothing`(type: String) {
        var rig = Rig.joined()
        rig.event(type)
        #expect(rig.machine.users.isEmpty && rig.machine.status == .connected && rig.machine.muted.isEmpty)
        rig.event(type, #""user_id":"ghost","connection_id":"ghost","ended":true,"kind":"smell","role":"king""#)
        #expect(rig.machine.status == .connected && rig.machine.role == .host)
    }

    /// In any phase, in any order, cut and changed.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `messages that are cut and changed never trap`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var rig = Rig {
            $0.urls = Rig.urls
            $0.joinTimeout = nil
        }
        rig.machine.join(at: rig.now)
        for _ in 0..<200 {
            var bytes = Array((Self.valid.randomElement(using: &random) ?? "").utf8)
            if Bool.random(using: &random), !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(index...)
                default: bytes.insert(contentsOf: bytes.prefix(index), at: index)
                }
            }
            switch Int.random(in: 0..<10, using: &random) {
            case 0: rig.open()
            case 1: rig.lose()
            case 2: rig.close(Int.random(in: -1...5_000, using: &random), String(decoding: bytes, as: UTF8.self))
            case 3: rig.pass(.milliseconds(Int.random(in: 0...20_000, using: &random)))
            case 4:
                rig.media(
                    [.stateChanged(.failed), .stateChanged(.disconnected), .firstFrame(mid: "?")].randomElement(
                        using: &random
                    )!
                )
            default: rig.say(String(decoding: bytes, as: UTF8.self))
            }
            _ = rig.take()
        }
        rig.machine.leave(at: rig.now)
        #expect(rig.machine.isOver && rig.machine.nextDeadline == nil)
    }

    @Test func `offers without end are not answered without end`() {
        var rig = Rig.joined()
        for _ in 0..<8 { rig.say(#"{"type":"re-offer","sdp":"v=0"}"#) }
        #expect(rig.machine.status == .connected)
        rig.say(#"{"type":"re-offer","sdp":"v=0"}"#)
        #expect(rig.machine.status == .disconnected)
        let answers = rig.take().filter { if case .connection(.answerAgain) = $0 { true } else { false } }
        #expect(answers.count == 8)
    }

    @Test func `users and tracks without end are not kept without end`() {
        var directory = UserDirectory(ownUser: "me")
        for number in 0..<6_000 {
            directory.online("\(number)", name: nil, role: nil, metadata: nil, elapsed: .zero)
        }
        for number in 0..<100 {
            let connection = ServerMessage.parse(
                #"{"type":"notify","event_type":"track.changed","user_id":"1","connection_id":"\#(number)","audio":true}"#
            )
            if case .notify(let message) = connection, let connection = message.connection {
                directory.changed(connection, of: "1", elapsed: .zero)
            }
        }
        #expect(directory.all.count == 5_000)
        #expect(directory.all.first { $0.id == "1" }?.connections.count == 64)
    }

    @Test func `old WebSockets, sessions and answers are not heard`() throws {
        var rig = Rig.joined()
        let (socket, session) = (try #require(rig.sockets[.main]), try #require(rig.sessions[.main]))
        rig.lose()
        _ = rig.take()
        rig.machine.received(ServerMessage.parse(#"{"type":"ping"}"#), on: socket, at: rig.now)
        rig.machine.answered("x", .reAnswer, session: session, at: rig.now)
        rig.machine.answerFailed("x", session: session, at: rig.now)
        rig.machine.media(.stateChanged(.failed), session: session, at: rig.now)
        rig.machine.closed(socket, .lost("x"), at: rig.now)
        #expect(rig.take().isEmpty)
    }
}
