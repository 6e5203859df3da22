import Base
import Wire

@testable import MediaFormat

/// Tags of FLV, one after the other, as RTMP messages bring them: frames are well formed, and read the same when written.
func fuzzFLV(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    var demuxer = FLVDemuxer()
    var again = FLVDemuxer()
    var muxer = FLVMuxer(origin: .zero)
    while !input.isAtEnd {
        let isVideo = input.flag()
        let timestamp = input.uint32()
        let body = input.chunk()
        let output = withSpan(body) {
            isVideo
                ? try? demuxer.receiveVideo($0, timestamp: timestamp)
                : try? demuxer.receiveAudio($0, timestamp: timestamp)
        }
        guard case .frame(let frame) = output else { continue }
        require(!frame.bytes.isEmpty && frame.kind == (isVideo ? .video : .audio), "a frame has bytes")
        requireUnits(frame)
        for tag in muxer.tags(of: frame) {
            require(!tag.body.isEmpty, "a tag has a body")
            guard case .frame(let copy) = try? again.receive(tag) else { continue }
            require(copy.bytes == frame.bytes && copy.codec == frame.codec, "a frame is written as it was")
        }
    }
    requireSameTags(bytes.array())
}

/// Bytes of NAL units are whole units, and as many in a byte stream.
private func requireUnits(_ frame: MediaFrame) {
    guard frame.codec == .h264 || frame.codec == .h265 else { return }
    var count = 0
    withSpan(frame.bytes) { span in
        var cursor = LengthPrefixedCursor(span, lengthBytes: 4)
        while let unit = try? cursor.next() {
            require(unit.byteCount > 0, "no unit is empty")
            count += 1
        }
    }
    require(count > 0 && count <= FormatLimits.unitsMax, "units are bounded")
    require(withSpan(frame.bytes) { try? makeAnnexB(lengthPrefixed: $0) } != nil, "units are whole")
}

/// The pieces of a file do not matter.
private func requireSameTags(_ bytes: [UInt8]) {
    let file = FLVMuxer.header(hasAudio: true, hasVideo: true) + bytes
    var results: [[FLVTag]] = []
    for size in [file.count, 5] {
        var reader = FLVFileReader()
        var tags: [FLVTag] = []
        var rest = file[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            if withSpan(piece, { span in (try? reader.append(span) { tags.append($0) }) == nil }) { break }
        }
        results.append(tags)
    }
    require(results[0] == results[1], "the pieces do not matter")
}

/// A record, a parameter set or a frame: the first byte chooses. What is read is written, and reads the same.
func fuzzMediaConfiguration(_ bytes: RawSpan) {
    guard bytes.byteCount >= 1 else { return }
    let rest = bytes.extracting(1..<bytes.byteCount)
    switch bytes.byte(at: 0) % 14 {
    case 0: requireSame((try? H264Configuration(rest)).map { .h264($0) })
    case 1: requireSame((try? H265Configuration(rest)).map { .h265($0) })
    case 2: requireSame((try? AV1Configuration(rest)).map { .av1($0) })
    case 3: requireSame((try? VPConfiguration(rest)).map { .vp9($0) })
    case 4: requireSame((try? OpusConfiguration(opusHead: rest)).map { .opus($0) })
    case 5: requireSame((try? OpusConfiguration(dOps: rest)).map { .opus($0) })
    case 6: requireSame((try? AACConfiguration(rest)).map { .aac($0) })
    case 7:
        if let parameters = try? H264SequenceParameters(rest) { requireSize(parameters.size) }
        _ = try? H264SliceHeader(rest)
    case 8:
        if let parameters = try? H265SequenceParameters(rest) { requireSize(parameters.size) }
        _ = try? H265PictureParameters(rest)
        _ = try? H265SliceHeader(rest) { _ in 7 }
    case 9, 10: buildUnits(rest, bytes.byte(at: 0) % 14 == 9 ? .h264 : .h265)
    case 11:
        guard let unit = try? AV1TemporalUnit(rest) else { return }
        let again = withSpan(unit.bytes) { try? AV1TemporalUnit($0) }
        require(again == unit || unit.bytes.isEmpty, "a temporal unit stays as it is")
    case 12:
        _ = try? VP8FrameHeader(rest)
        if let size = (try? VP9FrameHeader(rest))?.configuration?.size { requireSize(size) }
    default:
        if let samples = OpusConfiguration.samples(of: rest) {
            require(samples <= 5_760, "a packet has 120 ms at most")
        }
    }
}

private func requireSize(_ size: PictureSize) {
    require(size.width <= FormatLimits.pixelsMax && size.height <= FormatLimits.pixelsMax, "a size is bounded")
}

private func requireSame(_ configuration: CodecConfiguration?) {
    guard let configuration else { return }
    _ = (configuration.codecs, configuration.size, configuration.frameRate, configuration.inBandParameterSets)
    require((configuration.channels ?? 1) > 0 && (configuration.sampleRate ?? 1) > 0, "audio has a rate and channels")
    let record = configuration.record
    let again: [UInt8]? = withSpan(record) { span in
        switch configuration {
        case .h264: (try? H264Configuration(span))?.encoded
        case .h265: (try? H265Configuration(span))?.encoded
        case .av1: (try? AV1Configuration(span))?.encoded
        case .vp8, .vp9: (try? VPConfiguration(span))?.encoded
        case .opus: (try? OpusConfiguration(dOps: span))?.dOps
        case .aac: (try? AACConfiguration(span))?.encoded
        case .plain: record
        }
    }
    require(again == record, "a record is read as it was written")
    if let track = try? MP4Track(id: 1, configuration: configuration) {
        require(!MP4Header.initSegment([track]).isEmpty, "each track has a header")
    }
}

private func buildUnits(_ stream: RawSpan, _ codec: NALCodec) {
    var builder = AccessUnitBuilder(codec: codec)
    let isWhole = (try? builder.append(annexB: stream)) != nil
    guard let unit = builder.finish() else { return }
    guard isWhole else { return }
    var again = AccessUnitBuilder(codec: codec)
    if let configuration = unit.configuration { again.setConfiguration(configuration) }
    let isReadable = withSpan(unit.bytes) { (try? again.append(lengthPrefixed: $0, lengthBytes: 4)) != nil }
    let copy = again.finish()
    // A slice header of H.265 depends on its parameter set, which only key pictures bring along.
    require(codec == .h265 || isReadable && copy?.bytes == unit.bytes, "a unit stays as it is")
}

/// A recording with bytes changed and cut: what is salvaged is within the file, and completes or is refused.
func fuzzSalvage(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let isWebM = input.flag()
    var file = isWebM ? SalvageSample.webM : SalvageSample.mp4
    for _ in 0..<input.choice(6) {
        let offset = Int(input.uint16()) % file.count
        file[offset] = input.byte()
    }
    file = Array(file.prefix(Int(input.uint16()) % (file.count + 1))) + input.rest()
    let read: FileReader = { offset, count in
        guard offset < UInt64(file.count) else { return [] }
        return Array(file[Int(offset)..<min(Int(offset) + count, file.count)])
    }
    var written = 0
    let write = { (more: [UInt8]) in
        written += more.count
        return true
    }
    let length = UInt64(file.count)
    if isWebM {
        guard case .clustered(let end, let clusters) = try? WebMFileState.inspect(length: length, read: read) else {
            return
        }
        require(end <= length, "clusters are within the file")
        guard let done = try? WebMFinaliser.complete(length: end, read: read, write: write) else { return }
        require(clusters > 0 && done.length == end + UInt64(written), "what was written is counted")
        require(done.patches.allSatisfy { ($0.offset ?? length) + UInt64($0.bytes.count) <= end }, "patches are inside")
    } else {
        guard case .fragmented(let end, let count) = try? MP4FileState.inspect(length: length, read: read) else {
            return
        }
        require(end <= length, "fragments are within the file")
        guard let done = try? MP4Finaliser.complete(length: end, read: read, write: write) else { return }
        require(count > 0 && done.length == end + UInt64(written), "what was written is counted")
        require(written < 8 * file.count, "tables are as long as their samples")
    }
}

private enum SalvageSample {
    static let mp4 = makeMP4()
    static let webM = makeWebM()

    private static func frames(_ codec: MediaCodec) -> [MediaFrame] {
        (0..<12).map { number in
            MediaFrame(
                codec: codec,
                decodeTime: .milliseconds(40 * number),
                presentationTime: .milliseconds(40 * number + 40 * (number % 3)),
                isKey: number % 6 == 0,
                bytes: [0, 0, 0, 1, 0x65]
            )
        }
    }

    private static func makeMP4() -> [UInt8] {
        guard let audio = try? MP4Track(id: 2, configuration: .opus(OpusConfiguration(channels: 2))),
            let size = PictureSize(width: 640, height: 360),
            let video = try? MP4Track(id: 1, configuration: .vp9(VPConfiguration(size: size))),
            var writer = try? MP4RecordingWriter(
                tracks: [video, audio],
                origin: .zero,
                fragmentDuration: .milliseconds(100)
            )
        else { fatalError("no recording") }
        var bytes = writer.start.bytes
        for frame in frames(.vp9) {
            for write in (try? writer.append(frame, track: 0)) ?? [] { bytes += write.bytes }
            var sound = frame
            sound.codec = .opus
            for write in (try? writer.append(sound, track: 1)) ?? [] { bytes += write.bytes }
        }
        for write in (try? writer.finish()) ?? [] { bytes += write.bytes }
        return bytes
    }

    private static func makeWebM() -> [UInt8] {
        guard let size = PictureSize(width: 640, height: 360),
            let video = try? WebMTrack(number: 1, configuration: .vp8(VPConfiguration(size: size))),
            var writer = try? WebMRecordingWriter(tracks: [video], origin: .zero, clusterDuration: .milliseconds(100))
        else { fatalError("no recording") }
        var bytes = writer.start.bytes
        for frame in frames(.vp8) {
            for write in (try? writer.append(frame, track: 0)) ?? [] { bytes += write.bytes }
        }
        for write in writer.finish() { bytes += write.bytes }
        return bytes
    }
}

func seedsFLV() -> [(name: String, bytes: [UInt8])] {
    func messages(_ bodies: [(isVideo: Bool, body: [UInt8])]) -> [UInt8] {
        SeedWriter.make { seed in
            for (number, message) in bodies.enumerated() {
                seed.byte(message.isVideo ? 1 : 0)
                seed.uint32(40 * number)
                seed.chunk(message.body)
            }
        }
    }
    let avc: [UInt8] = [1, 0x42, 0xE0, 0x1E, 0xFF, 0xE1, 0, 8, 0x67, 0x42, 0xE0, 0x1E, 0xDA, 0x02, 0x80, 0xF6, 1, 0, 4]
    let classic: [(isVideo: Bool, body: [UInt8])] = [
        (true, [0x17, 0, 0, 0, 0] + avc + [0x68, 0xCE, 0x06, 0xE2]), (false, [0xAF, 0, 0x12, 0x10]),
        (true, [0x17, 1, 0, 0, 40, 0, 0, 0, 3, 0x65, 0x88, 0x84]), (false, [0xAF, 1, 0x21, 0x10]),
        (true, [0x27, 1, 0, 0, 0, 0, 0, 0, 4, 0x01, 0x9E, 0x42, 0x6C]),
    ]
    let enhanced: [(isVideo: Bool, body: [UInt8])] = [
        (true, [0x91] + Array("vp09".utf8) + [0x82, 0x49, 0x83, 0x42, 0x40, 0x4F, 0xF0, 0x2C, 0xF0]),
        (true, [0x96, 0x11] + Array("vp09".utf8) + [1, 0, 0, 1, 8, 0, 0, 0, 2, 0x86, 7]),
        (true, [0x97, 0, 9, 0x03] + Array("av01".utf8) + [0x32, 0x02, 0x10, 0x00]),
        (false, [0x90] + Array("OpusOpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]),
        (false, [0x91] + Array("Opus".utf8) + [0xF8, 0xFF, 0xFE]), (false, [0x2F, 0xFF, 0xFB, 0x90, 0x64]),
    ]
    return [("classic", messages(classic)), ("enhanced", messages(enhanced))]
}

func seedsMediaConfiguration() -> [(name: String, bytes: [UInt8])] {
    let sps: [UInt8] = [0x67, 0x42, 0xE0, 0x1E, 0xDA, 0x02, 0x80, 0xF6]
    let pps: [UInt8] = [0x68, 0xCE, 0x06, 0xE2]
    let hevc: [UInt8] = [
        0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00, 0x5D,
        0xA0,
        0x02, 0x80, 0x80, 0x2D, 0x16, 0x59, 0x59, 0xA4, 0x93, 0x2B, 0xC0, 0x40, 0x40, 0x00, 0x00, 0xFA, 0x40, 0x00,
        0x17,
        0x70, 0x02,
    ]
    return [
        ("avcc", [0, 1, 0x42, 0xE0, 0x1E, 0xFF, 0xE1, 0, 8] + sps + [1, 0, 4] + pps),
        ("hvcc", [1, 1] + [UInt8](repeating: 0, count: 20) + [3, 1, 0xA1, 0, 1, 0, UInt8(hevc.count)] + hevc),
        ("av1c", [2, 0x81, 0, 0x0C, 0, 0x0A, 0x0B, 0, 0, 0, 4, 0x3C, 0xFF, 0xBC, 0xFF, 0xF9, 0x80, 0x40]),
        ("vpcc", [3, 0, 31, 0x82, 1, 1, 1, 0, 0]),
        ("opus", [4] + Array("OpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]),
        ("aac", [6, 0x13, 0x88, 0x56, 0xE5, 0xA5, 0x48, 0x80]), ("sps", [7] + sps), ("hevc-sps", [8] + hevc),
        ("annexb", [9, 0, 0, 0, 1] + sps + [0, 0, 1] + pps + [0, 0, 1, 0x65, 0x88, 0x84, 0x21]),
        ("hevc-annexb", [10, 0, 0, 1] + hevc + [0, 0, 1, 0x44, 1, 0xC1, 0x72, 0, 0, 1, 0x26, 1, 0xAF, 0x80]),
        ("obus", [11, 0x12, 0, 0x0A, 0x0B, 0, 0, 0, 4, 0x3C, 0xFF, 0xBC, 0xFF, 0xF9, 0x80, 0x40, 0x32, 2, 0x10, 0]),
        ("vp9", [12, 0x82, 0x49, 0x83, 0x42, 0x40, 0x4F, 0xF0, 0x2C, 0xF0]),
    ]
}

func seedsSalvage() -> [(name: String, bytes: [UInt8])] {
    [("mp4", false), ("webm", true)].map { name, isWebM in
        let bytes = SeedWriter.make { seed in
            seed.byte(isWebM ? 1 : 0)
            seed.byte(1)
            seed.uint16(isWebM ? 300 : 8_240)
            seed.byte(7)
            seed.uint16(isWebM ? 450 : 9_000)
        }
        return (name, bytes)
    }
}
