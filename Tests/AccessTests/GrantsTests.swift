import ChannelTypes
import JSON
import Testing

@testable import Access

@Suite struct GrantsTests {
    private func grants(_ text: String) throws -> Grants {
        try Grants(try #require(try JSONValue(parsing: text).object))
    }

    @Test func `every grant is parsed`() throws {
        let grants = try grants(
            #"""
            {"allowed":true,"client_id":"c","bundle_id":"b","audio":true,"audio_codec_type":"OPUS","audio_bit_rate":64,
             "audio_opus_params":{"usedtx":true},"video":true,"video_codec_type":"VP8","video_bit_rate":800,
             "video_h264_params":{"profile_level_id":"42e01f"},"data_channel_signaling":false,
             "ignore_disconnect_websocket":false,"data_channels":[],"metadata":{"a":[1]},"event_metadata":"e",
             "signaling_notify":false,"signaling_notify_metadata":{"n":1},"signaling_notify_ice_connection_state":true,
             "simulcast":true,"simulcast_request_rid":"r1","simulcast_multicodec":false,
             "simulcast_encodings":[{"rid":"r0","scaleResolutionDownBy":4.0},{"rid":"r1","active":false}],
             "simulcast_rpc_rids":["none","r2"],"spotlight":true,"spotlight_number":3,"spotlight_focus_rid":"r2",
             "spotlight_unfocus_rid":"none","user_agent_stats":true,"connection_lifetime":3600,"publish_bit_rate":4000,
             "receive_bit_rate":1500,
             "rpc_methods":["2025.2.0/RequestSimulcastRid"],"turn_tcp_only":false,"turn_tls_only":true,
             "forwarding_filters":[{"name":"f","priority":1,"action":"block",
                "rules":[[{"field":"kind","operator":"is_in","values":["audio"]}]]}],
             "cluster_affinity":true,"something_else":7}
            """#
        )
        #expect(grants.clientID == "c" && grants.bundleID == "b")
        #expect(grants.audio.isEnabled == true && grants.audio.codec == "OPUS" && grants.audio.bitRate == 64)
        #expect(grants.audio.parameters == ["opus_params": ["usedtx": true]])
        #expect(grants.video.codec == "VP8" && grants.video.bitRate == 800)
        #expect(grants.video.parameters == ["h264_params": ["profile_level_id": "42e01f"]])
        #expect(grants.metadata == ["a": [1]] && grants.eventMetadata == "e" && grants.notifyMetadata == ["n": 1])
        #expect(grants.notifies == false && grants.notifiesICEState == true)
        #expect(grants.isSimulcast == true && grants.requestedRID == .r1)
        #expect(grants.simulcastEncodings?.map { $0["rid"] } == ["r0", "r1"])
        #expect(grants.spotlight == true && grants.spotlightNumber == 3)
        #expect(grants.spotlightFocusRID == .r2 && grants.spotlightUnfocusRID == RequestedRID.none)
        #expect(grants.permissions.publishBitsPerSecondMax == 4_000_000)
        var join = JoinRequest(channel: ChannelName("a")!, role: .sendonly)
        grants.apply(to: &join)
        #expect(join.publishBitsPerSecondMax == 4_000_000 && join.receiveBitsPerSecondMax == 1_500_000)
        #expect(grants.permissions.lifetime == .seconds(3_600) && grants.userAgentStatistics == true)
        #expect(grants.turnTCPOnly == false && grants.turnTLSOnly == true)
        let filter = try #require(grants.forwardingFilters?.first)
        #expect(filter.name == "f" && filter.priority == 1 && filter.action == .block)
        #expect(filter.rules == [[.init(field: .kind, operator: .isIn, values: ["audio"])]])
    }

    @Test func `what has no effect is listed, unless it asks for nothing`() throws {
        let members = try #require(
            try JSONValue(
                parsing:
                    #"{"allowed":true,"audoi":true,"simulcast_multicodec":false,"cluster_affinity":true,"x":null,"nagare":{}}"#
            ).object
        )
        #expect(try Grants(members, besides: ["allowed"]).ignored == ["audoi", "cluster_affinity"])
        #expect(try Grants(members).ignored == ["allowed", "audoi", "cluster_affinity"])
    }

    @Test func `options of the member are granted, and reach members of every protocol`() throws {
        let grants = try grants(#"{"nagare":{"profile":"interactive","source":"screen"}}"#)
        var join = JoinRequest(channel: ChannelName("a")!, role: .sendonly)
        grants.apply(to: &join)
        #expect(join.options == MemberOptions(profile: .interactive, source: .screen))
        #expect(!grants.permissions.moderates)
        #expect(try self.grants(#"{"nagare":{"moderate":true}}"#).permissions.moderates)
        for text in [#"{"nagare":1}"#, #"{"nagare":{"role":"king"}}"#, #"{"nagare":{"moderate":1}}"#] {
            #expect(throws: JSONShapeError.self) { try self.grants(text) }
        }
    }

    @Test func `an empty identifier grants none`() throws {
        let grants = try grants(#"{"client_id":"","bundle_id":""}"#)
        #expect(grants.clientID == nil && grants.bundleID == nil)
    }

    @Test func `nothing granted changes nothing`() throws {
        let grants = try grants(#"{"allowed":true,"client_id":null,"video_bit_rate":null}"#)
        #expect(grants.clientID == nil && grants.video.bitRate == nil && grants.forwardingFilters == nil)
        var join = JoinRequest(channel: ChannelName("a")!, role: .sendonly, clientID: "own")
        grants.apply(to: &join)
        #expect(join.clientID == "own" && join.receivesNotifications && join.lifetime == nil)
    }

    /// 600 values.
    private static let kinds = String(repeating: "\"audio\",", count: 599) + "\"video\""

    /// Two filters, each with `rule` so many times and one that is empty.
    private static func filters(_ rule: String, count: Int) -> String {
        let rules = String(repeating: rule, count: count) + "[]"
        let filter = { (name: String) in #"{"name":"\#(name)","priority":1,"rules":[\#(rules)]}"# }
        return #"{"forwarding_filters":[\#(filter("a")),\#(filter("b"))]}"#
    }

    @Test(arguments: [
        (#"{"client_id":5}"#, #""client_id" has to be a string of at most 255 bytes."#),
        (#"{"audio":"yes"}"#, #""audio" has to be true or false."#),
        (#"{"audio_bit_rate":64}"#, #""audio_codec_type" and other options of audio require "audio": true."#),
        (
            #"{"audio":false,"audio_codec_type":"OPUS"}"#,
            #""audio_codec_type" and other options of audio require "audio": true."#
        ),
        (#"{"video_codec_type":"VP8"}"#, #""video_codec_type" and other options of video require "video": true."#),
        (#"{"audio":true,"audio_codec_type":"PCMU"}"#, #""audio_codec_type" has to be "OPUS"."#),
        (#"{"audio":true,"audio_bit_rate":5}"#, #""audio_bit_rate" has to be a whole number from 6 to 510."#),
        (#"{"publish_bit_rate":0}"#, #""publish_bit_rate" has to be a whole number from 1 to 1000000."#),
        (#"{"receive_bit_rate":0}"#, #""receive_bit_rate" has to be a whole number from 1 to 1000000."#),
        (#"{"connection_lifetime":0}"#, #""connection_lifetime" has to be a whole number from 1 to 2592000."#),
        (#"{"connection_lifetime":1.5}"#, #""connection_lifetime" has to be a whole number from 1 to 2592000."#),
        (#"{"spotlight_number":9}"#, #""spotlight_number" has to be a whole number from 1 to 8."#),
        (
            #"{"simulcast_request_rid":"r3"}"#,
            #""simulcast_request_rid" has to be one of "none", "r0", "r1", "r2", "q", "h", "f"."#
        ),
        (
            #"{"simulcast_encodings":[{"rid":"r0"},{"rid":"r0"}]}"#,
            #"Each of "simulcast_encodings" needs a "rid" of its own: "r0", "r1" or "r2"."#
        ),
        (filters("[],", count: 40), "Forwarding filters may have at most 64 rules in all."),
        (
            filters(#"[{"field":"kind","operator":"is_in","values":[\#(kinds)]}],"#, count: 1),
            "The rules of forwarding filters may have at most 1024 values in all."
        ),
        (#"{"forwarding_filter":{}}"#, #""rules" of a forwarding filter is missing."#),
        (
            #"{"forwarding_filter":{"name":"a","rules":[]}}"#,
            #""name" and "priority" of a forwarding filter go together: give both or neither."#
        ),
        (
            #"{"forwarding_filters":[{"rules":[]},{"rules":[]}]}"#,
            #""forwarding_filters" has two filters of the name "default"."#
        ),
        (
            #"{"forwarding_filter":{"rules":[[{"field":"kind","operator":"is_in","values":["text"]}]]}}"#,
            #""text" is not a kind of media: "values" may have "audio" and "video"."#
        ),
        (
            #"{"forwarding_filter":{"rules":[[{"field":"role","operator":"is_in","values":[]}]]}}"#,
            #""field" has to be "connection_id", "client_id" or "kind"."#
        ),
        (
            #"{"forwarding_filter":{"action":"drop","rules":[]}}"#, #""action" has to be "block" or "allow"."#
        ),
    ])
    func `a grant of the wrong shape is named`(text: String, message: String) {
        #expect(throws: JSONShapeError(message)) { try grants(text) }
    }

    @Test func `the list of filters overrides the single one, and a filter is returned as it was given`() throws {
        let text = #"{"action":"allow","metadata":{"m":1},"name":"n","priority":5,"rules":[[]],"version":"v"}"#
        let filters = try grants(#"{"forwarding_filters":[\#(text)],"forwarding_filter":{"rules":[]}}"#)
            .forwardingFilters
        #expect(filters?.count == 1)
        #expect(filters?.first.map { JSONValue.object($0.json).text } == text)
        let single = try grants(#"{"forwarding_filter":{"rules":[]}}"#).forwardingFilters?.first
        #expect(single?.name == "default" && single?.priority == 32_767 && single?.action == .block)
    }
}
