import Base
import Wire

/// The body of an audio or video tag, which is also the payload of an RTMP audio or video message: the classic form
/// (FLV §E.4.2, §E.4.3) and the enhanced one with FourCCs (Enhanced RTMP v2, "Enhanced Audio" and "Enhanced Video").
package struct FLVTagBody: ~Escapable {
    /// The meaning of the payload.
    package enum Packet: Hashable, Sendable {
        /// The record of ``CodecConfiguration/record``; `OpusHead` for Opus.
        case configuration
        case frame
        case endOfSequence
        /// Metadata, a command, or a track that is not the first: nothing to decode.
        case ignored
    }

    /// The tracks of one multitrack body, at most.
    package static let tracksMax = 16
    /// The ModEx prefixes of one body, at most.
    package static let modifiersMax = 8

    /// The meaning of the payload.
    package private(set) var packet = Packet.ignored
    /// `nil` with ``Packet/ignored``.
    package private(set) var codec: MediaCodec?
    /// The record or the frame, without the headers of the body.
    package private(set) var payload: RawSpan
    /// Whether the frame type says key frame. Always `true` for audio.
    package private(set) var isMarkedKey = true
    /// Presentation time minus decode time in milliseconds, signed.
    package private(set) var compositionOffsetMS: Int32 = 0
    /// Tracks other than the first that were left out.
    package private(set) var otherTracks = 0
    /// Rate and channels by the classic audio header; `nil` in enhanced audio and in video.
    package private(set) var plainAudio: PlainAudioConfiguration?

    /// Reads a video body.
    @_lifetime(copy bytes)
    package init(video bytes: RawSpan) throws(FormatError) {
        payload = bytes
        var reader = ByteReader(bytes, "an FLV video body")
        let first = try reader.uint8()
        let frameType = first >> 4 & 0x07
        isMarkedKey = frameType == 1
        guard first & 0x80 != 0 else {
            try readClassicVideo(&reader, codecID: first & 0x0F, frameType: frameType)
            return
        }
        var type = try Self.skipModifiers(&reader, type: first & 0x0F)
        // Frame type 5 is a command, which only metadata ignores.
        if frameType == 5, type != EnhancedPacket.metadata { return }
        var isMultitrack = false
        var layout: UInt8 = 0
        if type == EnhancedPacket.videoMultitrack {
            let head = try reader.uint8()
            (isMultitrack, layout, type) = (true, head >> 4, head & 0x0F)
        }
        try readEnhanced(&reader, type: type, layout: isMultitrack ? layout : nil, isVideo: true)
    }

    /// Reads an audio body.
    @_lifetime(copy bytes)
    package init(audio bytes: RawSpan) throws(FormatError) {
        payload = bytes
        var reader = ByteReader(bytes, "an FLV audio body")
        let first = try reader.uint8()
        guard first >> 4 == 9 else {
            try readClassicAudio(&reader, header: first)
            return
        }
        var type = try Self.skipModifiers(&reader, type: first & 0x0F)
        var layout: UInt8?
        if type == EnhancedPacket.audioMultitrack {
            let head = try reader.uint8()
            (layout, type) = (head >> 4, head & 0x0F)
        }
        try readEnhanced(&reader, type: type, layout: layout, isVideo: false)
    }

    @_lifetime(self: copy self, copy reader)
    private mutating func readClassicVideo(
        _ reader: inout ByteReader,
        codecID: UInt8,
        frameType: UInt8
    ) throws(FormatError) {
        if frameType == 5 { return }
        switch codecID {
        case 7: codec = .h264
        // Not in the specification: Chinese SDKs and FFmpeg forks.
        case 12: codec = .h265
        default: throw .unsupported("FLV video codec \(codecID)")
        }
        let type = try reader.uint8()
        compositionOffsetMS = try reader.int24()
        switch type {
        case 0: packet = .configuration
        case 1: packet = .frame
        case 2: packet = .endOfSequence
        default: throw .invalid("AVCPacketType")
        }
        payload = reader.rest()
    }

    @_lifetime(self: copy self, copy reader)
    private mutating func readClassicAudio(_ reader: inout ByteReader, header: UInt8) throws(FormatError) {
        let rate = [5_512, 11_025, 22_050, 44_100][Int(header >> 2 & 0x03)]
        let channels = header & 1 == 0 ? 1 : 2
        packet = .frame
        switch header >> 4 {
        case 2: setPlain(.mp3, rate, channels)
        case 7: setPlain(.pcma, 8_000, channels)
        case 8: setPlain(.pcmu, 8_000, channels)
        case 10:
            codec = .aac
            packet = try reader.uint8() == 0 ? .configuration : .frame
        case 11: setPlain(.speex, 16_000, 1)
        case 14: setPlain(.mp3, 8_000, channels)
        default: throw .unsupported("FLV audio format \(header >> 4)")
        }
        payload = reader.rest()
    }

    @_lifetime(self: copy self)
    private mutating func setPlain(_ codec: MediaCodec, _ rate: Int, _ channels: Int) {
        self.codec = codec
        plainAudio = PlainAudioConfiguration(codec: codec, sampleRate: rate, channels: channels)
    }

    /// Moves past ModEx prefixes, which only refine the timestamp by nanoseconds.
    /// - Returns: the type of the packet behind them.
    private static func skipModifiers(_ reader: inout ByteReader, type: UInt8) throws(FormatError) -> UInt8 {
        var type = type
        var count = 0
        while type == EnhancedPacket.modifier {
            guard count < modifiersMax else { throw .limit("ModEx prefixes of an FLV body") }
            count += 1
            var length = Int(try reader.uint8()) + 1
            if length == 256 { length = Int(try reader.uint16()) + 1 }
            try reader.skip(length)
            type = try reader.uint8() & 0x0F
        }
        return type
    }

    /// - Parameter layout: AvMultitrackType; `nil` for a body of one track.
    @_lifetime(self: copy self, copy reader)
    private mutating func readEnhanced(
        _ reader: inout ByteReader,
        type: UInt8,
        layout: UInt8?,
        isVideo: Bool
    ) throws(FormatError) {
        guard let layout else {
            let code = FourCC(rawValue: try reader.uint32())
            return try readTrack(reader.rest(), type: type, code: code, isVideo: isVideo)
        }
        guard layout <= 2 else { throw .invalid("AvMultitrackType") }
        var code = layout == 2 ? FourCC(rawValue: 0) : FourCC(rawValue: try reader.uint32())
        var count = 0
        while reader.remaining > 0 {
            guard count < Self.tracksMax else { throw .limit("tracks of an FLV body") }
            count += 1
            if layout == 2 { code = FourCC(rawValue: try reader.uint32()) }
            let track = try reader.uint8()
            let length = layout == 0 ? reader.remaining : Int(try reader.uint24())
            let data = try reader.span(length)
            if track == 0 {
                try readTrack(data, type: type, code: code, isVideo: isVideo)
            } else {
                otherTracks += 1
            }
        }
    }

    @_lifetime(self: copy data)
    private mutating func readTrack(
        _ data: RawSpan,
        type: UInt8,
        code: FourCC,
        isVideo: Bool
    ) throws(FormatError) {
        payload = data
        switch type {
        case EnhancedPacket.sequenceStart: packet = .configuration
        case EnhancedPacket.codedFrames: packet = .frame
        case EnhancedPacket.sequenceEnd: packet = .endOfSequence
        case EnhancedPacket.codedFramesX where isVideo: packet = .frame
        // Metadata, an MPEG-2 TS sequence start, and the channel layout, which the configuration tells too.
        default: return
        }
        guard let found = MediaCodec(fourCC: code), found.kind == (isVideo ? .video : .audio) else {
            packet = .ignored
            throw .unsupported("FLV codec \(code)")
        }
        codec = found
        guard type == EnhancedPacket.codedFrames, found == .h264 || found == .h265 else { return }
        var reader = ByteReader(data, "an FLV video body")
        compositionOffsetMS = try reader.int24()
        payload = reader.rest()
    }
}

/// The packet types of Enhanced RTMP v2; audio and video share those below 4.
enum EnhancedPacket {
    static let sequenceStart: UInt8 = 0
    static let codedFrames: UInt8 = 1
    static let sequenceEnd: UInt8 = 2
    static let codedFramesX: UInt8 = 3
    static let metadata: UInt8 = 4
    static let audioMultitrack: UInt8 = 5
    static let videoMultitrack: UInt8 = 6
    static let modifier: UInt8 = 7
}

extension MediaCodec {
    /// The FourCC in enhanced RTMP; `nil` for a codec that has only a classic number.
    package var fourCC: FourCC? {
        switch self {
        case .h264: "avc1"
        case .h265: "hvc1"
        case .av1: "av01"
        case .vp8: "vp08"
        case .vp9: "vp09"
        case .opus: "Opus"
        case .aac: "mp4a"
        case .mp3: ".mp3"
        case .speex, .pcma, .pcmu: nil
        }
    }

    /// The codec of a FourCC in enhanced RTMP; `nil` for one that is not known.
    package init?(fourCC: FourCC) {
        guard let codec = Self.allCases.first(where: { $0.fourCC == fourCC }) else { return nil }
        self = codec
    }
}
