import Base
import JSON
import MediaFormat
import MediaSamples
import Testing
import Wire

@testable import Recording

/// A recording's folder in memory, in which a crash may stop any step.
private final class Folder {
    var files: [String: [UInt8]] = [:]
    private var prepared: [String: MediumCompletion.Prepared] = [:]

    /// Performs steps until the end.
    /// - Parameter stepsMax: after which the process is killed.
    /// - Returns: the number of steps.
    @discardableResult
    func salvage(stepsMax: Int = .max) throws -> Int {
        prepared = [:]
        guard let text = files[RecordingLayout.journalName] else { return 0 }
        let document = try JSONValue(parsing: String(decoding: text, as: UTF8.self), limits: RecordingJournal.limits)
        let journal = try RecordingJournal(document)
        var salvage = try #require(RecordingSalvage(journal, folder: "/r/R", files: files.keys))
        var count = 0
        while count < stepsMax, let step = salvage.next() {
            count += 1
            switch step {
            case .prepare(let name, let format):
                let disk = MemoryDisk(files[name] ?? [])
                do {
                    let done = try MediumCompletion.prepare(disk, format)
                    prepared[name] = done
                    files[name] = disk.bytes
                    salvage.prepared(done.outcome)
                } catch {
                    salvage.failed()
                }
            case .seal(let name):
                let disk = MemoryDisk(files[name] ?? [])
                try MediumCompletion.seal(disk, try #require(prepared[name]))
                files[name] = disk.bytes
            case .store(let name, let document): files[name] = Array(document.text.utf8)
            case .rename(let name, let other): files[other] = files.removeValue(forKey: name)
            case .remove(let name): files[name] = nil
            }
        }
        return count
    }

    func document(_ name: String) throws -> JSONValue {
        let text = try #require(files[name])
        return try JSONValue(parsing: String(decoding: text, as: UTF8.self), limits: RecordingJournal.limits)
    }
}

struct RecordingSalvageTests {
    private static let start: Int64 = 1_700_000_000_000_000_000

    private func connection(_ id: String) -> RecordedConnection {
        RecordedConnection(
            channelID: "sora",
            sessionID: "S",
            clientID: id.lowercased(),
            bundleID: "",
            connectionID: id,
            label: "L",
            nodeName: "n"
        )
    }

    private func bytes(_ file: [UInt8], _ format: RecordingFormat) throws -> [UInt8] {
        var writer = MediumWriter(wanted: format, expecting: [.audio, .video])
        let disk = MemoryDisk()
        for frame in try MediumTests.frames(file) { try disk.apply(try writer.append(frame)) }
        try disk.apply(try writer.finish())
        return disk.bytes
    }

    private func medium(_ id: String, _ codec: MediaCodec, _ format: RecordingFormat, split: Int? = nil)
        -> RecordingJournal.Medium
    {
        RecordingJournal.Medium(
            connectionID: id,
            splitIndex: split,
            format: format,
            startNanoseconds: Self.start + 1_000_000_000,
            tracks: [
                .video: RecordedTrack(codec: codec, size: PictureSize(width: 160, height: 90)),
                .audio: RecordedTrack(codec: .opus),
            ]
        )
    }

    /// What a crash left: a medium that is cut, one that has all but its name, one without a fragment, and one that is told already.
    private func crashed() throws -> Folder {
        let folder = Folder()
        var request = RecordingRequest()
        (request.metadata, request.expireSeconds) = (.object(["room": 7]), 60)
        var journal = RecordingJournal(
            recordingID: "R",
            channelID: "sora",
            sessionID: "S",
            startNanoseconds: Self.start,
            request: request
        )
        journal.connections = ["A", "B", "C", "D"].map(connection)
        journal.media = [
            medium("A", .av1, .mp4), medium("B", .vp9, .webm, split: 1), medium("C", .av1, .mp4),
            medium("D", .av1, .mp4),
        ]
        let mp4 = try bytes(Fixtures.av1, .mp4)
        folder.files["archive-A.mp4.part"] = Array(mp4.dropLast(100))
        folder.files["split-archive-B_0001.webm.part"] = try bytes(Fixtures.vp9, .webm)
        folder.files["archive-C.mp4.part"] = Array(mp4.prefix(50))
        let whole = MemoryDisk(mp4)
        let outcome = try MediumCompletion.complete(whole, .mp4)
        journal.media[3].completed = RecordingJournal.Completed(
            bytes: outcome.length,
            durationMS: outcome.durationMS ?? 0
        )
        folder.files["archive-D.mp4"] = whole.bytes
        folder.files["archive-D.json"] = Array("{}".utf8)
        folder.files[RecordingLayout.journalName] = Array(journal.document.text.utf8)
        return folder
    }

    @Test func `what a crash left becomes media, metadata and a report`() throws {
        let folder = try crashed()
        try folder.salvage()
        #expect(
            Set(folder.files.keys) == [
                "archive-A.mp4", "archive-A.json", "split-archive-B_0001.webm", "split-archive-B_0001.json",
                "archive-D.mp4", "archive-D.json", "report-R.json",
            ]
        )
        let metadata = try folder.document("archive-A.json")
        #expect(metadata["interrupted"] == .bool(true) && metadata["start_offset_ms"] == .integer(1_000))
        #expect(metadata["video_width"] == .integer(160) && metadata["video_codec_type"] == .string("AV1"))
        #expect(metadata["size"]?.integer == folder.files["archive-A.mp4"]?.count)
        #expect(folder.files["archive-D.json"] == Array("{}".utf8), "what is told stays as it is")
        for name in ["archive-A.mp4", "archive-D.mp4"] {
            let disk = MemoryDisk(try #require(folder.files[name]))
            #expect(try MediumCompletion.complete(disk, .mp4).durationMS == nil, "\(name) is final")
        }
        let report = try folder.document("report-R.json")
        // As Hisui reads it: each archive has its medium and its metadata.
        let archives = try #require(report["archives"]?.array)
        #expect(archives.map { $0["connection_id"] } == [.string("A"), .string("B"), .string("D")])
        for archive in archives {
            guard let name = archive["filename"]?.string, let other = archive["metadata_filename"]?.string else {
                #expect(archive["split_last_index"] == .string("0001"))
                continue
            }
            #expect(folder.files[name]?.count == archive["size"]?.integer && folder.files[other] != nil)
        }
        #expect(report["failed_archives"]?.array?.count == 1 && report["reason"] == .string("INTERRUPTED"))
        #expect(report["recording_metadata"] == .object(["room": 7]))
    }

    @Test func `a kill at any step comes to the same end`() throws {
        let undisturbed = try crashed()
        let steps = try undisturbed.salvage()
        #expect(steps > 10)
        for first in 1..<steps {
            for second in [1, 3, 1_000] {
                let folder = try crashed()
                try folder.salvage(stepsMax: first)
                try folder.salvage(stepsMax: second)
                try folder.salvage()
                #expect(Set(folder.files.keys) == Set(undisturbed.files.keys), "\(first), \(second)")
                for (name, bytes) in undisturbed.files {
                    let same = folder.files[name] == bytes
                    let isDocument = name.hasSuffix(".json")
                    let equal = isDocument ? try folder.document(name) == undisturbed.document(name) : same
                    #expect(equal, "\(name) after \(first) and \(second) steps")
                }
            }
        }
    }

    @Test func `a journal is read as it was written`() throws {
        let folder = try crashed()
        let document = try folder.document(RecordingLayout.journalName)
        #expect(try RecordingJournal(document).document == document)
    }

    @Test(
        arguments: [
            "[]", "{}", #"{"version": 2, "recording_id": "R", "channel_id": "c", "session_id": "s"}"#,
            #"{"version": 1, "recording_id": "../R", "channel_id": "c", "session_id": "s"}"#,
            #"{"version": 1, "recording_id": "R", "channel_id": "c", "session_id": "s", "media": [{}]}"#,
            #"{"version": 1, "recording_id": "R", "channel_id": "c", "session_id": "s", "media": [{"format": "mp4", "connection_id": "C", "video": {"codec": "opus"}}]}"#,
        ]
    )
    func `a broken journal is refused`(text: String) throws {
        let document = try JSONValue(parsing: text, limits: RecordingJournal.limits)
        #expect(throws: JSONShapeError.self) { try RecordingJournal(document) }
    }

    @Test func `names of a journal that are no names are left out`() throws {
        let text = #"""
            {"version": 1, "recording_id": "R", "channel_id": "c", "session_id": "s",
            "connections": [{"connection_id": "../../etc"}], "media": [{"format": "mp4", "connection_id": "../../etc"}]}
            """#
        let journal = try RecordingJournal(try JSONValue(parsing: text, limits: RecordingJournal.limits))
        var salvage = try #require(RecordingSalvage(journal, folder: "/r", files: []))
        var steps: [SalvageStep] = []
        while let step = salvage.next() { steps.append(step) }
        #expect(steps.count == 2 && steps.last == .remove(name: "recording.json"))
    }
}
