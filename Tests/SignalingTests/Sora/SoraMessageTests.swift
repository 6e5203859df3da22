import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Sora
@testable import Web

@Suite struct SoraMessageTests {
    private static func connect(_ members: String = "") throws(SoraClose) -> SoraConnect {
        let rest = members.isEmpty ? "" : ",\(members)"
        let text = #"{"type":"connect","role":"sendrecv","channel_id":"room"\#(rest)}"#
        guard case .connect(let connect) = try SoraClientMessage(decoding: text) else { fatalError("no connect") }
        return connect
    }

    private static func close(_ text: String) -> SoraClose? {
        do {
            _ = try SoraClientMessage(decoding: text)
            return nil
        } catch {
            return error
        }
    }

    @Test func `omitted members have their defaults`() throws {
        let connect = try Self.connect()
        var expected = SoraConnect(channel: ChannelName("room")!, role: .sendrecv)
        expected.client = "unknown"
        #expect(connect == expected)
        #expect(connect.audio.isEnabled && connect.video.isEnabled)
        #expect(!connect.isSimulcast && !connect.spotlight)
    }

    @Test func `a client's name cannot start a log line`() throws {
        let connect = try Self.connect(
            #""sora_client":"a\nb","environment":"c\u001b[0m","libwebrtc":"d\u0085\u007fé""#
        )
        #expect(connect.client == "a\u{FFFD}b" && connect.environment == "c\u{FFFD}[0m")
        #expect(connect.libwebrtc == "d\u{FFFD}\u{FFFD}é")
    }

    @Test(arguments: CapturedExchange.all)
    func `every captured message is parsed`(exchange: CapturedExchange) throws {
        guard case .connect(let connect) = try SoraClientMessage(decoding: exchange.connect) else {
            Issue.record("no connect")
            return
        }
        #expect(connect.channel.value == "ch-\(exchange.name)")
        #expect(connect.client == "Sora Python SDK 2025.4.0")
        for text in exchange.after {
            let message = try SoraClientMessage(decoding: text)
            #expect(message == .candidate || message == .disconnect(reason: "NO-ERROR"))
        }
    }

    @Test func `all captures are found`() { #expect(CapturedExchange.all.count == 11) }

    @Test func `a captured message is parsed completely`() throws {
        func read(_ name: String) throws -> SoraConnect {
            guard case .connect(let connect) = try SoraClientMessage(decoding: CapturedExchange.named(name).connect)
            else { throw SoraClose(.invalidMessage, "") }
            return connect
        }
        let codec = try read("sendonly_codec")
        #expect(codec.video.codec == "VP8" && codec.video.bitRate == 500)
        #expect(codec.audio.codec == "OPUS" && codec.audio.bitRate == 64)
        #expect(codec.audio.parameters["opus_params"] == ["usedtx": true])
        #expect(try read("sendonly_audio_only").video.isEnabled == false)
        let simulcast = try read("recvonly_simulcast")
        #expect(simulcast.isSimulcast && simulcast.requestedRID == .r0)
        let spotlight = try read("sendrecv_spotlight")
        #expect(spotlight.spotlight && spotlight.spotlightNumber == 3)
        #expect(spotlight.spotlightFocusRID == .r1 && spotlight.spotlightUnfocusRID == RequestedRID.none)
        let meta = try read("sendonly_meta")
        #expect(meta.clientID == "client-1" && meta.bundleID == "bundle-1")
        #expect(meta.metadata?["access_token"] == "xyz")
        #expect(meta.notifyMetadata == ["name": "alice"])
        #expect(meta.forwardingFilters.map(\.name) == ["a"])
        let filter = try read("ff_single").forwardingFilters
        #expect(filter.count == 1 && filter[0].action == .allow && filter[0].name == "default")
        #expect(filter[0].priority == 32_767)
    }

    @Test func `names of older SDK versions are supported`() throws {
        #expect(try Self.connect(#""simulcast":{"rid":"r1"}"#).requestedRID == .r1)
        #expect(try Self.connect(#""simulcast":{"rid":"r1"}"#).isSimulcast)
        let both = #""simulcast_rid":"r2","simulcast_request_rid":"none""#
        #expect(try Self.connect(both).requestedRID == RequestedRID.none)
        #expect(try Self.connect(#""signalingNotifyMetadata":1,"multistream":true,"x":[{}]"#).notifyMetadata == nil)
        #expect(try Self.connect(#""audio":null,"video":null,"client_id":"""#).clientID == nil)
        for type in ["answer", "re-answer", "update"] {
            #expect(try SoraClientMessage(decoding: #"{"type":"\#(type)","sdp":"v=0"}"#) == .answer(sdp: "v=0"))
        }
        #expect(try SoraClientMessage(decoding: #"{"type":"pong"}"#) == .pong(reports: nil))
        let pong = #"{"type":"pong","stats":[{"id":"a"}]}"#
        #expect(try SoraClientMessage(decoding: pong) == .pong(reports: [["id": "a"]]))
        #expect(try SoraClientMessage(decoding: #"{"type":"pong","stats":7}"#) == .pong(reports: nil))
        #expect(try SoraClientMessage(decoding: #"{"type":"e2ee"}"#) == .ignored(type: "e2ee"))
        #expect(try SoraClientMessage(decoding: #"{"type":"disconnect"}"#) == .disconnect(reason: nil))
        #expect(try SoraClientMessage(decoding: #"{"type":"candidate","candidate":null,"sdpMid":"0"}"#) == .candidate)
    }

    static let refusals: [(String, SoraClose.Reason)] = [
        ("", .invalidJSON), ("{", .invalidJSON), ("nonsense", .invalidJSON), (#"{"type":"pong"} x"#, .invalidJSON),
        (String(repeating: "[", count: 100), .invalidJSON),
        ("[]", .invalidMessage), ("7", .invalidMessage), ("{}", .missingType), (#"{"role":"sendonly"}"#, .missingType),
        (#"{"type":7}"#, .invalidMessage), (#"{"type":"answer"}"#, .invalidMessage),
        (#"{"type":"answer","sdp":null}"#, .invalidMessage), (#"{"type":"connect"}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly"}"#, .invalidMessage),
        (#"{"type":"connect","channel_id":"a"}"#, .invalidMessage),
        (#"{"type":"connect","role":"publisher","channel_id":"a"}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":""}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":"."}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":".."}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":" \u3000"}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":"a\u0000b"}"#, .invalidMessage),
        (#"{"type":"connect","role":"sendonly","channel_id":7}"#, .invalidMessage),
    ]

    @Test(arguments: refusals)
    func `an invalid message is refused`(text: String, reason: SoraClose.Reason) throws {
        let close = try #require(Self.close(text))
        #expect(close.close.code == 4490 && close.word == reason.rawValue)
        #expect(close.close.reason.hasPrefix("\(reason.rawValue): "))
        #expect(close.message.hasSuffix("."))
    }

    /// Mistakes in `connect`, and how the reason of the close goes on after its word.
    static let mistakes: [(String, String)] = [
        (#"{"type":"connect","role":"sendonly"}"#, #""channel_id" is missing."#),
        (#"{"type":"connect","channel_id":"a"}"#, #""role" is missing."#),
        (#"{"type":"connect","channel_id":"a","role":"x"}"#, #""role" has to be one of"#),
        (#"{"type":"connect","channel_id":"","role":"sendonly"}"#, #""channel_id" "#),
        (#"{"type":"connect","channel_id":"a","role":"sendonly","client_id":5}"#, #""client_id" has to be a string"#),
        (#"{"type":"connect","channel_id":"a","role":"sendonly","simulcast":"yes"}"#, #""simulcast" has to be"#),
        (#"{"type":"connect","channel_id":"a","role":"sendonly","spotlight_number":9}"#, #""spotlight_number" has"#),
        (
            #"{"type":"connect","channel_id":"a","role":"recvonly","nagare":{"role":"host"}}"#,
            #""nagare.role" is "host""#
        ),
        (
            #"{"type":"connect","channel_id":"a","role":"sendonly","video":{"bit_rate":0}}"#,
            #"in "video", "bit_rate" has"#
        ),
        (
            #"{"type":"connect","channel_id":"a","role":"sendonly","audio":{"opus_params":{"ptime":1}}}"#,
            #""ptime" has"#
        ),
        (#"{"type":"connect","channel_id":"a","role":"sendonly","video":{"codec_type":"\u0007"}}"#, "The video codec"),
        ("{", "A message is not JSON."), ("{}", #"A message has no "type"."#),
        (#"{"type":"answer"}"#, #"in "answer", "sdp" is missing."#),
    ]

    @Test(arguments: mistakes)
    func `the reason of a close says what is wrong, and fits into the frame`(text: String, mistake: String) throws {
        let close = try #require(Self.close(text))
        let reason = close.close.reason
        #expect(reason.hasPrefix("\(close.word): \(mistake)"), "\(reason)")
        #expect(reason.utf8.count <= WebSocketClose.reasonBytesMax && reason == reason.printable)
        #expect(close.word.allSatisfy { $0 == "-" || $0.isUppercase })
    }

    @Test func `each mistake has a reason of its own, and other closes have their word only`() throws {
        let reasons = Self.mistakes.compactMap { Self.close($0.0)?.close.reason }
        #expect(Set(reasons).count == Self.mistakes.count)
        for close in [SoraClose.disconnected, .pongTimeout, .answerTimeout, .connectWaitTimeout, .admissionTimeout] {
            #expect(close.close.reason == close.word && !close.word.contains(" "))
        }
        let long = String(repeating: "é", count: 16_000)
        let cut = try #require(Self.close(#"{"type":"connect","role":"\#(long)","channel_id":"a"}"#))
        #expect(cut.close.reason.utf8.count <= WebSocketClose.reasonBytesMax)
    }

    static let wrongFields: [(String, SoraClose.Reason)] = [
        (#""spotlight_number":0"#, .invalidMessage), (#""spotlight_number":9"#, .invalidMessage),
        (#""spotlight_number":"3""#, .invalidMessage), (#""spotlight":1"#, .invalidMessage),
        (#""simulcast":"true""#, .invalidMessage), (#""simulcast_request_rid":"r3""#, .invalidMessage),
        (#""client_id":5"#, .invalidMessage), (#""client_id":"a\nb""#, .invalidMessage),
        (#""sora_client":5"#, .invalidMessage), (#""data_channel_signaling":"no""#, .invalidMessage),
        (#""forwarding_filters":[{"name":"a","rules":[]}]"#, .invalidMessage),
        (#""forwarding_filter":{"action":"drop","rules":[]}"#, .invalidMessage),
        (#""video":7"#, .invalidVideoFormat), (#""video":{"bit_rate":0}"#, .invalidVideoFormat),
        (#""video":{"bit_rate":"500"}"#, .invalidVideoFormat), (#""video":{"codec_type":5}"#, .invalidVideoFormat),
        (#""video":{"codec_type":"MPEG"}"#, .unknownCodecType), (#""audio":{"codec_type":"PCMU"}"#, .unknownCodecType),
        (#""audio":{"bit_rate":5}"#, .invalidAudioFormat), (#""audio":{"bit_rate":511}"#, .invalidAudioFormat),
        (#""audio":{"opus_params":7}"#, .invalidAudioFormat),
        (#""audio":{"opus_params":{"usedtx":1}}"#, .invalidAudioFormat),
        (#""video":{"codec_type":"VP9","vp9_params":{"profile_id":4}}"#, .invalidVideoFormat),
        (#""video":{"codec_type":"H264","h264_params":{"profile_level_id":"42e0"}}"#, .invalidVideoFormat),
        (#""video":{"codec_type":"H264","h264_params":{"profile_level_id":"42e01z"}}"#, .invalidVideoFormat),
    ]

    @Test(arguments: wrongFields)
    func `an invalid member of connect is refused with its reason`(
        members: String,
        reason: SoraClose.Reason
    ) throws {
        let error = try #require(throws: SoraClose.self) { try Self.connect(members) }
        #expect(error.word == reason.rawValue, "\(error.message)")
        #expect(!error.message.contains("secret"))
    }

    @Test func `metadata is bounded`() throws {
        let long = String(repeating: "x", count: SoraConnect.notifyMetadataBytesMax)
        #expect(throws: SoraClose.self) { try Self.connect(#""signaling_notify_metadata":"\#(long)""#) }
        let longer = String(repeating: "x", count: SoraConnect.metadataBytesMax)
        #expect(throws: SoraClose.self) { try Self.connect(#""metadata":"\#(longer)""#) }
        #expect(throws: SoraClose.self) { try Self.connect(#""client_id":"\#(String(repeating: "x", count: 256))""#) }
        let candidate = String(repeating: "x", count: SoraClientMessage.candidateBytesMax)
        #expect(Self.close(#"{"type":"candidate","candidate":"\#(candidate)"}"#)?.word == "INVALID-MESSAGE")
    }

    @Test(
        arguments: [
            ("", "1", "48000"), (#""audio":{"bit_rate":128}"#, "1", nil),
            (#""audio":{"opus_params":{"usedtx":true}}"#, "1", "48000"),
            (#""audio":{"opus_params":{"stereo":false}}"#, "0", nil),
        ] as [(String, String, String?)]
    )
    func `two channels are heard without being asked for, at a rate that is not twice that of one`(
        members: String,
        stereo: String,
        bitrate: String?
    ) throws {
        let opus = try SoraCodecs.audio(try Self.connect(members).audio)
        #expect(opus.formatValue("stereo") == stereo && opus.formatValue("maxaveragebitrate") == bitrate)
    }

    @Test func `codec parameters become format parameters`() throws {
        let audio = try Self.connect(
            #""audio":{"codec_type":"opus","opus_params":{"stereo":true,"usedtx":true,"maxplaybackrate":16000}}"#
        ).audio
        let opus = try SoraCodecs.audio(audio)
        #expect(opus.formatValue("usedtx") == "1" && opus.formatValue("stereo") == "1")
        #expect(opus.formatValue("maxplaybackrate") == "16000" && opus.formatValue("useinbandfec") == "1")
        let video = try Self.connect(#""video":{"codec_type":"H264","h264_params":{"profile_level_id":"42E034"}}"#)
            .video
        #expect(try SoraCodecs.video(video, default: .vp9).formatValue("profile-level-id") == "42e034")
        #expect(try SoraCodecs.video(SoraConnect.Media(), default: .av1).name == .av1)
        for (name, codec) in [("VP8", CodecName.vp8), ("VP9", .vp9), ("AV1", .av1), ("H264", .h264), ("H265", .h265)] {
            var media = SoraConnect.Media()
            media.codec = name
            #expect(try SoraCodecs.video(media, default: .vp8).name == codec)
        }
    }

    @Test(arguments: ["", "plain ~", "\"", "\\", "\n\u{0}\u{7F}", "/", "流れ", "👋", "\u{2028}", "a\u{301}"])
    func `strings survive serialization and parsing`(text: String) throws {
        #expect(try JSONValue(parsing: jsonString(text)) == .string(text))
        var object = JSONObjectWriter()
        object.add("a", text)
        object.add("b", orNull: nil)
        object.add("c", ifPresent: nil)
        object.add("d", 5)
        object.add("e", false)
        #expect(try JSONValue(parsing: object.text) == ["a": .string(text), "b": nil, "d": 5, "e": false])
    }

    /// Mutates captured messages at random places. The result is parsed or refused, and never traps.
    @Test func `damaged messages are read or refused`() {
        var generator = SeededGenerator(seed: 7)
        let seeds = CapturedExchange.all.flatMap { [$0.connect] + $0.after }.map { Array($0.utf8) }
        let marks = Array(#"{}[]",:\0-9eE.tfnu"#.utf8)
        for round in 0..<4000 {
            var bytes = seeds[round % seeds.count]
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes[place] = marks[Int.random(in: 0..<marks.count, using: &generator)]
                case 2: bytes.insert(contentsOf: bytes[place...].prefix(40), at: place)
                default: bytes.removeSubrange(place..<min(bytes.count, place + 8))
                }
                if bytes.isEmpty { bytes = [0x7B] }
            }
            let close = Self.close(String(decoding: bytes, as: UTF8.self))
            #expect(close == nil || close?.close.code == 4490)
        }
    }
}
