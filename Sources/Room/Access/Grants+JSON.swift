import Base
import ChannelTypes
package import JSON
import Wire

extension Grants {
    /// The longest `connection_lifetime`: 30 days, in seconds.
    package static let lifetimeSecondsMax = 30 * 86_400
    /// The most entries of a list of encodings.
    private static let encodingsMax = 8
    /// The most entries of `rpc_methods`. Five methods exist.
    private static let rpcMethodsMax = 64
    /// The highest permitted bit rates in kbit/s: Opus's own limit, and limits far above any camera.
    package static let audioKbpsMax = 510
    package static let videoKbpsMax = 100_000
    package static let publishKbpsMax = 1_000_000
    package static let receiveKbpsMax = 1_000_000

    /// All grants. Whatever else is in claims or in an answer has no effect, and is listed in ``ignored``.
    package static let names: Set<String> = [
        "client_id", "bundle_id", "audio", "audio_codec_type", "audio_bit_rate", "audio_opus_params", "video",
        "video_codec_type",
        "video_bit_rate", "video_vp9_params", "video_av1_params", "video_h264_params", "video_h265_params", "metadata",
        "event_metadata", "signaling_notify", "signaling_notify_metadata", "signaling_notify_ice_connection_state",
        "simulcast",
        "simulcast_rid", "simulcast_request_rid", "simulcast_encodings", "spotlight", "spotlight_number",
        "spotlight_focus_rid",
        "spotlight_unfocus_rid", "spotlight_encodings", "user_agent_stats", "connection_lifetime", "publish_bit_rate",
        "receive_bit_rate", "forwarding_filter", "forwarding_filters", "turn_tcp_only", "turn_tls_only",
        "data_channel_signaling",
        "ignore_disconnect_websocket", "data_channels", "rpc_methods", "nagare",
    ]

    /// Parses the grants of an authentication webhook's answer or a token's claims.
    /// - Parameter others: The members that are no grants and have a meaning of their own.
    /// - Throws: a sentence that names the first invalid member.
    package init(_ members: [String: JSONValue], besides others: Set<String> = []) throws(JSONShapeError) {
        let fields = JSONFields(members)
        // What is false or null asks for nothing that the node would not do.
        ignored =
            members.filter { name, value in
                !Self.names.contains(name) && !others.contains(name) && !value.isNull && value.bool != false
            }
            .keys.sorted()
        options = try StatedOptions(in: fields)
        if let members = try fields.object("nagare") {
            permissions.moderates = try JSONFields(members).bool("moderate") ?? false
        }
        clientID = try Self.identifier(fields, "client_id")
        bundleID = try Self.identifier(fields, "bundle_id")
        audio = try Self.media(fields, "audio", ["opus_params"], kbps: 6...Self.audioKbpsMax)
        video = try Self.media(
            fields,
            "video",
            ["vp9_params", "av1_params", "h264_params", "h265_params"],
            kbps: 1...Self.videoKbpsMax
        )
        if let codec = audio.codec, codec != "OPUS" { throw JSONShapeError("\"audio_codec_type\" has to be \"OPUS\".") }
        metadata = fields.value("metadata")
        eventMetadata = fields.value("event_metadata")
        notifies = try fields.bool("signaling_notify")
        notifyMetadata = fields.value("signaling_notify_metadata")
        notifiesICEState = try fields.bool("signaling_notify_ice_connection_state")
        try readSimulcast(fields)
        try readSpotlight(fields)
        userAgentStatistics = try fields.bool("user_agent_stats")
        permissions.lifetime = try fields.integer("connection_lifetime", 1...Self.lifetimeSecondsMax)
            .map { .seconds($0) }
        permissions.publishBitsPerSecondMax = try fields.integer("publish_bit_rate", 1...Self.publishKbpsMax)
            .map { $0 * 1_000 }
        permissions.receiveBitsPerSecondMax = try fields.integer("receive_bit_rate", 1...Self.receiveKbpsMax)
            .map { $0 * 1_000 }
        if audio.isEnabled == false { permissions.kinds.remove(.audio) }
        if video.isEnabled == false { permissions.kinds.remove(.video) }
        forwardingFilters = try ForwardingFilter.list(fields)
        turnTCPOnly = try fields.bool("turn_tcp_only")
        turnTLSOnly = try fields.bool("turn_tls_only")
        dataChannelSignaling = try fields.bool("data_channel_signaling")
        ignoresWebSocketLoss = try fields.bool("ignore_disconnect_websocket")
        dataChannels = try RequestedDataChannel.list(fields)
        rpcMethods = try fields.strings("rpc_methods", countMax: Self.rpcMethodsMax)
    }

    /// `nil` for an empty identifier, as for clients.
    private static func identifier(_ fields: JSONFields, _ name: String) throws(JSONShapeError) -> String? {
        guard let identifier = try fields.string(name), !identifier.isEmpty else { return nil }
        return identifier
    }

    /// `audio_bit_rate` and other options of a kind require `audio: true`.
    private static func media(
        _ fields: JSONFields,
        _ kind: String,
        _ parameters: [String],
        kbps: ClosedRange<Int>
    ) throws(JSONShapeError) -> Media {
        var media = Media()
        media.isEnabled = try fields.bool(kind)
        media.codec = try fields.string("\(kind)_codec_type", bytesMax: 16)
        media.bitRate = try fields.integer("\(kind)_bit_rate", kbps)
        for name in parameters {
            if let object = try fields.object("\(kind)_\(name)") { media.parameters[name] = .object(object) }
        }
        let hasOptions = media.codec != nil || media.bitRate != nil || !media.parameters.isEmpty
        if hasOptions, media.isEnabled != true {
            throw JSONShapeError("\"\(kind)_codec_type\" and other options of \(kind) require \"\(kind)\": true.")
        }
        return media
    }

    private mutating func readSimulcast(_ fields: JSONFields) throws(JSONShapeError) {
        isSimulcast = try fields.bool("simulcast")
        let older: RequestedRID? = try fields.choice("simulcast_rid")
        requestedRID = try fields.choice("simulcast_request_rid") ?? older
        simulcastEncodings = try Self.encodings(fields, "simulcast_encodings")
    }

    private mutating func readSpotlight(_ fields: JSONFields) throws(JSONShapeError) {
        spotlight = try fields.bool("spotlight")
        spotlightNumber = try fields.integer("spotlight_number", 1...8)
        spotlightFocusRID = try fields.choice("spotlight_focus_rid")
        spotlightUnfocusRID = try fields.choice("spotlight_unfocus_rid")
        spotlightEncodings = try Self.encodings(fields, "spotlight_encodings")
    }

    private static func encodings(
        _ fields: JSONFields,
        _ name: String
    ) throws(JSONShapeError) -> [[String: JSONValue]]? {
        guard let encodings = try fields.objects(name, countMax: encodingsMax) else { return nil }
        var seen: Set<String> = []
        for encoding in encodings {
            guard let rid = encoding["rid"]?.string, ["r0", "r1", "r2"].contains(rid), seen.insert(rid).inserted else {
                throw JSONShapeError("Each of \"\(name)\" needs a \"rid\" of its own: \"r0\", \"r1\" or \"r2\".")
            }
        }
        return encodings
    }
}
