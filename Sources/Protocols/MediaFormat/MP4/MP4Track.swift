import Wire

/// One track of an MP4 file or of CMAF segments.
package struct MP4Track: Hashable, Sendable {
    /// The sample descriptions of a track, at most; parameters that change more often go in-band.
    package static let descriptionsMax = 8
    /// Ticks each second of video, the clock of RTP.
    package static let videoTimescale: UInt32 = 90_000

    /// track_ID, from 1.
    package let id: UInt32
    /// The sample descriptions in order, never empty.
    package private(set) var configurations: [CodecConfiguration]
    /// How players turn the pictures.
    package let rotation: PictureRotation
    /// Ticks each second: 90,000 for video, the sample rate for audio.
    package let timescale: UInt32

    /// Creates a track.
    /// - Throws: for a codec that MP4 does not get here: VP8, MP3, Speex, G.711.
    package init(
        id: UInt32,
        configuration: CodecConfiguration,
        rotation: PictureRotation = .none
    ) throws(FormatError) {
        guard Self.isSupported(configuration.codec) else { throw .unsupported("\(configuration.codec) in MP4") }
        self.id = id
        self.rotation = rotation
        configurations = [configuration]
        timescale = configuration.sampleRate.map { UInt32(clamping: $0) } ?? Self.videoTimescale
    }

    /// Whether MP4 files are written with this codec.
    package static func isSupported(_ codec: MediaCodec) -> Bool {
        switch codec {
        case .h264, .h265, .av1, .vp9, .opus, .aac: true
        case .vp8, .mp3, .speex, .pcma, .pcmu: false
        }
    }

    /// Whether the track is of video.
    package var isVideo: Bool { configurations.first?.codec.kind == .video }

    /// The index of a sample description, from 1, which is added when it is not there.
    /// - Returns: `nil` when the track has ``descriptionsMax`` of them.
    package mutating func description(of configuration: CodecConfiguration) -> (index: UInt32, isNew: Bool)? {
        if let index = configurations.firstIndex(of: configuration) { return (UInt32(index + 1), false) }
        guard configurations.count < Self.descriptionsMax, Self.isSupported(configuration.codec) else { return nil }
        configurations.append(configuration)
        return (UInt32(configurations.count), true)
    }
}

/// One sample of a track, with times in ticks of its timescale.
package struct MP4Sample: Hashable, Sendable {
    /// Since the file's origin; not negative.
    package var decodeTime: Int64
    /// The time to the next sample.
    package var duration: UInt32
    /// Presentation time minus decode time.
    package var compositionOffset: Int32
    /// Whether it is a sync sample.
    package var isKey: Bool
    /// Whether no other sample depends on it.
    package var isDiscardable: Bool
    /// The index of the sample description, from 1.
    package var description: UInt32
    /// The frame, as ``MediaFrame/bytes``.
    package var bytes: [UInt8]

    /// Creates a sample.
    package init(
        decodeTime: Int64,
        duration: UInt32,
        compositionOffset: Int32 = 0,
        isKey: Bool,
        isDiscardable: Bool = false,
        description: UInt32 = 1,
        bytes: [UInt8]
    ) {
        self.decodeTime = decodeTime
        self.duration = duration
        self.compositionOffset = compositionOffset
        self.isKey = isKey
        self.isDiscardable = isDiscardable
        self.description = description
        self.bytes = bytes
    }

    /// sample_flags (ISO/IEC 14496-12 §8.8.3.1): on what the sample depends, what depends on it, and whether it is a
    /// sync sample.
    var flags: UInt32 {
        let dependence: UInt32 = isKey ? 0x02_00_00_00 : 0x01_01_00_00
        return dependence | (isDiscardable ? 0x00_80_00_00 : 0)
    }
}
