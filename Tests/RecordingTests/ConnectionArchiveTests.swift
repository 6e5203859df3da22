import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

@testable import Recording

/// Does what an archive asks for.
private final class Disk {
    var files: [String: MemoryDisk] = [:]
    var media: [ArchiveMedium] = []
    var requests = 0

    func apply(_ steps: [ArchiveStep]) throws {
        for step in steps {
            switch step {
            case .create(let names, let format):
                #expect(files[names.temporary(format)] == nil)
                files[names.temporary(format)] = MemoryDisk()
            case .write(let names, let write):
                let format: RecordingFormat = files[names.temporary(.mp4)] == nil ? .webm : .mp4
                try files[names.temporary(format)]?.apply([write])
            case .complete(let medium):
                let found = files.removeValue(forKey: medium.names.temporary(medium.format))
                let file = try #require(found)
                #expect(UInt64(file.bytes.count) == medium.length)
                _ = try MediumCompletion.complete(file, medium.format)
                files[medium.names.medium(medium.format)] = file
                media.append(medium)
            case .keyFrameRequest: requests += 1
            }
        }
    }
}

struct ConnectionArchiveTests {
    private static let layout = RecordingLayout(recordingID: "R")!

    private func archive(
        split seconds: Int? = nil,
        only: Bool = false,
        both: Bool = false,
        expecting kinds: Set<MediaKind> = [.video]
    ) throws -> ConnectionArchive {
        var request = RecordingRequest()
        (request.splitSeconds, request.splitOnly) = (seconds, only)
        return try #require(
            ConnectionArchive(
                Self.layout,
                connectionID: "C",
                request: request,
                format: .webm,
                expecting: kinds,
                writesBoth: both
            )
        )
    }

    /// Ten seconds, with a key frame each second; the configuration with the first one alone.
    private static let video: [MediaFrame] = (0..<300).map { number in
        var frame = MediumTests.vp8[number % 30 == 0 ? 0 : 1]
        frame.decodeTime = .milliseconds(number * 1_000 / 30)
        frame.presentationTime = frame.decodeTime
        if number > 0 { frame.configuration = nil }
        return frame
    }

    @Test func `without parts there is one file`() throws {
        var archive = try archive()
        let disk = Disk()
        for frame in Self.video { try disk.apply(try archive.append(frame)) }
        try disk.apply(try archive.finish())
        #expect(Set(disk.files.keys) == ["archive-C.webm"])
        let medium = try #require(disk.media.first)
        #expect(medium.splitIndex == nil && medium.origin == .zero && medium.duration > .seconds(9))
        #expect(archive.splitCount == 0 && archive.pendingBytes == 0)
    }

    @Test(arguments: [(only: false, both: false), (only: true, both: true), (only: false, both: true)])
    func `parts begin with key frames, with a file of the whole beside them where that is set`(
        only: Bool,
        both: Bool
    ) throws {
        var archive = try archive(split: 3, only: only, both: both)
        let disk = Disk()
        for frame in Self.video { try disk.apply(try archive.append(frame)) }
        try disk.apply(try archive.finish())
        let parts = (1...4).map { "split-archive-C_000\($0).webm" }
        #expect(Set(disk.files.keys) == Set(parts + (both && !only ? ["archive-C.webm"] : [])))
        let origins = disk.media.filter { $0.splitIndex != nil }.map(\.origin)
        #expect(origins == [.zero, .seconds(3), .seconds(6), .seconds(9)])
        #expect(disk.media.allSatisfy { $0.tracks[.video] != nil })
        #expect(archive.splitCount == 4)
    }

    @Test func `a part that is due asks for a key frame once`() throws {
        var archive = try archive(split: 3)
        let disk = Disk()
        for frame in Self.video where !frame.isKey || frame.decodeTime == .zero || frame.decodeTime == .seconds(8) {
            try disk.apply(try archive.append(frame))
        }
        #expect(disk.requests == 1)
        try disk.apply(try archive.finish())
        #expect(disk.media.map(\.origin) == [.zero, .seconds(8)])
    }

    @Test func `parts of sound alone need no key frame`() throws {
        var archive = try archive(split: 2, expecting: [.audio])
        let disk = Disk()
        for number in 0..<250 {
            let frame = MediaFrame(
                codec: .opus,
                decodeTime: .milliseconds(20 * number),
                isKey: true,
                bytes: [0xF8, 1],
                configuration: number == 0 ? .opus(OpusConfiguration(channels: 2)) : nil
            )
            try disk.apply(try archive.append(frame))
        }
        try disk.apply(try archive.finish())
        #expect(disk.media.map(\.origin) == [.zero, .seconds(2), .seconds(4)])
        #expect(disk.requests == 0)
    }

    @Test func `a picture that is turned, and a track that begins late, go on in another file`() throws {
        var archive = try archive()
        let disk = Disk()
        for frame in Self.video {
            let isTurned = frame.decodeTime > .milliseconds(4_500)
            try disk.apply(try archive.append(frame, rotation: isTurned ? .clockwise90 : .none))
        }
        let sound = MediaFrame(
            codec: .opus,
            decodeTime: .seconds(10),
            isKey: true,
            bytes: [0xF8, 1],
            configuration: .opus(OpusConfiguration(channels: 2))
        )
        try disk.apply(try archive.append(sound))
        try disk.apply(try archive.finish())
        #expect(disk.media.map(\.names.metadata) == ["archive-C.json", "archive-C-2.json", "archive-C-3.json"])
        #expect(disk.media.map(\.rotation) == [.none, .clockwise90, .none])
        #expect(disk.media[1].origin == .seconds(5), "the next key frame")
        #expect(disk.requests >= 1)
        #expect(Set(disk.media[2].tracks.keys) == [.audio])
    }

    @Test func `gaps are noted with their media, and bounded`() throws {
        var archive = try archive()
        let disk = Disk()
        for frame in Self.video.prefix(60) { try disk.apply(try archive.append(frame)) }
        archive.noteGap(of: .video, from: .seconds(1), to: .seconds(2), cause: .interrupted)
        for number in 0..<2_000 {
            archive.noteGap(of: .audio, from: .seconds(number + 2), to: .seconds(number + 3), cause: .lost)
        }
        try disk.apply(try archive.finish())
        let gaps = try #require(disk.media.first).gaps
        #expect(gaps.count == ArchiveLimits.gapsMax)
        #expect(gaps[0] == ArchiveGap(kind: .video, from: .seconds(1), to: .seconds(2), cause: .interrupted))
        #expect(gaps.last?.to == .seconds(2_002))
    }

    @Test func `a connection that sends nothing leaves no file`() throws {
        var archive = try archive(split: 3, both: true)
        #expect(try archive.finish().isEmpty)
        #expect(try archive.append(Self.video[1]).isEmpty)
        #expect(try archive.finish().isEmpty)
        #expect(
            ConnectionArchive(
                Self.layout,
                connectionID: "../C",
                request: RecordingRequest(),
                format: .mp4,
                expecting: [.video]
            ) == nil
        )
    }
}

struct WriteBudgetTests {
    @Test func `over the budget the fullest file is held until half is free`() {
        var budget = WriteBudget(bytesMax: 1_000)
        #expect(budget.add(600, of: 1) == .write)
        #expect(budget.add(300, of: 2) == .write)
        #expect(budget.add(200, of: 2) == .drop)
        #expect(budget.isHeld(1) && budget.isHeld(2) && !budget.isHeld(3))
        #expect(budget.add(1, of: 1) == .drop)
        #expect(budget.add(50, of: 3) == .write)
        budget.remove(300, of: 1)
        #expect(budget.isHeld(1) && budget.waitingBytes == 650)
        budget.remove(150, of: 2)
        #expect(!budget.isHeld(1) && !budget.isHeld(2))
        #expect(budget.add(400, of: 1) == .write)
        #expect(budget.overruns == 2)
        // More is never removed than was added.
        budget.remove(.max, of: 1)
        budget.remove(.max, of: 9)
        #expect(budget.waitingBytes == 200)
    }

    @Test func `the disk is low, full and free again, and does not flap`() {
        var watch = DiskWatch(freeShareMin: 0.05)
        let total: UInt64 = 100 << 30
        func measured(_ free: UInt64) -> DiskWatch.State {
            watch.measured(totalBytes: total, freeBytes: free)
            return watch.state
        }
        #expect(measured(6 << 30) == .free)
        #expect(measured(4 << 30) == .low)
        // A little more than what is set is not enough.
        #expect(measured(total / 100 * 52 / 10) == .low)
        #expect(measured(6 << 30) == .free)
        #expect(measured(200 << 20) == .full)
        #expect(measured(270 << 20) == .full)
        #expect(measured(300 << 20) == .low)
        watch.writeFailed()
        #expect(watch.state == .full)
        #expect(measured(50 << 30) == .free)
        watch.measured(totalBytes: 0, freeBytes: 0)
        #expect(watch.state == .full)
    }
}
