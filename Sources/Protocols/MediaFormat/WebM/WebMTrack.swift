import Base

/// One track of a WebM file.
package struct WebMTrack: Hashable, Sendable {
    /// TrackNumber, 1…126.
    package let number: UInt8
    /// The codec and its parameters.
    package let configuration: CodecConfiguration
    /// How players turn the pictures.
    package let rotation: PictureRotation

    /// Creates a track.
    /// - Throws: for a number out of range, and for codecs other than VP8, VP9, AV1 and Opus.
    package init(
        number: Int,
        configuration: CodecConfiguration,
        rotation: PictureRotation = .none
    ) throws(FormatError) {
        guard (1...126).contains(number) else { throw .invalid("the number of a track") }
        guard Self.isSupported(configuration.codec) else { throw .unsupported("\(configuration.codec) in WebM") }
        self.number = UInt8(truncatingIfNeeded: number)
        self.configuration = configuration
        self.rotation = rotation
    }

    /// Whether WebM has the codec.
    package static func isSupported(_ codec: MediaCodec) -> Bool {
        switch codec {
        case .vp8, .vp9, .av1, .opus: true
        case .h264, .h265, .aac, .mp3, .speex, .pcma, .pcmu: false
        }
    }

    var isVideo: Bool { configuration.codec != .opus }
}

extension EBMLWriter {
    /// TrackEntry (RFC 9559 §5.1.4.1; WebM container guidelines).
    mutating func trackEntry(_ track: WebMTrack) {
        append(.trackEntry) { entry in
            entry.append(.trackNumber, UInt64(track.number))
            entry.append(.trackIdentifier, UInt64(track.number))
            entry.append(.trackType, track.isVideo ? 1 : 2 as UInt64)
            entry.append(.lacing, 0 as UInt64)
            switch track.configuration {
            case .vp8: entry.append(.codecIdentifier, "V_VP8")
            case .vp9: entry.append(.codecIdentifier, "V_VP9")
            case .av1(let record):
                entry.append(.codecIdentifier, "V_AV1")
                entry.append(.codecPrivate, record.encoded)
            case .opus(let record):
                entry.append(.codecIdentifier, "A_OPUS")
                entry.append(.codecPrivate, record.opusHead)
                // CodecDelay and SeekPreRoll are in nanoseconds; 80 ms are RFC 7845 §4.6.
                entry.append(.codecDelay, UInt64(record.preSkip) * 1_000_000 / 48)
                entry.append(.seekPreRoll, 80_000_000 as UInt64)
            case .h264, .h265, .aac, .plain: break
            }
            if track.isVideo {
                entry.append(.video) { $0.videoSettings(track) }
            } else {
                entry.append(.audio) { audio in
                    audio.append(.samplingFrequency, Double(OpusConfiguration.sampleRate))
                    audio.append(.channels, UInt64(track.configuration.channels ?? 2))
                }
            }
        }
    }

    private mutating func videoSettings(_ track: WebMTrack) {
        let size = track.configuration.size
        append(.pixelWidth, UInt64(size?.width ?? 1))
        append(.pixelHeight, UInt64(size?.height ?? 1))
        guard track.rotation != .none else { return }
        append(.projection) { projection in
            projection.append(.projectionType, 0 as UInt64)
            // Positive is counter-clockwise (RFC 9559 §5.1.4.1.28.46).
            projection.append(.projectionRoll, -Double(track.rotation.rawValue <= 180 ? track.rotation.rawValue : -90))
        }
    }
}

/// The fixed start of a WebM file, whose places the finaliser fills.
enum WebMLayout {
    /// The place of the SeekHead.
    static let seekHeadBytes = 80
    /// The place of the duration: identifier, size and eight bytes.
    static let durationBytes = 11
    /// The bytes of Tracks, at most.
    static let tracksBytesMax = 64 << 10

    /// EBML header and the identifier of Segment; a size of eight bytes follows.
    static let beforeSegmentSize: [UInt8] = {
        var writer = EBMLWriter()
        writer.append(.header) { header in
            header.append(.version, 1 as UInt64)
            header.append(.readVersion, 1 as UInt64)
            header.append(.identifierLengthMax, 4 as UInt64)
            header.append(.sizeLengthMax, 8 as UInt64)
            header.append(.documentType, "webm")
            header.append(.documentTypeVersion, 4 as UInt64)
            header.append(.documentTypeReadVersion, 2 as UInt64)
        }
        return writer.bytes + EBMLElement.segment.bytes
    }()
    /// Where the body of Segment begins: positions in the file's tables count from here.
    static let segmentStart = beforeSegmentSize.count + 8
    /// Where Info begins, from the start of the file.
    static let informationStart = segmentStart + seekHeadBytes
    /// Info with a Void at its start, in the place of the duration.
    static let information: [UInt8] = {
        var writer = EBMLWriter()
        writer.append(.information) { information in
            information.append(void: durationBytes)
            information.append(.timestampScale, 1_000_000 as UInt64)
            information.append(.muxingApplication, "Nagare")
            information.append(.writingApplication, "Nagare")
        }
        return writer.bytes
    }()
    /// Where the place of the duration begins: after the identifier of Info and a size of one byte.
    static let durationStart = informationStart + 5
    /// Where Tracks begins.
    static let tracksStart = informationStart + information.count

    /// The bytes of a file before its first cluster.
    static func header(_ tracks: [WebMTrack]) -> [UInt8] {
        var writer = EBMLWriter()
        writer.append(beforeSegmentSize)
        // Eight bytes of an unknown size (RFC 8794 §6.2).
        writer.append([0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        writer.append(void: seekHeadBytes)
        writer.append(information)
        writer.append(.tracks) { list in
            for track in tracks { list.trackEntry(track) }
        }
        return writer.bytes
    }
}
