import JSON
import MediaTypes
import Negotiation
import Wire

/// The codecs that Sora clients can choose, with their parameter objects.
enum SoraCodecs {
    static let parameterNames = ["opus_params", "vp9_params", "av1_params", "h264_params", "h265_params"]

    private static let videoNames: [String: CodecName] = [
        "VP8": .vp8, "VP9": .vp9, "AV1": .av1, "H264": .h264, "H265": .h265,
    ]

    /// The name of a codec in messages.
    static func name(of codec: CodecName) -> String { codec.rawValue.uppercased() }

    /// The bit rate of a sender that asks for none, in bit/s. libwebrtc sends 32 kbit/s where the offer does not permit two channels,
    /// and 64 kbit/s where it does, also of a source with one: of a microphone 19 and 48 kbit/s, and 35 with this bound.
    private static let audioBitrate = 48_000

    /// The format of the audio that the client sends. Two channels are heard without being asked for.
    static func audio(_ media: SoraConnect.Media) throws(SoraClose) -> CodecParameters {
        guard media.codec == nil || media.codec == "OPUS" else {
            throw unknown(media.codec, "audio", "\"OPUS\"")
        }
        do {
            var opus = try opusParameters(JSONFields(media.parameters["opus_params"]?.object ?? [:]))
            opus.stereo = opus.stereo ?? true
            if opus.stereo == true, media.bitRate == nil { opus.maxAverageBitrate = audioBitrate }
            return .offered(.opus, format: opus.format)
        } catch {
            throw SoraClose(
                .invalidAudioFormat,
                "The audio parameters are refused: \(error.message)",
                mistake: error.message
            )
        }
    }

    /// The format of the video that the client sends.
    static func video(_ media: SoraConnect.Media, default name: CodecName) throws(SoraClose) -> CodecParameters {
        guard let name = media.codec.map({ videoNames[$0] }) ?? name else {
            throw unknown(media.codec, "video", "\"VP8\", \"VP9\", \"AV1\", \"H264\" or \"H265\"")
        }
        var codec = CodecParameters.offered(name)
        do {
            switch name {
            case .vp9:
                if let profile = try integer(media, "vp9_params", "profile_id", 0...3) {
                    codec.set("profile-id", String(profile))
                }
            case .av1:
                if let profile = try integer(media, "av1_params", "profile", 0...2) {
                    codec.set("profile", String(profile))
                }
            case .h264:
                if let level = try h264ProfileLevel(media) { codec.set("profile-level-id", level) }
            case .h265:
                if let level = try integer(media, "h265_params", "level_id", 30...186) {
                    codec.set("level-id", String(level))
                }
            default: break
            }
        } catch {
            throw SoraClose(
                .invalidVideoFormat,
                "The video parameters are refused: \(error.message)",
                mistake: error.message
            )
        }
        guard codec.isOfferable else {
            throw SoraClose(.invalidVideoFormat, "The video parameters name a profile that the server cannot offer.")
        }
        return codec
    }

    private static func unknown(_ codec: String?, _ kind: String, _ known: String) -> SoraClose {
        SoraClose(.unknownCodecType, "The \(kind) codec \"\(codec ?? "")\" is not one of \(known).")
    }

    private static func opusParameters(_ fields: JSONFields) throws(JSONShapeError) -> OpusParameters {
        _ = try fields.integer("channels", 1...255)
        _ = try fields.integer("clock_rate", 8_000...48_000)
        var opus = OpusParameters()
        opus.maxPlaybackRate = try fields.integer("maxplaybackrate", 8_000...48_000)
        opus.minimumPacketTime = try fields.integer("minptime", 3...120)
        opus.packetTime = try fields.integer("ptime", 3...120)
        opus.stereo = try fields.bool("stereo")
        opus.spropStereo = try fields.bool("sprop_stereo")
        opus.usesInBandFEC = try fields.bool("useinbandfec")
        opus.usesDTX = try fields.bool("usedtx")
        return opus
    }

    private static func integer(
        _ media: SoraConnect.Media,
        _ object: String,
        _ name: String,
        _ range: ClosedRange<Int>
    ) throws(JSONShapeError) -> Int? {
        guard let parameters = media.parameters[object]?.object else { return nil }
        return try JSONFields(parameters).integer(name, range)
    }

    private static func h264ProfileLevel(_ media: SoraConnect.Media) throws(JSONShapeError) -> String? {
        guard let parameters = media.parameters["h264_params"]?.object else { return nil }
        let fields = JSONFields(parameters)
        _ = try fields.bool("b_frame")
        guard let level = try fields.string("profile_level_id", bytesMax: 6) else { return nil }
        guard level.utf8.count == 6, level.allSatisfy(\.isHexDigit) else {
            throw JSONShapeError("\"profile_level_id\" must have six hexadecimal digits.")
        }
        return level.lowercased()
    }
}

extension CodecParameters {
    /// Sets or replaces a format parameter.
    fileprivate mutating func set(_ key: String, _ value: String) {
        format.removeAll { $0.key == key }
        format.append(FormatParameter(key: key, value: value))
    }
}
