public import Wire

/// A track that the client refused because it has none of its codecs.
public struct UnsupportedTrack: Hashable, Sendable {
    /// The remote stream's `id`.
    public let streamID: String
    /// The m-line that was offered for the track.
    public let mid: MID
    /// The first codec that was offered.
    public let codec: CodecName

    public init(streamID: String, mid: MID, codec: CodecName) {
        self.streamID = streamID
        self.mid = mid
        self.codec = codec
    }
}
