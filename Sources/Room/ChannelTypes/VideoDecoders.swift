package import Wire

/// The video codecs that the viewers of a channel can decode.
///
/// A WHEP viewer's offer lists every codec that it can decode. A Sora client's answer lists only codecs that were
/// offered to it, so it is not counted before it refuses one: libwebrtc and browsers decode what a node offers by default.
package struct VideoDecoders: Hashable, Sendable, Codable {
    /// Viewers whose codecs are known.
    package private(set) var viewers = 0
    private var counts: [CodecName: Int] = [:]

    package init() {}

    /// Codecs that every client with video can send, the most common first.
    private static let common: [CodecName] = [.vp8, .h264]

    /// The codec for a sender that leaves the choice to the node: `preferred` if all known viewers can decode it,
    /// otherwise the one of `preferred`, VP8 and H.264 that most of them can decode.
    package func choice(preferred: CodecName) -> CodecName {
        let count = { (codec: CodecName) in counts[codec] ?? 0 }
        guard count(preferred) < viewers else { return preferred }
        return Self.common.reduce(preferred) { count($1) > count($0) ? $1 : $0 }
    }

    package mutating func add(_ change: Int, _ codecs: Set<CodecName>) {
        viewers += change
        for codec in codecs {
            let count = (counts[codec] ?? 0) + change
            counts[codec] = count > 0 ? count : nil
        }
    }
}
