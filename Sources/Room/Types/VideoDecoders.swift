public import Wire

/// Which video codecs the viewers of a channel can play, as far as their sessions say.
///
/// A session over WHEP names every codec that its viewer takes. One of Sora's clients names only those that were offered
/// to it, so it is not counted: libwebrtc and browsers play what a node offers by default.
public struct VideoDecoders: Hashable, Sendable, Codable {
    /// Viewers whose codecs are known.
    public private(set) var viewers = 0
    private var counts: [CodecName: Int] = [:]

    public init() {}

    /// What each client that sends video can send, the most common first.
    private static let common: [CodecName] = [.vp8, .h264]

    /// The codec for a sender that leaves the choice to the node: `preferred` where all viewers that are known play it,
    /// and else whichever of `preferred`, VP8 and H.264 most of them play.
    public func choice(preferred: CodecName) -> CodecName {
        let count = { (codec: CodecName) in counts[codec] ?? 0 }
        guard count(preferred) < viewers else { return preferred }
        return Self.common.reduce(preferred) { count($1) > count($0) ? $1 : $0 }
    }

    mutating func add(_ change: Int, _ codecs: Set<CodecName>) {
        viewers += change
        for codec in codecs {
            let count = (counts[codec] ?? 0) + change
            counts[codec] = count > 0 ? count : nil
        }
    }
}
