package import Base

/// The limits of what a client may send, and of how long it may take.
package enum RTMPLimits {
    /// The largest chunk that a client may send, in bytes. OBS sends 4,096, FFmpeg 65,536.
    package static let chunkBytesMax = 65_536
    /// Chunk streams of one client. Encoders use two to six.
    package static let chunkStreamsMax = 16
    /// A message before publish is accepted, in bytes. A `connect` has 100 to 1,000.
    package static let earlyMessageBytesMax = 4_096
    /// Incomplete messages before publish is accepted, in bytes, of all chunk streams together.
    package static let earlyIncompleteBytesMax = 16_384
    /// A message of a publisher, in bytes: a key frame of 8,192 pixels at the lowest compression in use.
    package static let messageBytesMax = 8 << 20
    /// Incomplete messages of a publisher, in bytes, of all chunk streams together: two of the longest.
    package static let incompleteBytesMax = 16 << 20
    /// A command or metadata of a publisher, in bytes.
    package static let commandBytesMax = 65_536
    /// Bytes that come behind a request to publish until it is answered.
    package static let deferredBytesMax = 81_920
    /// Deferred bytes from which the owner should not read on. With reads of 64 KiB, a client never exceeds the limit above.
    package static let deferredBytesWanted = 16_384
    /// The description of a refusal, in bytes of UTF-8. What is longer is cut.
    package static let descriptionBytesMax = 1_024

    /// From the connection to the last byte of the handshake.
    package static let handshakeTimeout = Interval.seconds(5)
    /// From the handshake to the request to publish.
    package static let publishTimeout = Interval.seconds(10)
    /// Between two bytes of a publisher.
    package static let silenceTimeout = Interval.seconds(10)
    /// From the last message of ours to the close, so that an encoder reads the message before it sees the close.
    package static let closeDelay = Interval.milliseconds(300)
}
