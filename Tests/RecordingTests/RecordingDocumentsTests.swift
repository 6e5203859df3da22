import Base
import JSON
import MediaFormat
import Testing
import Wire

@testable import Recording

struct RecordingDocumentsTests {
    private static let second: Int64 = 1_000_000_000
    private static let start: Int64 = 1_700_000_000 * second + 250_000_000
    private static let layout = RecordingLayout(recordingID: "REC")!

    private func connection(_ id: String) -> RecordedConnection {
        RecordedConnection(
            channelID: "sora",
            sessionID: "S",
            clientID: "alice",
            bundleID: "B",
            connectionID: id,
            label: "L",
            nodeName: "node-1",
            userID: "alice",
            isScreen: true
        )
    }

    private func documents(_ request: RecordingRequest = RecordingRequest()) -> RecordingDocuments {
        RecordingDocuments(
            Self.layout,
            request: request,
            channelID: "sora",
            sessionID: "S",
            folder: "/var/recordings/REC",
            startNanoseconds: Self.start
        )
    }

    /// A medium that begins some milliseconds after the recording.
    private func medium(_ id: String, at milliseconds: Int, seconds: Int, split: Int? = nil) throws -> RecordedMedium {
        let names = split.map { Self.layout.split(id, index: $0) } ?? Self.layout.archive(id)
        let medium = ArchiveMedium(
            names: try #require(names),
            format: .webm,
            splitIndex: split,
            length: 1_000,
            origin: .zero,
            duration: .seconds(seconds),
            tracks: [
                .video: RecordedTrack(codec: .vp9, size: PictureSize(width: 1_280, height: 720)),
                .audio: RecordedTrack(codec: .opus),
            ],
            rotation: .clockwise90,
            gaps: [ArchiveGap(kind: .audio, from: .milliseconds(5), to: .seconds(1), cause: .lost)]
        )
        return RecordedMedium(
            medium,
            of: connection(id),
            bytes: 1_234,
            startNanoseconds: Self.start + Int64(milliseconds) * 1_000_000
        )
    }

    @Test func `the metadata of a medium have all that Sora's have, and where it is`() throws {
        let document = documents().archive(try medium("C", at: 2_600, seconds: 10))
        let expected = try JSONValue(
            parsing: """
                {"recording_id": "REC", "channel_id": "sora", "session_id": "S", "client_id": "alice", "bundle_id": "B",
                "connection_id": "C", "label": "L", "node_name": "node-1", "format": "webm",
                "file_path": "/var/recordings/REC/archive-C.webm", "filename": "archive-C.webm",
                "metadata_file_path": "/var/recordings/REC/archive-C.json", "metadata_filename": "archive-C.json",
                "size": 1234, "created_at": 1700000002, "start_time": 1700000002, "stop_time": 1700000012,
                "start_time_offset": 2, "stop_time_offset": 12, "start_offset_ms": 2600,
                "start_timestamp": "2023-11-14T22:13:22.850000Z", "stop_timestamp": "2023-11-14T22:13:32.850000Z",
                "audio": true, "video": true, "audio_codec_type": "OPUS", "video_codec_type": "VP9",
                "video_width": 1280, "video_height": 720, "rotation": 90, "user_id": "alice", "screen": true,
                "interrupted": false, "gaps": [{"kind": "audio", "from_ms": 5, "to_ms": 1000, "cause": "lost"}]}
                """,
            limits: .unauthenticated
        )
        #expect(document == expected)
    }

    @Test func `a report names each file, and the parts of a connection once`() throws {
        var request = RecordingRequest()
        (request.splitSeconds, request.expireSeconds, request.metadata) = (5, 3_600, .string("m"))
        let media = try [
            medium("A", at: 0, seconds: 5, split: 1), medium("B", at: 1_000, seconds: 20),
            medium("A", at: 5_000, seconds: 5, split: 2),
        ]
        let failure = FailedArchive(connection("C"), reason: "E2EE")
        let report = documents(request).report(
            media,
            failures: [failure],
            stopNanoseconds: Self.start + 30 * Self.second
        )
        let archives = try #require(report["archives"]?.array)
        #expect(archives.count == 2)
        #expect(archives[0]["split_last_index"] == .string("0002") && archives[0]["filename"] == nil)
        #expect(archives[0]["start_time_offset"] == .integer(0) && archives[0]["stop_time_offset"] == .integer(10))
        #expect(archives[1]["filename"] == .string("archive-B.webm") && archives[1]["size"] == .integer(1_234))
        #expect(archives[1]["start_time_offset"] == .integer(1) && archives[1]["stop_time_offset"] == .integer(21))
        #expect(report["failed_archives"]?.array?.first?["reason"] == .string("E2EE"))
        #expect(report["expired_at"] == .integer(1_700_003_600) && report["split_duration"] == .integer(5))
        #expect(report["recording_metadata"] == .string("m") && report["metadata"] == .string("m"))
        #expect(report["filename"] == .string("report-REC.json") && report["reason"] == nil)
        #expect(report["stop_timestamp"] == .string("2023-11-14T22:13:50.250000Z"))
    }

    @Test func `the end of parts and a failure name their connection`() throws {
        let media = try [medium("A", at: 0, seconds: 5, split: 1), medium("A", at: 5_000, seconds: 4, split: 2)]
        let end = documents().splitEnd(connection("A"), lastIndex: 2, media: media)
        #expect(end["split_last_index"] == .string("0002") && end["stop_time_offset"] == .integer(9))
        #expect(end["connection_id"] == .string("A") && end["recording_id"] == .string("REC"))
        let failed = documents().failed(FailedArchive(connection("A"), reason: "DISK-FULL"))
        #expect(failed["reason"] == .string("DISK-FULL") && failed["node_name"] == .string("node-1"))
    }

    @Test func `part names say so in their metadata`() throws {
        let document = documents().archive(try medium("A", at: 0, seconds: 1, split: 12))
        #expect(document["split_index"] == .string("0012"))
        #expect(document["filename"] == .string("split-archive-A_0012.webm"))
    }
}
