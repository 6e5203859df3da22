package import Base
package import MediaFormat
package import Wire

/// An RTP packet of a track, as ``TrackReceiver`` takes it: its header is read, and its payload copied.
package struct ReceivedPacket: Sendable {
    /// The number of the packet's stream, such as a simulcast layer.
    package var stream: UInt64
    /// Whether the stream is at present the layer that was asked for.
    package var isChosen: Bool
    /// The codec of the payload, of a redundant one (RED) that of its blocks.
    package var codec: MediaCodec
    /// Whether the payload is a redundant one (RFC 2198), of which the primary block counts.
    package var isRedundant: Bool
    /// The sequence number, extended over wraps.
    package var sequence: ExtendedSequenceNumber
    package var timestamp: RTPTimestamp
    package var marker: Bool
    /// How the picture is turned, where the packet tells it.
    package var rotation: PictureRotation?
    /// Empty for a packet of padding, which only closes the order.
    package var payload: [UInt8]
    package var arrivedAt: Instant

    package init(
        stream: UInt64,
        isChosen: Bool = true,
        codec: MediaCodec,
        isRedundant: Bool = false,
        sequence: ExtendedSequenceNumber,
        timestamp: RTPTimestamp,
        marker: Bool,
        rotation: PictureRotation? = nil,
        payload: [UInt8],
        arrivedAt: Instant
    ) {
        self.stream = stream
        self.isChosen = isChosen
        self.codec = codec
        self.isRedundant = isRedundant
        self.sequence = sequence
        self.timestamp = timestamp
        self.marker = marker
        self.rotation = rotation
        self.payload = payload
        self.arrivedAt = arrivedAt
    }
}

/// The limits of what a receiver of frames holds and does.
package enum ReceiveLimits {
    /// Packets of a stream that wait for an earlier one. A 4K key frame has some 500.
    package static let waitingPacketsMax = 2_048
    /// Their bytes.
    package static let waitingBytesMax = 4 << 20
    /// The longest wait for a packet that is missing. Retransmissions take a few round trips.
    package static let patienceMax = Interval.milliseconds(500)
    /// Streams of one track: simulcast layers, and a source that was restarted.
    package static let streamsMax = 4
    /// Frames that wait for the clocks of a publisher.
    package static let heldFramesMax = 200
    /// Silence that stands for missing audio. A longer gap stays one.
    package static let silenceMax = Interval.seconds(5)
}
