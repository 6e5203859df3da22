package import Base
package import Wire

/// A codec that a live source sends, over RTP or RTMP.
package enum MediaCodec: String, Hashable, Sendable, CaseIterable {
    case h264, h265, av1, vp8, vp9
    case opus, aac, mp3, speex
    /// G.711 A-law.
    case pcma
    /// G.711 µ-law.
    case pcmu

    /// Whether the codec is of audio or of video.
    package var kind: MediaKind {
        switch self {
        case .h264, .h265, .av1, .vp8, .vp9: .video
        case .opus, .aac, .mp3, .speex, .pcma, .pcmu: .audio
        }
    }

    /// The codec of an RTP payload format. RED carries another codec: `nil`.
    package init?(_ name: CodecName) {
        switch name {
        case .opus: self = .opus
        case .vp8: self = .vp8
        case .vp9: self = .vp9
        case .av1: self = .av1
        case .h264: self = .h264
        case .h265: self = .h265
        case .red: return nil
        }
    }

    /// The RTP payload format that the server forwards; `nil` for the codecs of RTMP alone.
    package var rtpName: CodecName? {
        switch self {
        case .opus: .opus
        case .vp8: .vp8
        case .vp9: .vp9
        case .av1: .av1
        case .h264: .h264
        case .h265: .h265
        case .aac, .mp3, .speex, .pcma, .pcmu: nil
        }
    }
}

/// One coded picture or audio packet of a track, from RTP or RTMP alike.
///
/// Times count from the stream's origin, which all tracks of a publisher share. It is arbitrary; writers subtract their
/// own start. A time in nanoseconds keeps the exact tick of each clock in use (1 kHz, 44.1 kHz, 48 kHz, 90 kHz),
/// because it is rounded to the nearest tick: see ``MediaFrame/ticks(_:per:)``.
package struct MediaFrame: Hashable, Sendable {
    /// The codec of ``bytes``.
    package var codec: MediaCodec
    /// When the frame is decoded, in nanoseconds since the stream's origin. Ascends within a track.
    package var decodeTime: Interval
    /// When the frame is shown or heard, in nanoseconds since the stream's origin. Differs from ``decodeTime`` with
    /// B-frames only, and is then usually later.
    package var presentationTime: Interval
    /// Whether a decoder can start here. Always `true` for audio.
    package var isKey: Bool
    /// Whether no other frame refers to this one, so that it can be left out without harm to others.
    package var isDiscardable: Bool
    /// The frame as MP4 has it, at most ``FormatLimits/frameBytesMax`` bytes:
    /// - H.264, H.265: one access unit, each NAL unit after its length in four bytes, without parameter sets,
    ///   delimiters and filler (ISO/IEC 14496-15 §5.3.3);
    /// - AV1: one temporal unit of OBUs with sizes, without temporal delimiters (AV1-ISOBMFF §2.4);
    /// - VP8, VP9: one frame, for VP9 with spatial layers one superframe;
    /// - Opus: one packet; AAC: one raw_data_block without an ADTS header; others: the bytes of one message.
    package var bytes: [UInt8]
    /// The configuration that this frame and those after it belong to, on the first frame of a track and when it
    /// changed; `nil` when it is that of the frame before.
    package var configuration: CodecConfiguration?

    /// Whether the frame is of audio or of video.
    package var kind: MediaKind { codec.kind }

    /// Creates a frame. Without a presentation time, the frame is shown when it is decoded.
    package init(
        codec: MediaCodec,
        decodeTime: Interval,
        presentationTime: Interval? = nil,
        isKey: Bool,
        isDiscardable: Bool = false,
        bytes: [UInt8],
        configuration: CodecConfiguration? = nil
    ) {
        self.codec = codec
        self.decodeTime = decodeTime
        self.presentationTime = presentationTime ?? decodeTime
        self.isKey = isKey
        self.isDiscardable = isDiscardable
        self.bytes = bytes
        self.configuration = configuration
    }

    /// The nearest tick of a clock.
    /// - Parameter rate: ticks each second, 1…1,000,000.
    package static func ticks(_ time: Interval, per rate: Int) -> Int64 {
        let rate = Int64(clamping: min(max(rate, 1), 1_000_000))
        let seconds = time.nanoseconds / 1_000_000_000
        let rest = time.nanoseconds % 1_000_000_000
        let half: Int64 = rest < 0 ? -500_000_000 : 500_000_000
        return seconds &* rate &+ (rest &* rate &+ half) / 1_000_000_000
    }

    /// The time of a tick of a clock, rounded to the nearest nanosecond.
    /// - Parameter rate: ticks each second, 1…1,000,000.
    package static func time(ticks: Int64, per rate: Int) -> Interval {
        let rate = Int64(clamping: min(max(rate, 1), 1_000_000))
        let rest = ticks % rate
        let half = rest < 0 ? -rate / 2 : rate / 2
        return Interval(nanoseconds: (ticks / rate) &* 1_000_000_000 &+ (rest &* 1_000_000_000 &+ half) / rate)
    }
}

/// How a picture is turned clockwise before it is shown (3GPP TS 26.114 §7.4.5, the `urn:3gpp:video-orientation`
/// extension).
package enum PictureRotation: Int, Hashable, Sendable, CaseIterable {
    case none = 0
    case clockwise90 = 90
    case clockwise180 = 180
    case clockwise270 = 270
}
