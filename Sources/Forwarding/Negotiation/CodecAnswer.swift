internal import MediaTypes
import Wire

/// Whether the server can forward a format. Other formats are skipped as if they were not offered.
///
/// A clock rate or channel count other than the codec's is never forwardable: no sender produces it.
func isForwardable(_ codec: CodecParameters) -> Bool {
    guard codec.clockRate == codec.name.clockRate, codec.channels == codec.name.channels else { return false }
    switch codec.name {
    case .h264:
        // Interleaved mode (2) is not used by WebRTC (RFC 7742 §6.2).
        let mode = codec.formatValue("packetization-mode") ?? "0"
        return (mode == "0" || mode == "1")
            && H264Profile(profileLevelID: codec.formatValue("profile-level-id")) != nil
    case .h265: return (codec.formatValue("tx-mode") ?? "srst").lowercased() == "srst"
    case .opus, .red, .vp8, .vp9, .av1: return true
    }
}

/// The `a=fmtp` to answer for an offered format.
///
/// Parameters that describe the format are echoed. Parameters that describe the offerer's own stream or preferences
/// (`sprop-…`, `x-google-…`, `max-fs`, …) are not: in the answer they would describe the server.
func answerFormat(for codec: CodecParameters, flow: MediaFlow) -> [FormatParameter] {
    let echoed: [String]
    switch codec.name {
    case .opus:
        echoed = ["minptime", "maxptime", "ptime", "useinbandfec", "usedtx", "stereo", "maxaveragebitrate", "cbr"]
    case .red: return codec.format
    case .vp8: return []
    case .vp9: echoed = ["profile-id"]
    case .av1: echoed = ["level-idx", "profile", "tier"]
    case .h264: echoed = ["level-asymmetry-allowed", "packetization-mode", "profile-level-id"]
    case .h265: echoed = ["level-id", "profile-id", "tier-flag", "tx-mode"]
    }
    var format = codec.format.filter { echoed.contains($0.key) }
    if codec.name == .opus {
        let isStereo = codec.formatValue("stereo") == "1"
        switch flow {
        case .fromPeer:
            // A browser encodes two channels only if the answer has `stereo` (RFC 7587 §7.1).
            if codec.formatValue("sprop-stereo") == "1", codec.formatValue("stereo") == nil {
                format.append(FormatParameter(key: "stereo", value: "1"))
            }
        case .toPeer:
            if isStereo { format.append(FormatParameter(key: "sprop-stereo", value: "1")) }
        }
    }
    return format
}

/// The direction of a section's media, seen from the local side.
enum MediaFlow: Hashable, Sendable { case fromPeer, toPeer }
