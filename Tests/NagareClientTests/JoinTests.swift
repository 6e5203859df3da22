import Foundation
import Testing

@testable import NagareClient

/// Joining, the ends of it, and what the client asks for.
@Suite struct JoinTests {
    @Test func `a join asks, answers and reports who is there`() throws {
        var rig = Rig { $0.displayName = "Hanako" }
        rig.machine.join(at: rig.now)
        let first = rig.take()
        #expect(first.contains(.emit(.connectionStatus(.connecting, failure: nil))))
        #expect(first.contains(.startMedia(.microphone)) && first.contains(.startMedia(.camera)))
        rig.open()
        let connect = try #require(rig.take().connects.first)
        #expect(
            connect.json == [
                "type": "connect", "role": "sendrecv", "channel_id": "room", "client_id": "me", "bundle_id": "me",
                "sora_client": "Nagare Swift client 1", "environment": "Swift", "audio": true, "video": true,
                "metadata": ["access_token": "first"], "signaling_notify_metadata": ["name": "Hanako"],
                "nagare": ["source": "camera"],
            ]
        )
        rig.say(Rig.offer)
        let session = try #require(rig.sessions[.main])
        let setup = MediaConnectionSetup(source: .camera, iceServers: [], isRelayedOnly: false)
        let offer = ServerOffer(sdp: "v=0", sendingMIDs: [.audio: "a0", .video: "v0"], encodings: [])
        #expect(rig.take() == [.connection(.answer(offer, setup, session: session))])
        rig.machine.answered("v=0 answer", .answer, session: session, at: rig.now)
        #expect(rig.sent() == [.description(.answer, sdp: "v=0 answer")])
        rig.pass(.milliseconds(250))
        rig.say(Rig.created)
        rig.say(
            Rig.joinedMessage(
                users: #"""
                    [{"user_id":"you","display_name":"Ken","role":"host","connections":[{"connection_id":"C1","source":"camera",
                    "audio":true,"video":false,"audio_muted":true,"video_muted":false,"interrupted":false,"uplink":1,"downlink":2}]}]
                    """#
            )
        )
        let actions = rig.take()
        let joined = try #require(actions.join).get()
        #expect(joined.elapsed == .milliseconds(250) && !joined.isReturn && joined.grace == .seconds(30))
        #expect(joined.users.map(\.id) == ["you"] && joined.users.first?.name == "Ken")
        let names = actions.events.map { "\($0)".prefix { $0 != "(" } }
        #expect(
            names == [
                "joined", "userOnline", "trackAvailable", "remoteMuted", "userNetworkQuality", "connectionStatus",
            ]
        )
        #expect(rig.machine.status == .connected)
    }

    @Test func `what the application chose is in the first message`() throws {
        var rig = Rig {
            $0.profile = .interactive
            $0.role = .audience
            $0.statesRole = true
            $0.subscribes = [.audio]
            $0.video = VideoOptions(codec: "H264", bitRate: 800, isSimulcast: true)
            $0.metadata = ["team": "red"]
        }
        rig.machine.join(at: rig.now)
        let first = rig.take()
        #expect(!first.contains(.startMedia(.camera)), "the audience publishes nothing")
        rig.open()
        let json = try #require(rig.take().connects.first).json
        #expect(
            json["nagare"]
                == ["source": "camera", "profile": "interactive", "role": "audience", "subscribe": "manual"]
        )
        #expect(json["video"] == ["codec_type": "H264", "bit_rate": 800] && json["simulcast"] == true)
        #expect(json["metadata"] == ["team": "red", "access_token": "first"])
        rig.connect(message: Rig.joinedMessage(role: "audience", profile: "interactive"))
        #expect(rig.take().requests == ["subscribe kind=audio"])
    }

    @Test func `one that watches only sends nothing`() throws {
        var rig = Rig {
            $0.canPublish = false
            $0.role = .audience
        }
        rig.machine.join(at: rig.now)
        rig.open()
        let actions = rig.take()
        #expect(actions.connects.first?.direction == .recvonly)
        #expect(!actions.contains(.startMedia(.microphone)))
        #expect(throws: NagareError.notPublisher) { try rig.machine.publish(.camera, at: rig.now) }
    }

    /// The sizes of a simulcast offer, and TURN servers.
    @Test func `an offer's sizes and relays reach the engine`() throws {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.say(
            #"{"type":"offer","sdp":"v=0","connection_id":"C0","simulcast":true,"encodings":[{"rid":"r0","active":false,"#
                + #""scaleResolutionDownBy":4.0},{"rid":"r1","maxBitrate":9}],"config":{"iceTransportPolicy":"relay","#
                + #""iceServers":[{"urls":["turn:t"],"username":"u","credential":"c"}]}}"#
        )
        guard case .connection(.answer(let offer, let setup, _)) = rig.take().last else {
            Issue.record("no answer is asked for")
            return
        }
        #expect(offer.encodings.map(\.rid) == ["r0", "r1"] && offer.encodings.map(\.isActive) == [false, true])
        #expect(offer.encodings.map(\.scaleResolutionDownBy) == [4, nil] && offer.encodings[1].maxBitrate == 9)
        #expect(
            setup.isRelayedOnly && setup.iceServers == [ICEServer(urls: ["turn:t"], username: "u", credential: "c")]
        )
    }

    @Test(arguments: [
        (4490, "AUTHENTICATION-FAILURE", 0x0201_0205), (4490, "0x02010201 The app does not exist", 0x0201_0201),
        (4490, "33620482: the app is disabled", 0x0201_0202), (4490, "CHANNEL-PROFILE-MISMATCH", 0x0201_0903),
        (4490, "CHANNEL-OF-OTHER-APP", 0x0201_0203), (4490, "STREAM-BLOCKED", 0x3002_0904),
        (4490, "INVALID-MESSAGE", 0), (4490, "a custom reason", 0), (1000, "TOKEN-EXPIRED", 0x0201_0205),
    ])
    func `a refusal ends the join with its result code`(code: Int, reason: String, result: Int) {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.close(code, reason)
        let actions = rig.take()
        #expect(actions.join?.failure?.reason == reason && actions.join?.failure?.code == result)
        #expect(rig.machine.status == .failed && rig.machine.isOver)
        #expect(actions.contains(.stopMedia(.camera)) && actions.contains(.stopMedia(.microphone)))
        #expect(rig.machine.nextDeadline == nil)
    }

    @Test func `what is wrong with a message is told behind its reason`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.close(4490, #"INVALID-MESSAGE: "channel_id" is missing."#)
        let failure = rig.take().join?.failure
        #expect(failure?.reason == "INVALID-MESSAGE" && failure?.message == #""channel_id" is missing."#)
    }

    @Test(arguments: [(4490, "INTERNAL-ERROR"), (1001, "SERVER-SHUTDOWN"), (1013, "TRY-AGAIN-LATER"), (1006, "")])
    func `another refusal may be over at the next try`(code: Int, reason: String) {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.open()
        rig.close(code, reason)
        #expect(rig.take().join == nil && rig.machine.status == .disconnected)
        rig.pass(.seconds(5))
        #expect(rig.urls.count == 2)
        rig.connect()
        #expect(rig.take().join?.isSuccess == true)
    }

    @Test func `a server that cannot be reached ends the join after its time, with the reason`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.pass(.seconds(29))
        #expect(rig.take().join == nil)
        rig.pass(.seconds(1))
        let actions = rig.take()
        #expect(actions.join?.failure?.reason == "JOIN-TIMEOUT" && actions.join?.failure?.code == 0x0102_0204)
        #expect(actions.join?.failure?.message == "The server at a.example does not answer.")
        #expect(!actions.events.contains(.left) && rig.machine.status == .failed && rig.machine.isOver)
    }

    @Test func `leaving says so to the node, and closes everything`() {
        var rig = Rig.joined()
        rig.machine.leave(at: rig.now)
        let actions = rig.take()
        #expect(actions.sent == [.disconnect])
        #expect(actions.events.suffix(2) == [.connectionStatus(.disconnected, failure: nil), .left])
        #expect(actions.contains { if case .connection(.end(_, _, keepsPlace: false)) = $0 { true } else { false } })
        #expect(actions.contains(.stopMedia(.camera)) && rig.machine.isOver)
        rig.machine.leave(at: rig.now)
        #expect(rig.take().isEmpty)
    }

    @Test func `a leave while joining ends the join`() {
        var rig = Rig()
        rig.machine.join(at: rig.now)
        rig.machine.leave(at: rig.now)
        let actions = rig.take()
        #expect(actions.join?.failure?.reason == "LEFT" && actions.events.last == .left)
        #expect(actions.sent.isEmpty, "nothing is sent over a WebSocket that is not open")
    }

    // MARK: Options

    private func options(_ url: String = "wss://a.example", _ edit: (inout ChannelOptions) -> Void) throws
        -> JoinParameters
    {
        var options = ChannelOptions(urls: [try #require(URL(string: url))], channel: "room", user: "me")
        edit(&options)
        return try options.checked()
    }

    @Test(arguments: [
        ("wss://a.example", "wss://a.example/signaling"), ("https://a.example/", "wss://a.example/signaling"),
        ("http://127.0.0.1:8080/x?y=1", "ws://127.0.0.1:8080/x?y=1"),
        ("WSS://a.example:99/signaling", "wss://a.example:99/signaling"),
    ])
    func `an address leads to the signaling`(given: String, used: String) throws {
        #expect(try options(given) { _ in }.urls == [used])
    }

    @Test func `wrong options are refused with a sentence`() {
        let wrong: [(String, (inout ChannelOptions) -> Void)] = [
            ("“urls” must have", { $0.urls = [] }),
            ("must start with wss://", { $0.urls = [URL(fileURLWithPath: "/a")] }),
            ("“channel” is missing", { $0.channel = "" }), ("“user” is missing", { $0.user = "" }),
            ("at most 255 bytes", { $0.channel = String(repeating: "x", count: 256) }),
            ("The token is empty", { $0.token = .token(" ") }),
            (
                "A host needs “canPublish”",
                {
                    $0.role = .host
                    $0.canPublish = false
                }
            ),
            ("expiry in seconds", { $0.token = .app(id: "a", timestamp: 0, token: "t") }),
            ("needs the app's ID", { $0.token = .app(id: "", timestamp: 1, token: "t") }),
            ("for another channel", { $0.token = .token(Self.appToken(channel: "other", user: "me")) }),
            ("for another user", { $0.token = .token(Self.appToken(channel: "room", user: "other")) }),
        ]
        for (sentence, edit) in wrong {
            let error = #expect(throws: NagareError.self, "\(sentence)") { _ = try options("https://a.example", edit) }
            #expect(error?.message.contains(sentence) == true || error?.message.contains("is not an address") == true)
            #expect(error?.code == 0x0103_0101)
        }
    }

    private static func appToken(channel: String, user: String) -> String {
        let fields =
            #"{"appid":"a","channelid":"\#(channel)","userid":"\#(user)","nonce":"","timestamp":1,"token":"t"}"#
        return Data(fields.utf8).base64EncodedString()
    }

    @Test func `an app's token names the channel and the user`() throws {
        let parameters = try options {
            $0.channel = ""
            $0.user = ""
            $0.token = .token(Self.appToken(channel: "c", user: "u"))
        }
        #expect(parameters.channel == "c" && parameters.user == "u")
        let fields = try options { $0.token = .app(id: "a", timestamp: 7, token: "t") }.accessToken
        #expect(
            fields == [
                "appid": "a", "channelid": "room", "userid": "me", "nonce": "", "timestamp": 7, "token": "t",
            ]
        )
        // A whole number is written without a fraction.
        let text = ClientMessage.request(1, method: "m", parameters: ["timestamp": 7]).text
        #expect(text.contains(#""timestamp":7}"#))
    }
}
