import Base
import Testing

@testable import RTMP

@Suite struct ConnectionTests {
    // MARK: - connect

    @Test func `connect is answered with windows, the chunk size and what the server takes`() throws {
        var peer = Peer(settings: RTMPSettings(fourCCs: ["hvc1", "Opus"]))
        peer.connect()
        let answers = peer.takeAnswers()
        #expect(answers.map(\.type) == [.windowAcknowledgementSize, .setPeerBandwidth, .setChunkSize, .commandAMF0])
        #expect(answers.prefix(3).map(\.body) == [[0, 0x26, 0x25, 0xA0], [0, 0x26, 0x25, 0xA0, 2], [0, 1, 0, 0]])
        var reader = AMF0Reader(answers[3].body)
        #expect(try reader.read() == .string("_result"))
        #expect(try reader.read() == .number(1))
        let properties = try reader.read()
        #expect(properties["fourCcList"]?.elements == [.string("hvc1"), .string("Opus")])
        #expect(properties["capsEx"] == .number(1))
        let info = try reader.read()
        #expect(info["code"]?.string == "NetConnection.Connect.Success")
        #expect(info["level"]?.string == "status")
        #expect(info["objectEncoding"] == .number(0))
        #expect(peer.actions.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a client says what it can`(isAMF3: Bool) throws {
        var peer = Peer()
        let object: [AMF0Member] = [
            AMF0Member("app", .string("/live/?k=1")), AMF0Member("tcUrl", .string("rtmp://h/live?k=1")),
            AMF0Member("flashVer", .string("FMLE/3.0")), AMF0Member("capsEx", .number(9)),
            AMF0Member("fourCcList", .strictArray([.string("av01"), .null])),
            AMF0Member(
                "videoFourCcInfoMap",
                .object([AMF0Member("av01", .number(7)), AMF0Member("vp09", .number(7))])
            ),
            AMF0Member("audioFourCcInfoMap", .ecmaArray([AMF0Member("*", .number(4))])),
        ]
        peer.command("connect", 1, [isAMF3 ? .ecmaArray(object) : .object(object)], isAMF3: isAMF3)
        peer.publish("demo")
        let client = try #require(peer.connection.request).client
        #expect(client.app == "live" && client.query == "k=1" && client.tcURL == "rtmp://h/live")
        #expect(client.flashVersion == "FMLE/3.0")
        #expect(client.capabilities == [.reconnect, .nanosecondOffsets])
        #expect(client.fourCCs == ["av01", "vp09", "*"])
    }

    @Test func `an encoder's name is cut, and has no control characters`() throws {
        let name = "a\r\nb\u{1B}[31m\u{7F}" + String(repeating: "c", count: 1_000)
        var peer = Peer.connected([AMF0Member("flashVer", .string(name))])
        peer.publish("demo")
        let version = try #require(peer.connection.request).client.flashVersion
        #expect(version.hasPrefix("ab[31mcc") && version.count == 128)
    }

    @Test(arguments: [.nan, .infinity, -1, 1e300, 4_294_967_296] as [Double])
    func `numbers that are no flags are none`(number: Double) throws {
        var peer = Peer.connected([AMF0Member("capsEx", .number(number))])
        peer.publish("demo")
        #expect(try #require(peer.connection.request).client.capabilities == [])
    }

    // Everything else is refused at publish, because encoders show a reason only then.
    @Test(arguments: ["", "live", "other/app", "ライブ", "a?b", "?"])
    func `every app is accepted`(app: String) {
        let peer = Peer.connected(app: app)
        #expect(peer.end == nil && peer.actions.isEmpty)
    }

    // MARK: - publish

    @Test(
        arguments: [
            ("live", "demo", "live", "demo", ""), ("live", "demo?a=1", "live", "demo", "a=1"),
            ("live?b=2", "demo", "live", "demo", "b=2"), ("live?b=2", "demo?a=1", "live", "demo", "a=1"),
            ("live?b=2", "demo?", "live", "demo", "b=2"), ("/live/", "/demo/", "live", "demo", ""),
            ("live", "a/b?u=x?y/", "live", "a/b", "u=x?y/"), ("live", "", "live", "", ""),
            ("live", "?a=1", "live", "", "a=1"),
            ("live", "demo?\u{301}a=1", "live", "demo", "\u{301}a=1"), ("//", "///", "", "", ""),
        ] as [(String, String, String, String, String)]
    )
    func `the query is in the name or behind the app`(
        app: String,
        name: String,
        readApp: String,
        readName: String,
        query: String
    ) throws {
        var peer = Peer.connected(app: app)
        peer.publish(name)
        let request = try #require(peer.connection.request)
        #expect(request.app == readApp && request.name == readName && request.query == query)
        #expect(peer.actions == [.publish(request)])
    }

    @Test func `a publisher's commands are answered`() throws {
        var peer = Peer.connected()
        _ = peer.takeAnswers()
        peer.command("releaseStream", 2, [.null, .string("demo")])
        peer.command("FCPublish", 3, [.null, .string("demo")])
        peer.command("createStream", 4, [.null])
        // GStreamer wants no answer to its first two.
        peer.command("releaseStream", 0, [.null, .string("demo")])
        peer.command("createStream", .nan, [.null])
        peer.command("getStreamLength", 5, [.null, .string("demo")])
        peer.command("_checkbw", 6, [.null])
        let answers = try peer.takeCommands()
        #expect(answers.map(\.name) == ["_result", "_result", "_result"])
        #expect(answers.map(\.transaction) == [2, 3, 4])
        #expect(answers.last?.values == [.null, .number(1)])
        #expect(peer.actions.isEmpty)
    }

    @Test(arguments: [(0, 1), (1, 1), (7, 7)] as [(UInt32, UInt32)])
    func `an accepted stream begins`(stream: UInt32, answered: UInt32) throws {
        var peer = Peer.connected()
        _ = peer.takeAnswers()
        peer.command("publish", 5, [.null, .string("demo"), .string("live")], stream: stream)
        #expect(peer.takeAnswers().isEmpty, "the owner decides first")
        peer.accept()
        let answers = peer.takeAnswers()
        #expect(answers.first?.type == .userControl)
        #expect(answers.first?.body == [0, 0, 0, 0, 0, UInt8(answered)])
        #expect(answers.last?.stream == answered)
        var reader = AMF0Reader(try #require(answers.last).body)
        #expect(try reader.read() == .string("onStatus"))
        #expect(try reader.read() == .number(0))
        #expect(try reader.read() == .null)
        #expect(try reader.read()["code"]?.string == "NetStream.Publish.Start")
        #expect(peer.end == nil)
        peer.accept()
        #expect(peer.takeAnswers().isEmpty, "once")
    }

    @Test(arguments: RTMPRefusal.Code.allCases)
    func `a refusal is told before the close`(code: RTMPRefusal.Code) throws {
        var peer = Peer.connected()
        peer.publish("demo?auth_key=secret")
        _ = peer.takeAnswers()
        peer.clear()
        let refusal = RTMPRefusal(code, "The URL has expired.")
        peer.refuse(refusal)
        let answer = try #require(try peer.takeCommands().first)
        #expect(answer.name == "onStatus" && answer.stream == 1)
        #expect(answer.values.last?["level"]?.string == "error")
        #expect(answer.values.last?["code"]?.string == code.rawValue)
        #expect(answer.values.last?["description"]?.string == "The URL has expired.")
        #expect(peer.actions == [.ended(.refused(refusal))])
        #expect(peer.connection.nextDeadline == Peer.start + .milliseconds(300))
        // Late commands of the client mean nothing.
        peer.command("deleteStream", 6, [.null, .number(1)])
        peer.receive(pattern(2_000))
        peer.accept()
        peer.refuse(refusal)
        peer.now += .milliseconds(299)
        peer.handleTimeout()
        #expect(!peer.hasClosed && peer.takeAnswers().isEmpty)
        peer.now += .milliseconds(1)
        peer.handleTimeout()
        #expect(peer.actions == [.ended(.refused(refusal)), .close])
        #expect(peer.connection.hasEnded && peer.connection.nextDeadline == nil)
    }

    @Test func `a long reason is cut`() throws {
        var peer = Peer.publishing()
        peer.refuse(RTMPRefusal(.rejected, String(repeating: "あ", count: 1_000)))
        let text = try #require(try peer.takeCommands().first?.values.last?["description"]?.string)
        #expect(text.utf8.count <= RTMPLimits.descriptionBytesMax + 2)
    }

    @Test func `before publish a connection just closes`() {
        for isPast in [false, true] {
            var peer = Peer(isPastHandshake: isPast)
            let refusal = RTMPRefusal(.rejected, "The node stops.")
            peer.refuse(refusal)
            #expect(peer.actions == [.ended(.refused(refusal)), .close])
        }
    }

    @Test func `nothing is played`() throws {
        for isPublishing in [false, true] {
            var peer = isPublishing ? Peer.publishing() : Peer.connected()
            _ = peer.takeAnswers()
            peer.command("play", 4, [.null, .string("demo")], stream: 1)
            let info = try #require(try peer.takeCommands().first).values.last
            #expect(info?["code"]?.string == "NetStream.Play.StreamNotFound")
            #expect(info?["description"]?.string == "play over HLS, FLV or WHEP")
            #expect(peer.end == .refused(RTMPRefusal(.notPlayable, "play over HLS, FLV or WHEP")))
        }
    }

    @Test func `a second publish is refused`() throws {
        var peer = Peer.publishing()
        peer.publish("other")
        let info = try #require(try peer.takeCommands().first).values.last
        #expect(info?["code"]?.string == "NetStream.Publish.BadName")
        guard case .refused = peer.end else {
            Issue.record("it is not refused: \(peer.actions)")
            return
        }
    }

    @Test(arguments: ["FCUnpublish", "deleteStream", "closeStream"])
    func `a publisher ends its stream`(name: String) throws {
        var peer = Peer.publishing()
        // GStreamer's deleteStream has the stream's name for its number.
        peer.command(name, 6, [.null, .string("demo")])
        peer.command("deleteStream", 7, [.null, .number(1)])
        #expect(try peer.takeCommands().map { $0.values.last?["code"]?.string } == ["NetStream.Unpublish.Success"])
        #expect(peer.actions == [.ended(.unpublished)])
        peer.now += .milliseconds(300)
        peer.handleTimeout()
        #expect(peer.hasClosed)
        var early = Peer.connected()
        early.command(name, 6, [.null, .string("demo")])
        #expect(early.actions.isEmpty, "without a stream it means nothing")
    }

    // MARK: - Order

    @Test(
        arguments: [
            ("publish", [.null, .string("demo")], .notConnected), ("createStream", [.null], .notConnected),
            ("play", [.null, .string("demo")], .notConnected), ("connect", [], .missingArgument(.connect)),
            ("connect", [.null], .missingArgument(.connect)), ("connect", [.object([])], .missingArgument(.connect)),
        ] as [(String, [AMF0Value], RTMPError)]
    )
    func `the first command is a complete connect`(name: String, values: [AMF0Value], error: RTMPError) {
        var peer = Peer()
        peer.command(name, 1, values)
        #expect(peer.actions == [.ended(.failed(error)), .close])
    }

    @Test func `unknown commands are ignored, also before connect`() {
        var peer = Peer()
        peer.command("hello", 1, [.null])
        #expect(peer.actions.isEmpty)
        peer.connect()
        peer.connect()
        #expect(peer.end == .failed(.connectedTwice))
    }

    @Test(arguments: [[], [.null], [.null, .null], [.null, .number(1)]] as [[AMF0Value]])
    func `publish has a name`(values: [AMF0Value]) {
        var peer = Peer.connected()
        peer.command("publish", 5, values, stream: 1)
        #expect(peer.end == .failed(.missingArgument(.publish)))
    }

    @Test(arguments: [RTMPMessageType.audio, .video, .aggregate])
    func `media before publish ends the connection`(type: RTMPMessageType) {
        for isConnected in [false, true] {
            var peer = isConnected ? Peer.connected() : Peer()
            peer.receive(RTMPMessage(type, stream: 1, [0xAF, 1]), on: 4)
            #expect(peer.actions == [.ended(.failed(.mediaBeforePublish)), .close])
        }
    }

    @Test(arguments: [15, 18] as [UInt8])
    func `metadata is handed on`(rawType: UInt8) {
        var peer = Peer.publishing()
        let members = [AMF0Member("width", .number(64))]
        var writer = AMF0Writer()
        for value in [.string("@setDataFrame"), .string("onMetaData"), .ecmaArray(members)] as [AMF0Value] {
            writer.write(value)
        }
        peer.receive(
            RTMPMessage(rawType: rawType, stream: 1, timestamp: 0, body: (rawType == 15 ? [0] : []) + writer.bytes)
        )
        #expect(peer.actions.count == 1)
        guard case .metadata(let metadata) = peer.actions.first else { return }
        #expect(metadata.members == members)
        peer.clear()
        // Other data is not read, even when nobody could.
        peer.receive(RTMPMessage(.dataAMF0, stream: 1, [2, 0, 2, 0x68, 0x69, 17]))
        #expect(peer.actions.isEmpty)
        peer.receive(RTMPMessage(.dataAMF0, stream: 1, [17]))
        #expect(peer.end == .failed(.amf(.unknownMarker(17))))
        var early = Peer.connected()
        early.receive(RTMPMessage(.dataAMF0, stream: 1, [17]))
        #expect(early.actions.isEmpty)
    }

    // MARK: - The time of a decision

    @Test func `what comes behind publish waits for the answer`() {
        var peer = Peer.connected()
        var encoder = ChunkEncoder()
        let publish = encoder.bytes(Peer.message("publish", 5, [.null, .string("demo")], stream: 1), on: 3)
        let frame = RTMPMessage(.video, stream: 1, timestamp: 40, pattern(300))
        let bytes = encoder.bytes(frame, on: 6)
        peer.receive(publish + bytes.prefix(100))
        peer.receive(Array(bytes.dropFirst(100)) + encoder.bytes(frame, on: 6))
        #expect(peer.media.isEmpty && peer.actions.count == 1 && !peer.connection.isBlocked)
        #expect(peer.connection.nextDeadline == nil, "the owner has its own deadline")
        peer.accept()
        #expect(
            peer.media == [
                RTMPMedia(.video, timestamp: 40, body: pattern(300)),
                RTMPMedia(.video, timestamp: 40, body: pattern(300)),
            ]
        )
    }

    @Test func `what waits has a bound`() {
        var peer = Peer.connected()
        peer.publish("demo")
        peer.receive(pattern(16_383))
        #expect(!peer.connection.isBlocked)
        peer.receive([0])
        #expect(peer.connection.isBlocked)
        peer.receive(pattern(65_536))
        #expect(peer.end == nil)
        peer.receive([0])
        #expect(peer.end == .failed(.tooMuchDeferred))
        #expect(!peer.connection.isBlocked)
    }

    @Test func `a violation behind publish shows after the answer`() {
        var peer = Peer.connected()
        peer.publish("demo")
        peer.receive([0xC9])
        peer.clear()
        peer.accept()
        #expect(peer.actions == [.ended(.failed(.missingHeader(chunkStream: 9))), .close])
        #expect(peer.takeAnswers().count == 6)
    }

    // MARK: - Credentials

    @Test func `the query shows nowhere`() throws {
        for app in ["live", "live?token=secret"] {
            var peer = Peer.connected([AMF0Member("tcUrl", .string("rtmp://h/live?token=secret"))], app: app)
            peer.publish("demo?auth_key=secret")
            let request = try #require(peer.connection.request)
            var dumped = ""
            dump(request, to: &dumped)
            dump(request.client, to: &dumped)
            let texts = [
                "\(request)", String(reflecting: request), "\(request.client)", "\(peer.actions)", dumped,
            ]
            for text in texts { #expect(!text.contains("secret"), "\(text)") }
            #expect("\(request)" == "live/demo")
        }
    }

    // MARK: - Reconnect

    @Test(arguments: [nil, "rtmp://other/live"])
    func `a publisher that can is asked to connect again`(url: String?) throws {
        var peer = Peer.publishing([AMF0Member("capsEx", .number(1))])
        #expect(peer.connection.canReconnect)
        peer.requestReconnect(to: url)
        let answer = try #require(try peer.takeCommands().first)
        #expect(answer.name == "onStatus" && answer.stream == 0)
        #expect(answer.values.last?["code"]?.string == "NetConnection.Connect.ReconnectRequest")
        #expect(answer.values.last?["level"]?.string == "status")
        #expect(answer.values.last?["tcUrl"]?.string == url)
        #expect(peer.end == nil)
        var other = Peer.publishing()
        #expect(!other.connection.canReconnect)
        other.requestReconnect(to: url)
        #expect(other.takeAnswers().isEmpty)
    }
}
