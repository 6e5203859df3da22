public import Wire

/// A track that the client rejected because it supports none of its codecs.
public struct UnsupportedTrack: Hashable, Sendable {
    /// The remote stream's `id`.
    public let streamID: String
    /// The offered m-section of the track.
    public let mid: MID
    /// The first codec that was offered.
    public let codec: CodecName

    public init(streamID: String, mid: MID, codec: CodecName) {
        self.streamID = streamID
        self.mid = mid
        self.codec = codec
    }
}
