extension CodecConfiguration {
    /// The codecs parameter of MIME types and `CODECS` of HLS (RFC 6381 §3); `nil` for a codec that has none in MP4.
    package var codecs: String? {
        switch self {
        case .h264(let record): record.codecs
        case .h265(let record): record.codecs
        case .av1(let record): record.codecs
        case .vp8(let record): "vp08." + record.codecFields
        case .vp9(let record): "vp09." + record.codecFields
        case .opus: "opus"
        case .aac(let record): record.codecs
        case .plain(let plain): plain.codec == .mp3 ? "mp4a.40.34" : nil
        }
    }
}
