/// The parameters that a decoder needs before the first frame of a track.
package enum CodecConfiguration: Hashable, Sendable {
    case h264(H264Configuration)
    case h265(H265Configuration)
    case av1(AV1Configuration)
    case vp8(VPConfiguration)
    case vp9(VPConfiguration)
    case opus(OpusConfiguration)
    case aac(AACConfiguration)
    /// MP3, Speex or G.711, which are decoded without a record.
    case plain(PlainAudioConfiguration)

    /// The codec that the configuration is of.
    package var codec: MediaCodec {
        switch self {
        case .h264: .h264
        case .h265: .h265
        case .av1: .av1
        case .vp8: .vp8
        case .vp9: .vp9
        case .opus: .opus
        case .aac: .aac
        case .plain(let plain): plain.codec
        }
    }

    /// The size of the pictures after cropping, in pixels, before rotation; `nil` for audio, or where no parameter
    /// tells it.
    package var size: PictureSize? {
        switch self {
        case .h264(let record): record.size
        case .h265(let record): record.size
        case .av1(let record): record.size
        case .vp8(let record), .vp9(let record): record.size
        case .opus, .aac, .plain: nil
        }
    }

    /// Samples each second of the decoded audio; `nil` for video. Opus always has 48,000.
    package var sampleRate: Int? {
        switch self {
        case .opus: OpusConfiguration.sampleRate
        case .aac(let record): record.outputSampleRate
        case .plain(let plain): plain.sampleRate
        case .h264, .h265, .av1, .vp8, .vp9: nil
        }
    }

    /// Audio channels; `nil` for video.
    package var channels: Int? {
        switch self {
        case .opus(let record): record.channels
        case .aac(let record): record.outputChannels
        case .plain(let plain): plain.channels
        case .h264, .h265, .av1, .vp8, .vp9: nil
        }
    }

    /// The pictures each second that the parameters tell; `nil` where they tell nothing.
    package var frameRate: Double? {
        switch self {
        case .h264(let record): record.parameters?.frameRate
        case .h265(let record): record.parameters?.frameRate
        case .av1, .vp8, .vp9, .opus, .aac, .plain: nil
        }
    }

    /// The record of the codec's binding to MP4, as FLV and RTMP carry it too: avcC, hvcC, av1C, vpcC and
    /// AudioSpecificConfig without box headers, and for Opus the payload of `dOps`. Empty for codecs without a record.
    package var record: [UInt8] {
        switch self {
        case .h264(let record): record.encoded
        case .h265(let record): record.encoded
        case .av1(let record): record.encoded
        case .vp8(let record), .vp9(let record): record.encoded
        case .opus(let record): record.dOps
        case .aac(let record): record.encoded
        case .plain: []
        }
    }
}

/// The width and height of a picture in pixels, each 1…``FormatLimits/pixelsMax``.
package struct PictureSize: Hashable, Sendable {
    /// Pixels of a row.
    package let width: Int
    /// Rows.
    package let height: Int

    /// `nil` for a side that is not positive or is longer than ``FormatLimits/pixelsMax``.
    package init?(width: Int, height: Int) {
        guard (1...FormatLimits.pixelsMax).contains(width), (1...FormatLimits.pixelsMax).contains(height) else {
            return nil
        }
        self.width = width
        self.height = height
    }
}

/// The parameters of audio that is decoded without a record.
package struct PlainAudioConfiguration: Hashable, Sendable {
    /// MP3, Speex, PCMA or PCMU.
    package let codec: MediaCodec
    /// Samples each second. The header of each MP3 frame has the true one.
    package let sampleRate: Int
    /// Channels, 1 or 2.
    package let channels: Int

    /// Creates the parameters of a codec without a record.
    package init(codec: MediaCodec, sampleRate: Int, channels: Int) {
        self.codec = codec
        self.sampleRate = sampleRate
        self.channels = channels
    }
}
