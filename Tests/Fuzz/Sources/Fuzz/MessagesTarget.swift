import Negotiation
import Wire

@testable import Access
@testable import Ayame
@testable import ChannelTypes
@testable import JSON
@testable import Sora
@testable import Web

/// A message of a Sora client over its WebSocket, or a call over its data channel `rpc`.
func fuzzSora(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    if input.flag() {
        let permitted = input.flag() ? SoraRPC.Method.allCases : [.sora(.requestSimulcastRID)]
        check(SoraRPC.request(input.rest(), permitted: permitted, from: Sample.caller), permitted)
        return
    }
    let limits = input.pick([JSONLimits.standard, .unauthenticated])
    let text = String(decoding: input.rest(), as: UTF8.self)
    _ = SoraClientMessage.isStatistics(text)
    do {
        switch try SoraClientMessage(decoding: text, limits: limits) {
        case .connect(let connect): check(connect)
        case .request(let members, let byteCount):
            check(ChannelRequest(JSONFields(members), byteCount: byteCount, from: Sample.caller.connection), [])
        case .pong(let reports), .statistics(let reports):
            require(reports?.array != nil || reports == nil, "reports are a list")
        case .answer, .candidate, .disconnect, .ignored: break
        }
    } catch {
        requireSendable(error.close, error.message)
    }
}

private func check(_ connect: SoraConnect) {
    require((connect.notifyMetadata?.bytes.count ?? 0) <= SoraConnect.notifyMetadataBytesMax, "metadata is bounded")
    require((connect.metadata?.bytes.count ?? 0) <= SoraConnect.metadataBytesMax, "metadata is bounded")
    require(Set(connect.dataChannels.map(\.label)).count == connect.dataChannels.count, "labels are distinct")
    require(Set(connect.messageLabels).count == connect.messageLabels.count, "labels are distinct")
    require(!(connect.clientID ?? "").unicodeScalars.contains(where: \.isControl), "a client ID can be printed")
    do {
        _ = try SoraCodecs.audio(connect.audio)
        let codec = try SoraCodecs.video(connect.video, default: .vp9)
        require(codec.isOfferable, "the codec can be offered")
    } catch {
        fatalError("broken: the codecs of an accepted message are known: \(error.message)")
    }
}

private func check(_ request: ChannelRequest, _ permitted: [SoraRPC.Method]) {
    switch request.reply {
    case .response(let id), .rpc(let id):
        require((try? JSONValue(parsing: id)) != nil, "an id is JSON")
        require(id.utf8.count <= ChannelRequest.idBytesMax + 2, "an id is bounded")
    case .none: break
    }
    switch request.method {
    case .failure(let failure): require(!failure.message.isEmpty, "a failure has a sentence")
    case .success(.putMetadata(let change, _)):
        require(permitted.contains(.sora(.putMetadata)), "the method is permitted")
        for present in [nil, "{\"a\":1}", "[]"] {
            guard let metadata = try? change.applied(to: present) else { continue }
            require(metadata.bytes.count <= SoraConnect.notifyMetadataBytesMax, "metadata is bounded")
        }
    case .success: break
    }
}

private func requireSendable(_ close: WebSocketClose, _ message: String) {
    require(WebSocketClose.isLegal(close.code), "a server may send the code")
    require(close.reason.utf8.count <= WebSocketClose.reasonBytesMax, "a reason fits in a frame")
    require(!message.isEmpty, "a close has a sentence")
}

extension Sample {
    fileprivate static let caller = makeCaller()

    private static func makeCaller() -> SoraRPC.Caller {
        guard let channel = ChannelName("lobby") else { fatalError("not a channel") }
        var generator = SeededGenerator(seed: 1)
        return SoraRPC.Caller(channel: channel, connection: ParticipantID(using: &generator))
    }
}

func seedsSora() -> [(name: String, bytes: [UInt8])] {
    let connect = """
        {"type":"connect","role":"sendrecv","channel_id":"lobby","client_id":"c","bundle_id":"b","sora_client":"SDK 1",\
        "environment":"e","libwebrtc":"M130","metadata":{"access_token":"t"},"signaling_notify_metadata":{"a":1},\
        "multistream":true,"simulcast":true,"simulcast_request_rid":"r0","spotlight":true,"spotlight_number":2,\
        "spotlight_focus_rid":"r1","spotlight_unfocus_rid":"none","data_channel_signaling":true,\
        "ignore_disconnect_websocket":true,"redirect":false,\
        "data_channels":[{"label":"#a","direction":"sendrecv","ordered":true,"max_retransmits":1,"compress":true,\
        "header":[{"type":"sender_connection_id"}]}],\
        "forwarding_filters":[{"action":"block","rules":[[{"field":"kind","operator":"is_in","values":["audio"]}]]}],\
        "audio":{"codec_type":"OPUS","bit_rate":64,"opus_params":{"channels":2,"minptime":10,"usedtx":true}},\
        "video":{"codec_type":"H264","bit_rate":500,"h264_params":{"profile_level_id":"42e01f","b_frame":false}}}
        """
    let extended = """
        {"type":"connect","role":"sendrecv","channel_id":"lobby","video":{"codec_type":"VP9","vp9_params":{"profile_id":0}},\
        "audio":false,"nagare":{"profile":"interactive","role":"host","source":"screen","subscribe":"manual","resume":"t",\
        "messages":["#m"]}}
        """
    let messages = [
        #"{"type":"answer","sdp":"v=0"}"#, #"{"type":"candidate","candidate":""}"#,
        #"{"type":"pong","stats":[{"id":"a"}]}"#,
        #"{"type":"stats","reports":[]}"#, #"{"type":"disconnect","reason":"r"}"#, #"{"type":"x"}"#,
        #"{"type":"request","id":1,"method":"setRole","params":{"role":"host"}}"#,
        #"{"type":"request","id":"a","method":"setMuted","params":{"kind":"audio","muted":true}}"#,
        #"{"type":"request","id":2,"method":"subscribe","params":{"user_id":"u","kind":"video","source":"screen"}}"#,
        #"{"type":"request","id":3,"method":"refreshToken","params":{"access_token":"t"}}"#,
    ]
    let calls = [
        (
            "2025.2.0/RequestSimulcastRid",
            #""rid":"r0","channel_id":"lobby","sender_connection_id":"\#(Sample.caller.connection.value)""#
        ),
        ("2025.2.0/RequestSpotlightRid", #""spotlight_focus_rid":"r2","spotlight_unfocus_rid":"r0""#),
        ("2025.2.0/ResetSpotlightRid", ""), ("2025.2.0/PutSignalingNotifyMetadata", #""metadata":{"a":1},"push":true"#),
        ("2025.2.0/PutSignalingNotifyMetadataItem", #""key":"k","value":[1],"push":false"#),
    ]
    return [("connect", [0, 0] + Array(connect.utf8)), ("connect-extended", [0, 1] + Array(extended.utf8))]
        + messages.enumerated().map { ("message-\($0.offset + 1)", [0, 0] + Array($0.element.utf8)) }
        + calls.enumerated().map { index, call in
            let text = #"{"jsonrpc":"2.0","id":\#(index),"method":"\#(call.0)","params":{\#(call.1)}}"#
            return ("call-\(index + 1)", [1, 1] + Array(text.utf8))
        }
}

/// A message of a client of the Ayame protocol.
func fuzzAyame(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let limits = input.pick([JSONLimits.standard, .unauthenticated])
    do {
        let message = try AyameClientMessage(decoding: String(decoding: input.rest(), as: UTF8.self), limits: limits)
        guard case .register(let registration) = message else { return }
        require((1...255).contains(registration.clientID?.utf8.count ?? 1), "a client ID is bounded")
        require(!(registration.clientID ?? "").unicodeScalars.contains(where: \.isControl), "it can be printed")
        require(
            (registration.credentials.signalingKey?.utf8.count ?? 0) <= AyameCredentials.keyBytesMax,
            "keys are bounded"
        )
        require(registration.agent.name == registration.client ?? "", "the software is the client's")
    } catch {
        requireSendable(error.close, error.message)
    }
}

func seedsAyame() -> [(name: String, bytes: [UInt8])] {
    let messages = [
        """
        {"type":"register","roomId":"lobby","clientId":"c","signalingKey":"k","authnMetadata":{"a":1},"ayameClient":"SDK",\
        "libwebrtc":"M130","environment":"e","standalone":true,"media":"server"}
        """,
        #"{"type":"register","roomId":"lobby","key":"old","media":"direct"}"#, #"{"type":"offer","sdp":"v=0"}"#,
        #"{"type":"answer","sdp":"v=0"}"#, #"{"type":"candidate","ice":{}}"#, #"{"type":"connected"}"#,
        #"{"type":"pong"}"#, #"{"type":"bye"}"#,
    ]
    return messages.enumerated().map { ("message-\($0.offset + 1)", [0] + Array($0.element.utf8)) }
}
