import Base

/// The start of a fragmented file: what players and the finaliser need before the first fragment.
package enum MP4Header {
    /// The bytes of a file before its first fragment: room for ``MP4Track/descriptionsMax`` sample descriptions, which
    /// are added in place.
    package static let fileHeaderBytes = 8_192
    /// The bytes of the box that the finaliser turns into `mdat`: a size of 64 bits has place in it.
    package static let placeholderBytes = 16

    /// The initialisation segment of CMAF and HLS: `ftyp` and `moov` (ISO/IEC 23000-19 §7.3.1).
    package static func initSegment(_ tracks: [MP4Track]) -> [UInt8] {
        var writer = BoxWriter()
        writer.fileType(["iso6", "cmfc", "mp41"])
        writer.movie(tracks)
        return writer.bytes
    }

    /// The header of a recording: `ftyp`, a `free` of 16 bytes, `moov`, and a `free` that fills
    /// ``fileHeaderBytes``.
    /// - Returns: `nil` when the sample descriptions do not fit.
    static func file(_ tracks: [MP4Track]) -> [UInt8]? {
        var writer = BoxWriter()
        writer.fileType(["iso6", "isom", "mp41"])
        writer.box("free") { $0.append(zeros: placeholderBytes - 8) }
        writer.movie(tracks)
        let rest = fileHeaderBytes - writer.bytes.count
        guard rest == 0 || rest >= 8 else { return nil }
        if rest > 0 { writer.box("free") { $0.append(zeros: rest - 8) } }
        return writer.bytes
    }
}

extension BoxWriter {
    mutating func fileType(_ brands: [FourCC]) {
        box("ftyp") { type in
            type.append(brands.first ?? "iso6")
            type.append(UInt32(0))
            for brand in brands { type.append(brand) }
        }
    }

    /// `moov` with `mvex` and without samples (ISO/IEC 14496-12 §8.2.1, §8.8.1).
    fileprivate mutating func movie(_ tracks: [MP4Track]) {
        box("moov") { movie in
            movie.movieHeader(duration: 0, nextTrack: (tracks.map(\.id).max() ?? 0) &+ 1)
            for track in tracks { movie.track(track) }
            movie.box("mvex") { extends in
                for track in tracks {
                    extends.fullBox("trex") {
                        $0.append(track.id)
                        $0.append(UInt32(1))
                        $0.append(zeros: 12)
                    }
                }
            }
        }
    }

    /// `mvhd` in milliseconds (ISO/IEC 14496-12 §8.2.2).
    mutating func movieHeader(duration: UInt64, nextTrack: UInt32) {
        fullBox("mvhd", version: 1) { header in
            header.append(zeros: 16)
            header.append(UInt32(1_000))
            header.append(duration)
            header.append(UInt32(0x0001_0000))
            header.append(UInt16(0x0100))
            header.append(zeros: 10)
            header.matrix([0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000])
            header.append(zeros: 24)
            header.append(nextTrack)
        }
    }

    private mutating func matrix(_ values: [Int32]) {
        for value in values { append(value) }
    }

    private mutating func track(_ track: MP4Track) {
        box("trak") { box in
            box.trackHeader(track)
            box.box("mdia") { media in
                media.fullBox("mdhd", version: 1) { header in
                    header.append(zeros: 16)
                    header.append(track.timescale)
                    header.append(UInt64(0))
                    // "und".
                    header.append(UInt16(0x55C4))
                    header.append(UInt16(0))
                }
                media.fullBox("hdlr") { handler in
                    handler.append(UInt32(0))
                    handler.append(track.isVideo ? "vide" : "soun" as FourCC)
                    handler.append(zeros: 12)
                    handler.append(Array((track.isVideo ? "Video" : "Audio").utf8) + [0])
                }
                media.mediaInformation(track)
            }
        }
    }

    /// `tkhd` of an enabled track (ISO/IEC 14496-12 §8.3.2). The matrix turns the picture and moves it back to the
    /// origin.
    private mutating func trackHeader(_ track: MP4Track) {
        let size = track.configurations.first?.size
        let (width, height) = (Int32(clamping: size?.width ?? 0), Int32(clamping: size?.height ?? 0))
        let one: Int32 = 0x0001_0000
        fullBox("tkhd", version: 1, flags: 3) { header in
            header.append(zeros: 16)
            header.append(track.id)
            header.append(zeros: 4 + 8 + 8 + 4)
            header.append(track.isVideo ? 0 : UInt16(0x0100))
            header.append(UInt16(0))
            switch track.rotation {
            case .none: header.matrix([one, 0, 0, 0, one, 0, 0, 0, 0x4000_0000])
            case .clockwise90: header.matrix([0, one, 0, -one, 0, 0, height << 16, 0, 0x4000_0000])
            case .clockwise180: header.matrix([-one, 0, 0, 0, -one, 0, width << 16, height << 16, 0x4000_0000])
            case .clockwise270: header.matrix([0, -one, 0, one, 0, 0, 0, width << 16, 0x4000_0000])
            }
            header.append(width << 16)
            header.append(height << 16)
        }
    }

    private mutating func mediaInformation(_ track: MP4Track) {
        box("minf") { information in
            if track.isVideo {
                information.fullBox("vmhd", flags: 1) { $0.append(zeros: 8) }
            } else {
                information.fullBox("smhd") { $0.append(zeros: 4) }
            }
            information.box("dinf") { data in
                data.fullBox("dref") { reference in
                    reference.append(UInt32(1))
                    reference.fullBox("url ", flags: 1) { _ in }
                }
            }
            information.box("stbl") { table in
                table.fullBox("stsd") { descriptions in
                    descriptions.append(UInt32(truncatingIfNeeded: track.configurations.count))
                    for configuration in track.configurations { descriptions.sampleEntry(configuration) }
                }
                for type in ["stts", "stsc", "stco"] as [FourCC] { table.fullBox(type) { $0.append(zeros: 4) } }
                table.fullBox("stsz") { $0.append(zeros: 8) }
            }
        }
    }
}
