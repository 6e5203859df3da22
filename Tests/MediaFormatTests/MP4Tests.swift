import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

/// Writes frames as a recording.
func record(_ frames: [MediaFrame], fragmentMS: Int = 100) throws -> (file: MemoryFile, fragments: [Int]) {
    var tracks: [MP4Track] = []
    var index: [MediaKind: Int] = [:]
    for frame in frames where index[frame.kind] == nil {
        guard let configuration = frame.configuration else { continue }
        index[frame.kind] = tracks.count
        tracks.append(try MP4Track(id: UInt32(tracks.count + 1), configuration: configuration))
    }
    let origin = frames.map(\.decodeTime).min() ?? .zero
    var writer = try MP4RecordingWriter(tracks: tracks, origin: origin, fragmentDuration: .milliseconds(fragmentMS))
    let file = MemoryFile()
    file.apply([writer.start])
    var ends: [Int] = [file.bytes.count]
    for frame in frames {
        guard let track = index[frame.kind] else { continue }
        for write in try writer.append(frame, track: track) {
            file.apply([write])
            if write.offset == nil { ends.append(file.bytes.count) }
        }
    }
    for write in try writer.finish() {
        file.apply([write])
        ends.append(file.bytes.count)
    }
    return (file, ends)
}

/// The boxes at the top of a file: type, offset and size.
func topBoxes(_ bytes: [UInt8]) -> [(type: String, offset: Int, size: Int)] {
    var boxes: [(String, Int, Int)] = []
    var offset = 0
    while bytes.count - offset >= 8 {
        let word = { (at: Int) in bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) } }
        var size = word(offset)
        if size == 1 { size = word(offset + 8) << 32 | word(offset + 12) }
        boxes.append((String(decoding: bytes[(offset + 4)..<(offset + 8)], as: UTF8.self), offset, size))
        guard size >= 8 else { break }
        offset += size
    }
    return boxes
}

/// The offset of a box's type in bytes.
func find(_ type: String, in bytes: [UInt8], from start: Int = 0) -> Int? {
    let code = Array(type.utf8)
    guard start < bytes.count - 3 else { return nil }
    return (start..<(bytes.count - 3)).first { Array(bytes[$0..<($0 + 4)]) == code }
}

struct MP4Tests {
    static let files = [Fixtures.h264, Fixtures.h265, Fixtures.av1, Fixtures.vp9]

    @Test func `a fragment has the bytes that it should have`() throws {
        var builder = MP4FragmentBuilder()
        try builder.append(MP4Sample(decodeTime: 90, duration: 30, isKey: true, bytes: [1, 2]), track: 1)
        let second = MP4Sample(
            decodeTime: 120,
            duration: 30,
            compositionOffset: -3,
            isKey: false,
            isDiscardable: true,
            bytes: [3]
        )
        try builder.append(second, track: 1)
        let golden: [UInt8] =
            [0, 0, 0, 120] + Array("moof".utf8) + [0, 0, 0, 16] + Array("mfhd".utf8) + [0, 0, 0, 0, 0, 0, 0, 1]
            + [0, 0, 0, 96] + Array("traf".utf8) + [0, 0, 0, 24] + Array("tfhd".utf8)
            + [0, 2, 0, 0x0A, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 30] + [0, 0, 0, 20] + Array("tfdt".utf8)
            + [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90] + [0, 0, 0, 44] + Array("trun".utf8)
            + [1, 0, 0x0E, 1, 0, 0, 0, 2, 0, 0, 0, 128] + [0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0]
            + [0, 0, 0, 1, 1, 0x81, 0, 0, 0xFF, 0xFF, 0xFF, 0xFD] + [0, 0, 0, 11] + Array("mdat".utf8) + [1, 2, 3]
        #expect(builder.finish() == golden)
        #expect(builder.finish() == nil)
    }

    @Test func `a gap or another description begins a fragment`() throws {
        var builder = MP4FragmentBuilder()
        let first = MP4Sample(decodeTime: 0, duration: 30, isKey: true, bytes: [1])
        try builder.append(first, track: 1)
        var next = MP4Sample(decodeTime: 30, duration: 30, isKey: true, bytes: [1])
        #expect(builder.accepts(next, track: 1))
        next.description = 2
        #expect(!builder.accepts(next, track: 1) && builder.accepts(next, track: 2))
        next = MP4Sample(decodeTime: 31, duration: 30, isKey: true, bytes: [1])
        #expect(throws: FormatError.self) { try builder.append(next, track: 1) }
    }

    @Test(arguments: files.indices)
    func `a finalised file is one mdat and one moov`(index: Int) throws {
        let (file, _) = try record(try demux(Self.files[index]))
        let before = file.bytes
        #expect(topBoxes(before).map(\.type).prefix(4) == ["ftyp", "free", "moov", "free"])
        #expect(topBoxes(before)[3].offset + topBoxes(before)[3].size == MP4Header.fileHeaderBytes)
        let completion = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        #expect(completion.length == file.length && completion.patch.bytes.count == 16)
        // A crash in front of the patch leaves what there was.
        #expect(file.bytes.starts(with: before))
        guard case .fragmented(let length, _) = try MP4FileState.inspect(length: file.length, read: file.read) else {
            Issue.record("not fragmented")
            return
        }
        #expect(Int(length) == before.count, "the moov is to be written again")
        file.apply([completion.patch])
        let boxes = topBoxes(file.bytes)
        #expect(boxes.map(\.type) == ["ftyp", "mdat", "moov"])
        #expect((boxes.last?.offset ?? 0) + (boxes.last?.size ?? 0) == file.bytes.count)
        #expect(try MP4FileState.inspect(length: file.length, read: file.read) == .finalised)
        #expect(throws: FormatError.self) {
            _ = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        }
    }

    @Test(arguments: files.indices)
    func `a file that is cut anywhere keeps its whole fragments`(index: Int) throws {
        let (file, ends) = try record(try demux(Self.files[index]))
        #expect(ends.count > 3)
        for count in stride(from: 0, through: file.bytes.count, by: 13) {
            let cut = MemoryFile(Array(file.bytes.prefix(count)))
            let state = try? MP4FileState.inspect(length: cut.length, read: cut.read)
            guard count >= MP4Header.fileHeaderBytes else {
                if case .fragmented(_, let fragments)? = state {
                    #expect(fragments == 0)
                } else {
                    #expect(state == nil)
                }
                continue
            }
            let whole = ends.lastIndex { $0 <= count } ?? 0
            #expect(state == .fragmented(length: UInt64(ends[whole]), fragments: whole))
        }
        for whole in 1..<ends.count {
            let cut = MemoryFile(Array(file.bytes.prefix(ends[whole])))
            let completion = try MP4Finaliser.complete(length: cut.length, read: cut.read, write: cut.append)
            #expect(completion.length == cut.length)
        }
        let empty = MemoryFile(Array(file.bytes.prefix(ends[0])))
        #expect(throws: FormatError.self) {
            _ = try MP4Finaliser.complete(length: empty.length, read: empty.read, write: empty.append)
        }
    }

    @Test func `zeros behind the last fragment are cut off`() throws {
        let (file, ends) = try record(try demux(Fixtures.h264))
        for whole in 0..<ends.count {
            for offset in [0, 3, 40] where ends[whole] + offset <= file.bytes.count {
                let bytes = Array(file.bytes.prefix(ends[whole] + offset)) + [UInt8](repeating: 0, count: 5_000)
                let cut = MemoryFile(bytes)
                let state = try MP4FileState.inspect(length: cut.length, read: cut.read)
                // Zeros in place of samples cannot be told from samples.
                guard case .fragmented(let length, let count) = state else {
                    Issue.record("not fragmented")
                    continue
                }
                if offset < 40 { #expect(length == UInt64(ends[whole]) && count == whole) }
                #expect(length <= cut.length)
            }
        }
    }

    @Test func `a disk that fails stops the finaliser`() throws {
        let (file, _) = try record(try demux(Fixtures.vp9))
        #expect(throws: FormatError.unwritable) {
            _ = try MP4Finaliser.complete(length: file.length, read: file.read) { _ in false }
        }
        for limit in 0..<20 {
            var reads = 0
            let read: FileReader = { offset, count in
                reads += 1
                return reads > limit ? nil : file.read(offset, count)
            }
            #expect(throws: FormatError.unreadable) {
                _ = try MP4Finaliser.complete(length: file.length, read: read) { _ in true }
            }
        }
    }

    @Test func `a file above 4 GiB has offsets of 64 bits`() throws {
        let size = PictureSize(width: 640, height: 360)
        let track = try MP4Track(id: 1, configuration: .vp9(VPConfiguration(size: size)))
        let header = try MP4RecordingWriter(tracks: [track], origin: .zero).start.bytes
        // Each fragment has one sample, whose bytes are not there: 3 GiB of them.
        let sampleBytes = 3 << 30
        var pieces: [(offset: Int, bytes: [UInt8])] = [(0, header)]
        var end = header.count
        for number in 0..<2 {
            var builder = MP4FragmentBuilder()
            let sample = MP4Sample(decodeTime: Int64(number) * 3_000, duration: 3_000, isKey: true, bytes: [1])
            try builder.append(sample, track: 1)
            let built = builder.finish()
            var bytes = try #require(built).dropLast()
            let sizeBytes = [UInt8(0xC0), 0, 0, 0]
            bytes.replaceSubrange((bytes.count - 12)..<(bytes.count - 8), with: sizeBytes)
            bytes.replaceSubrange((bytes.count - 8)..<(bytes.count - 4), with: [0xC0, 0, 0, 8])
            pieces.append((end, Array(bytes)))
            end += bytes.count + sampleBytes
        }
        let read: FileReader = { offset, count in
            (0..<count).map { index in
                let at = Int(offset) + index
                let piece = pieces.first { at >= $0.offset && at < $0.offset + $0.bytes.count }
                return piece.map { $0.bytes[at - $0.offset] } ?? 0
            }
        }
        #expect(
            try MP4FileState.inspect(length: UInt64(end), read: read) == .fragmented(length: UInt64(end), fragments: 2)
        )
        let movie = MemoryFile()
        let completion = try MP4Finaliser.complete(length: UInt64(end), read: read, write: movie.append)
        #expect(completion.length == UInt64(end) + movie.length)
        let table = try #require(find("co64", in: movie.bytes))
        let entries = movie.bytes[(table + 12)..<(table + 28)]
        let second = entries.suffix(8).reduce(0) { $0 << 8 | Int($1) }
        #expect(second == pieces[2].offset + pieces[2].bytes.count)
        let size64 = completion.patch.bytes.suffix(8).reduce(0) { $0 << 8 | Int($1) }
        #expect(size64 == end - Int(completion.patch.offset ?? 0))
    }

    @Test func `the tables of the end tell each sample`() throws {
        let frames = try demux(Fixtures.h264)
        let (file, _) = try record(frames)
        let end = file.bytes.count
        _ = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        let movie = Array(file.bytes[end...])
        var position = 0
        var sizes: [[Int]] = []
        while let at = find("stsz", in: movie, from: position) {
            let word = { (at: Int) in movie[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) } }
            sizes.append((0..<word(at + 12)).map { word(at + 16 + 4 * $0) })
            position = at + 4
        }
        let kinds: [MediaKind] = frames.first?.kind == .video ? [.video, .audio] : [.audio, .video]
        #expect(sizes == kinds.map { kind in frames.filter { $0.kind == kind }.map(\.bytes.count) })
        #expect(find("ctts", in: movie) != nil && find("stss", in: movie) != nil && find("mvex", in: movie) == nil)
    }

    /// The 32 bits at an offset.
    private static func word(_ bytes: [UInt8], _ at: Int) -> Int {
        bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
    }

    @Test(arguments: files.indices)
    func `chunks and sizes of the end lead to the bytes of each frame`(index: Int) throws {
        let frames = try demux(Self.files[index])
        let (file, _) = try record(frames)
        let end = file.bytes.count
        _ = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        let movie = Array(file.bytes[end...])
        let word = { Self.word(movie, $0) }
        var position = 0
        let kinds: [MediaKind] = frames.first?.kind == .video ? [.video, .audio] : [.audio, .video]
        for kind in kinds {
            let sizes = try #require(find("stsz", in: movie, from: position))
            let shapes = try #require(find("stsc", in: movie, from: position))
            let offsets = try #require(find("stco", in: movie, from: position))
            position = offsets + 4
            var samples: [[UInt8]] = []
            for chunk in 1...word(offsets + 8) {
                let shape = (0..<word(shapes + 8)).last { word(shapes + 12 + 12 * $0) <= chunk } ?? 0
                var offset = word(offsets + 12 + 4 * (chunk - 1))
                for _ in 0..<word(shapes + 16 + 12 * shape) {
                    let size = word(sizes + 16 + 4 * samples.count)
                    samples.append(Array(file.bytes[offset..<(offset + size)]))
                    offset += size
                }
            }
            #expect(samples == frames.filter { $0.kind == kind }.map(\.bytes), "\(kind)")
        }
    }

    @Test func `the edit of a track that begins late has its last picture`() throws {
        var frames = try demux(Fixtures.h264)
        let late = Interval.milliseconds(523)
        for index in frames.indices where frames[index].kind == .video {
            frames[index].decodeTime = frames[index].decodeTime + late
            frames[index].presentationTime = frames[index].presentationTime + late
        }
        frames.sort { $0.decodeTime < $1.decodeTime }
        let video = frames.filter { $0.kind == .video }
        #expect(video.contains { $0.presentationTime != $0.decodeTime }, "B-frames")
        let origin = try #require(frames.map(\.decodeTime).min())
        let lastShown = try #require(video.map(\.presentationTime).max()) - origin
        let (file, _) = try record(frames)
        let end = file.bytes.count
        _ = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        let movie = Array(file.bytes[end...])
        let list = try #require(find("elst", in: movie))
        #expect(Self.word(movie, list + 8) == 2)
        let (start, duration) = (Self.word(movie, list + 16), Self.word(movie, list + 36))
        #expect(start + duration > lastShown.nanoseconds / 1_000_000, "\(start) + \(duration), \(lastShown)")
    }

    @Test func `new parameters are a further description, and in-band after eight`() throws {
        let sps = VideoConfigurationTests.sps
        func configuration(_ number: Int) throws -> CodecConfiguration {
            let pps: [UInt8] = [0x68, 0xEB, 0xE3, UInt8(number)]
            return .h264(try H264Configuration(sequenceParameterSets: [sps], pictureParameterSets: [pps]))
        }
        let track = try MP4Track(id: 1, configuration: try configuration(0))
        var writer = try MP4RecordingWriter(tracks: [track], origin: .zero)
        let file = MemoryFile()
        file.apply([writer.start])
        var patches = 0
        for number in 0..<10 {
            let frame = MediaFrame(
                codec: .h264,
                decodeTime: .milliseconds(40 * number),
                isKey: true,
                bytes: [0, 0, 0, 1, 0x65],
                configuration: try configuration(number)
            )
            let writes = try writer.append(frame, track: 0)
            patches += writes.filter { $0.offset != nil }.count
            file.apply(writes)
            #expect(topBoxes(file.bytes).map(\.type).prefix(4) == ["ftyp", "free", "moov", "free"])
        }
        file.apply(try writer.finish())
        #expect(patches == 7)
        let stsd = try #require(find("stsd", in: file.bytes))
        #expect(file.bytes[stsd + 11] == 8)
        // Its sets are before the last slice.
        let bytes = file.bytes
        #expect(Array(bytes.suffix(5)) == [0, 0, 0, 1, 0x65])
        #expect(Array(bytes.suffix(5 + 8).prefix(8)) == [0, 0, 0, 4, 0x68, 0xEB, 0xE3, 9])
        let completion = try MP4Finaliser.complete(length: file.length, read: file.read, write: file.append)
        #expect(completion.durationMS == 400)
    }

    @Test(
        arguments: [
            (PictureRotation.none, [0x10000, 0, 0, 0, 0x10000, 0, 0, 0]),
            (.clockwise90, [0, 0x10000, 0, -0x10000, 0, 0, 720 << 16, 0]),
            (.clockwise180, [-0x10000, 0, 0, 0, -0x10000, 0, 1_280 << 16, 720 << 16]),
            (.clockwise270, [0, -0x10000, 0, 0x10000, 0, 0, 0, 1_280 << 16]),
        ] as [(PictureRotation, [Int32])]
    )
    func `the matrix turns the picture`(rotation: PictureRotation, matrix: [Int32]) throws {
        let record = try H264Configuration(
            sequenceParameterSets: [VideoConfigurationTests.sps],
            pictureParameterSets: [VideoConfigurationTests.pps]
        )
        let track = try MP4Track(id: 1, configuration: .h264(record), rotation: rotation)
        let segment = MP4Header.initSegment([track])
        let header = try #require(find("tkhd", in: segment))
        let found = (0..<8).map { index in
            let at = header + 4 + 52 + 4 * index
            return Int32(truncatingIfNeeded: segment[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) })
        }
        #expect(found == matrix)
    }

    @Test func `milliseconds of RTMP become whole frames of AAC`() throws {
        var queue = MP4SampleQueue(timescale: 44_100, origin: .zero)
        var durations: [UInt32] = []
        for number in 0..<100 {
            let exact = MediaFrame.time(ticks: Int64(1_024 * number), per: 44_100)
            let frame = MediaFrame(codec: .aac, decodeTime: .milliseconds(exact.milliseconds), isKey: true, bytes: [1])
            if let sample = queue.append(frame, description: 1, nominalDuration: 1_024) {
                durations.append(sample.duration)
            }
        }
        #expect(durations == [UInt32](repeating: 1_024, count: 99))
        #expect(queue.finish()?.duration == 1_024)
    }

    @Test func `decode times ascend whatever the source says`() throws {
        var queue = MP4SampleQueue(timescale: 90_000, origin: .zero)
        var samples: [MP4Sample] = []
        for milliseconds in [0, 40, 20, 20, 80, .max / 2_000_000, -5] {
            let frame = MediaFrame(codec: .h264, decodeTime: .milliseconds(milliseconds), isKey: false, bytes: [1])
            if let sample = queue.append(frame, description: 1) { samples.append(sample) }
        }
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.decodeTime < $1.decodeTime })
        #expect(samples.allSatisfy { $0.duration > 0 })
    }
}
