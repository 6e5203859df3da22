import Base

/// Makes frames of the bodies of FLV tags or RTMP messages: keeps the configurations, extends the timestamps, and
/// brings the bytes into the form of ``MediaFrame/bytes``.
package struct FLVDemuxer: Sendable {
    /// The content of a body.
    package enum Output: Hashable, Sendable {
        /// A sequence header other than the one before. The next frame of the track carries it too.
        case configuration(CodecConfiguration)
        case frame(MediaFrame)
        /// The track ends; a sequence header may follow.
        case endOfSequence(MediaCodec)
    }

    /// Frames that were left out because no sequence header came before them.
    package private(set) var framesWithoutConfiguration = 0
    /// Bodies and tracks in bodies that belong to tracks other than the first.
    package private(set) var otherTracks = 0

    private var clock = FLVClock()
    private var video: CodecConfiguration?
    private var audio: CodecConfiguration?
    private var isVideoNew = false
    private var isAudioNew = false
    private var lengthBytes = 4
    private var builder = AccessUnitBuilder(codec: .h264)

    /// Creates a demuxer of one stream.
    package init() {}

    /// Reads a tag; script data has no output.
    /// - Returns: `nil` when there is nothing for the caller.
    package mutating func receive(_ tag: FLVTag) throws(FormatError) -> Output? {
        let body = unsafe tag.body.span.bytes
        switch tag.type {
        case .video: return try receiveVideo(body, timestamp: tag.timestamp)
        case .audio: return try receiveAudio(body, timestamp: tag.timestamp)
        case .script: return nil
        }
    }

    /// Reads the body of a video tag or message.
    /// - Parameter timestamp: decode time in milliseconds, modulo 2³².
    package mutating func receiveVideo(_ bytes: RawSpan, timestamp: UInt32) throws(FormatError) -> Output? {
        // Encoders end a stream with an empty message.
        guard bytes.byteCount > 0 else { return nil }
        let body = try FLVTagBody(video: bytes)
        otherTracks &+= body.otherTracks
        guard let codec = body.codec else { return nil }
        switch body.packet {
        case .ignored: return nil
        case .endOfSequence: return .endOfSequence(codec)
        case .configuration: return try receiveVideoConfiguration(body.payload, codec)
        case .frame:
            let milliseconds = clock.extend(timestamp)
            guard body.payload.byteCount > 0 else { return nil }
            guard var frame = try makeVideoFrame(body.payload, codec, isMarkedKey: body.isMarkedKey) else { return nil }
            frame.decodeTime = .milliseconds(Int(milliseconds))
            frame.presentationTime = .milliseconds(Int(milliseconds &+ Int64(body.compositionOffsetMS)))
            return .frame(frame)
        }
    }

    /// Reads the body of an audio tag or message.
    /// - Parameter timestamp: in milliseconds, modulo 2³².
    package mutating func receiveAudio(_ bytes: RawSpan, timestamp: UInt32) throws(FormatError) -> Output? {
        guard bytes.byteCount > 0 else { return nil }
        let body = try FLVTagBody(audio: bytes)
        otherTracks &+= body.otherTracks
        guard let codec = body.codec else { return nil }
        switch body.packet {
        case .ignored: return nil
        case .endOfSequence: return .endOfSequence(codec)
        case .configuration:
            switch codec {
            case .aac: return setAudio(.aac(try AACConfiguration(body.payload)))
            case .opus: return setAudio(.opus(try OpusConfiguration(opusHead: body.payload)))
            default: return nil
            }
        case .frame: return receiveAudioFrame(body, codec, timestamp: timestamp)
        }
    }

    private mutating func receiveAudioFrame(
        _ body: borrowing FLVTagBody,
        _ codec: MediaCodec,
        timestamp: UInt32
    ) -> Output? {
        let milliseconds = clock.extend(timestamp)
        let payload = body.payload
        guard payload.byteCount > 0 else { return nil }
        switch codec {
        case .mp3, .pcma, .pcmu, .speex: _ = setAudio(plainConfiguration(body, codec))
        case .opus where audio?.codec != .opus: _ = setAudio(.opus(OpusConfiguration(channels: 2)))
        default: break
        }
        guard let audio, audio.codec == codec else {
            framesWithoutConfiguration &+= 1
            return nil
        }
        defer { isAudioNew = false }
        let frame = MediaFrame(
            codec: codec,
            decodeTime: .milliseconds(Int(milliseconds)),
            isKey: true,
            isDiscardable: true,
            bytes: payload.array(),
            configuration: isAudioNew ? audio : nil
        )
        return .frame(frame)
    }

    /// The classic header cannot tell 48 kHz: the frame of MP3 does.
    private func plainConfiguration(_ body: borrowing FLVTagBody, _ codec: MediaCodec) -> CodecConfiguration {
        let plain = body.plainAudio ?? PlainAudioConfiguration(codec: codec, sampleRate: 44_100, channels: 2)
        guard codec == .mp3, let rate = mp3SampleRate(body.payload) else { return .plain(plain) }
        let isMono = body.payload.byte(at: 3) >> 6 == 3
        return .plain(PlainAudioConfiguration(codec: .mp3, sampleRate: rate, channels: isMono ? 1 : 2))
    }

    private mutating func setAudio(_ configuration: CodecConfiguration) -> Output? {
        guard configuration != audio else { return nil }
        audio = configuration
        isAudioNew = true
        return .configuration(configuration)
    }

    private mutating func receiveVideoConfiguration(
        _ record: RawSpan,
        _ codec: MediaCodec
    ) throws(FormatError) -> Output? {
        let configuration: CodecConfiguration
        switch codec {
        case .h264:
            let parsed = try H264Configuration(record)
            lengthBytes = parsed.lengthBytes
            configuration = .h264(parsed)
        case .h265:
            let parsed = try H265Configuration(record)
            lengthBytes = parsed.lengthBytes
            configuration = .h265(parsed)
        case .av1: configuration = .av1(try AV1Configuration(record))
        // Key frames tell all that a decoder needs, and the size.
        default: return nil
        }
        guard configuration != video else { return nil }
        if let units = NALCodec(codec) {
            if video?.codec != codec { builder = AccessUnitBuilder(codec: units) }
            builder.setConfiguration(configuration)
        }
        video = configuration
        isVideoNew = true
        return .configuration(configuration)
    }

    private mutating func makeVideoFrame(
        _ payload: RawSpan,
        _ codec: MediaCodec,
        isMarkedKey: Bool
    ) throws(FormatError) -> MediaFrame? {
        switch codec {
        case .h264, .h265: return try makeNALFrame(payload, codec, isMarkedKey: isMarkedKey)
        case .av1:
            let unit = try AV1TemporalUnit(payload)
            guard !unit.bytes.isEmpty else { return nil }
            if let found = unit.configuration, !isSame(found) { setVideo(.av1(found)) }
            return finish(codec, bytes: unit.bytes, isKey: unit.isKey)
        case .vp9:
            let header = try VP9FrameHeader(payload)
            if let found = header.configuration { setVideo(.vp9(found)) }
            return finish(codec, bytes: payload.array(), isKey: header.isKey)
        default:
            let header = try VP8FrameHeader(payload)
            if let found = header.configuration { setVideo(.vp8(found)) }
            return finish(codec, bytes: payload.array(), isKey: header.isKey)
        }
    }

    /// Whether the sequence header is that of the record, which may have other OBUs too.
    private func isSame(_ configuration: AV1Configuration) -> Bool {
        guard case .av1(let current) = video else { return false }
        return current.header == configuration.header
    }

    private mutating func setVideo(_ configuration: CodecConfiguration) {
        guard configuration != video else { return }
        video = configuration
        isVideoNew = true
    }

    private mutating func makeNALFrame(
        _ payload: RawSpan,
        _ codec: MediaCodec,
        isMarkedKey: Bool
    ) throws(FormatError) -> MediaFrame? {
        guard video?.codec == codec else {
            framesWithoutConfiguration &+= 1
            return nil
        }
        builder.reset()
        try builder.append(lengthPrefixed: payload, lengthBytes: lengthBytes)
        guard let unit = builder.finish(isMarkedKey: isMarkedKey) else { return nil }
        if let changed = unit.configuration { setVideo(changed) }
        var frame = finish(codec, bytes: unit.bytes, isKey: unit.isKey)
        frame?.isDiscardable = unit.isDiscardable
        return frame
    }

    /// A frame without its times; `nil` before the configuration.
    private mutating func finish(_ codec: MediaCodec, bytes: [UInt8], isKey: Bool) -> MediaFrame? {
        guard let video, video.codec == codec else {
            framesWithoutConfiguration &+= 1
            return nil
        }
        defer { isVideoNew = false }
        return MediaFrame(
            codec: codec,
            decodeTime: .zero,
            isKey: isKey,
            bytes: bytes,
            configuration: isVideoNew ? video : nil
        )
    }
}

/// The sample rate in an MPEG audio frame's header in Hz (ISO/IEC 11172-3 §2.4.1.3, ISO/IEC 13818-3); `nil` for other
/// bytes.
func mp3SampleRate(_ frame: RawSpan) -> Int? {
    guard frame.byteCount >= 4, frame.bigEndianUInt16(at: 0) >> 5 == 0x7FF else { return nil }
    let rates = [44_100, 48_000, 32_000]
    let index = Int(frame.byte(at: 2) >> 2 & 0x03)
    guard index < rates.count else { return nil }
    switch frame.byte(at: 1) >> 3 & 0x03 {
    case 0: return rates[index] / 4
    case 2: return rates[index] / 2
    case 3: return rates[index]
    default: return nil
    }
}
