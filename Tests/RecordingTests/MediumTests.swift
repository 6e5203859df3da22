import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

@testable import Recording

struct MediumTests {
    /// Frames of a sample with its sound, in the order of their times, twice over so that there are several fragments.
    static func frames(_ file: [UInt8]) throws -> [MediaFrame] {
        let once = try demux(file).filter { !$0.bytes.isEmpty }
        return (0..<6).flatMap { round in
            once.map {
                var frame = $0
                frame.decodeTime = frame.decodeTime + .milliseconds(480 * round)
                frame.presentationTime = frame.presentationTime + .milliseconds(480 * round)
                if round > 0 { frame.configuration = nil }
                return frame
            }
        }
        .sorted { $0.decodeTime < $1.decodeTime }
    }

    static let vp8: [MediaFrame] = (0..<90).map { number in
        let isKey = number % 30 == 0
        let head: [UInt8] = isKey ? [0x10, 2, 0, 0x9D, 0x01, 0x2A, 0x80, 2, 0x68, 1] : [0x11, 2, 0]
        return MediaFrame(
            codec: .vp8,
            decodeTime: .milliseconds(number * 33),
            isKey: isKey,
            bytes: head + Array(repeating: UInt8(number), count: 40),
            configuration: number == 0 ? .vp8(VPConfiguration(size: PictureSize(width: 640, height: 360))) : nil
        )
    }

    /// Writes all frames, and finishes.
    private func write(_ frames: [MediaFrame], _ writer: inout MediumWriter, to disk: MemoryDisk) throws {
        for frame in frames { try disk.apply(try writer.append(frame)) }
        try disk.apply(try writer.finish())
    }

    @Test(
        arguments: [
            (Fixtures.h264, RecordingFormat.webm, RecordingFormat.mp4), (Fixtures.h264, .mp4, .mp4),
            (Fixtures.h265, .webm, .mp4), (Fixtures.av1, .webm, .webm), (Fixtures.av1, .mp4, .mp4),
            (Fixtures.vp9, .webm, .webm),
        ]
    )
    func `a medium is complete, in the format that fits its codecs`(
        file: [UInt8],
        wanted: RecordingFormat,
        format: RecordingFormat
    ) throws {
        let frames = try Self.frames(file)
        var writer = MediumWriter(wanted: wanted, expecting: [.audio, .video])
        let disk = MemoryDisk()
        try write(frames, &writer, to: disk)
        // AAC fits into MP4 alone.
        let hasAAC = frames.contains { $0.codec == .aac }
        #expect(writer.format == (hasAAC ? .mp4 : format))
        #expect(writer.configurations.count == 2 && writer.duration >= .seconds(2))
        #expect(writer.length == UInt64(disk.bytes.count))
        let outcome = try MediumCompletion.complete(disk, try #require(writer.format))
        #expect(outcome.lostBytes == 0 && outcome.length == UInt64(disk.bytes.count))
        #expect(abs(Int(outcome.durationMS ?? 0) - writer.duration.milliseconds) <= 60)
        // A second time there is nothing to do.
        let bytes = disk.bytes
        #expect(try MediumCompletion.complete(disk, try #require(writer.format)).durationMS == nil)
        #expect(disk.bytes == bytes)
    }

    @Test func `VP8 asked for as MP4 is written as WebM`() throws {
        var writer = MediumWriter(wanted: .mp4, expecting: [.video])
        let disk = MemoryDisk()
        try write(Self.vp8, &writer, to: disk)
        #expect(writer.format == .webm)
        #expect(try MediumCompletion.complete(disk, .webm).lostBytes == 0)
    }

    @Test(arguments: [RecordingFormat.mp4, .webm])
    func `a kill at any step loses a second at most, and completion may be killed at any step`(
        format: RecordingFormat
    ) throws {
        let frames = format == .webm ? Self.vp8 : try Self.frames(Fixtures.h264)
        func writeAll(_ disk: MemoryDisk) -> (seconds: Interval, writer: MediumWriter) {
            var writer = MediumWriter(wanted: format, expecting: format == .webm ? [.video] : [.audio, .video])
            var last = Interval.zero
            do {
                for frame in frames {
                    last = frame.decodeTime
                    try disk.apply(try writer.append(frame))
                }
                try disk.apply(try writer.finish())
            } catch {
                // Killed.
            }
            return (last, writer)
        }
        let whole = MemoryDisk()
        _ = writeAll(whole)
        let undisturbed = MemoryDisk(whole.bytes)
        _ = try MediumCompletion.complete(undisturbed, format)
        for steps in 2...whole.steps {
            let disk = MemoryDisk()
            disk.stepsLeft = steps
            let (killedAt, _) = writeAll(disk)
            let left = disk.bytes
            var durations: Set<UInt64> = []
            var results: Set<[UInt8]> = []
            // The completion after the restart may be killed, too.
            for cut in 1...8 {
                let again = MemoryDisk(left)
                again.stepsLeft = cut
                let first = try? MediumCompletion.complete(again, format)
                again.stepsLeft = nil
                // A file without a whole fragment is told, and not made.
                guard let outcome = first ?? (try? MediumCompletion.complete(again, format)) else { continue }
                if let duration = outcome.durationMS { durations.insert(duration) }
                results.insert(again.bytes)
            }
            #expect(results.count <= 1 && durations.count <= 1)
            guard let duration = durations.first, let start = frames.first?.decodeTime else { continue }
            let missing = (killedAt - start).milliseconds - Int(duration)
            #expect(missing <= 1_050, "\(steps) steps")
        }
    }

    @Test func `a full disk is told, and what was written stays complete`() throws {
        let frames = try Self.frames(Fixtures.h264)
        let whole = MemoryDisk()
        var first = MediumWriter(wanted: .mp4, expecting: [.audio, .video])
        try write(frames, &first, to: whole)
        let disk = MemoryDisk()
        disk.room = whole.bytes.count * 9 / 10
        var writer = MediumWriter(wanted: .mp4, expecting: [.audio, .video])
        #expect(throws: MediumFailure.system(28)) { try write(frames, &writer, to: disk) }
        // There is no room for the tables either.
        disk.room = disk.bytes.count
        #expect(throws: MediumFailure.system(28)) { try MediumCompletion.complete(disk, .mp4) }
        disk.room = nil
        #expect(try MediumCompletion.complete(disk, .mp4).durationMS ?? 0 > 500)
    }

    @Test func `what is no recording is refused`() {
        #expect(throws: MediumFailure.self) { try MediumCompletion.complete(MemoryDisk(), .mp4) }
        #expect(throws: MediumFailure.self) { try MediumCompletion.complete(MemoryDisk([1, 2, 3]), .webm) }
    }

    // MARK: Tracks

    private func sound(_ milliseconds: Int) -> MediaFrame {
        MediaFrame(
            codec: .opus,
            decodeTime: .milliseconds(milliseconds),
            isKey: true,
            bytes: [0xF8, 1, 2],
            configuration: milliseconds == 0 ? .opus(OpusConfiguration(channels: 2)) : nil
        )
    }

    @Test func `a track that is expected is waited for two seconds`() throws {
        var writer = MediumWriter(wanted: .webm, expecting: [.audio, .video])
        var began: Int?
        for number in 0..<200 where began == nil {
            if try !writer.append(sound(number * 20)).isEmpty { began = number * 20 }
        }
        #expect(began == 2_000)
        #expect(Set(writer.configurations.keys) == [.audio])
        // Video that begins later needs another file.
        #expect(!writer.accepts(Self.vp8[0]) && writer.accepts(sound(9_000)))
        // With both there is nothing to wait for.
        var both = MediumWriter(wanted: .webm, expecting: [.audio, .video])
        #expect(try both.append(sound(0)).isEmpty)
        #expect(try !both.append(Self.vp8[0]).isEmpty)
    }

    @Test func `video begins with a key frame`() throws {
        var writer = MediumWriter(wanted: .webm, expecting: [.video])
        for frame in Self.vp8[1..<30] { #expect(try writer.append(frame).isEmpty) }
        #expect(try writer.finish().isEmpty && writer.format == nil)
        #expect(writer.pendingBytes == 0)
    }

    @Test func `another codec and a turned picture need another file`() throws {
        var writer = MediumWriter(wanted: .webm, expecting: [.video])
        _ = try writer.append(Self.vp8[0], rotation: .clockwise90)
        #expect(writer.rotation == .clockwise90)
        #expect(writer.accepts(Self.vp8[1], rotation: .clockwise90))
        #expect(!writer.accepts(Self.vp8[1]))
        var other = Self.vp8[1]
        other.codec = .vp9
        #expect(!writer.accepts(other, rotation: .clockwise90))
    }

    @Test func `times that go back are continued`() throws {
        var writer = MediumWriter(wanted: .webm, expecting: [.video])
        let disk = MemoryDisk()
        for frame in Self.vp8 { try disk.apply(try writer.append(frame)) }
        for (number, frame) in Self.vp8.enumerated() {
            try disk.apply(try writer.append(frame, isDiscontinuity: number == 0))
        }
        try disk.apply(try writer.finish())
        let duration = try #require(try MediumCompletion.complete(disk, .webm).durationMS)
        #expect(abs(Int(duration) - 2 * 89 * 33) <= 2)
    }

    @Test func `what waits for a track is bounded`() throws {
        var writer = MediumWriter(wanted: .mp4, expecting: [.audio, .video])
        var frame = try #require(try Self.frames(Fixtures.vp9).first { $0.kind == .video })
        frame.bytes += Array(repeating: 0, count: 1 << 20)
        var count = 0
        while try writer.append(frame).isEmpty, count < 20 {
            frame.decodeTime = frame.decodeTime + .milliseconds(1)
            count += 1
        }
        #expect(count == 7)
    }
}
