import Base
package import JSON
import MediaFormat
import Wire

/// A connection that is recorded, as its documents name it.
package struct RecordedConnection: Hashable, Sendable {
    package var channelID: String
    package var sessionID: String
    package var clientID: String
    package var bundleID: String
    package var connectionID: String
    package var label: String
    package var nodeName: String
    /// The user whom a token or the authentication webhook named.
    package var userID: String?
    /// Whether the connection shares a screen.
    package var isScreen: Bool

    package init(
        channelID: String,
        sessionID: String,
        clientID: String,
        bundleID: String,
        connectionID: String,
        label: String,
        nodeName: String,
        userID: String? = nil,
        isScreen: Bool = false
    ) {
        self.channelID = channelID
        self.sessionID = sessionID
        self.clientID = clientID
        self.bundleID = bundleID
        self.connectionID = connectionID
        self.label = label
        self.nodeName = nodeName
        self.userID = userID
        self.isScreen = isScreen
    }

    /// What all documents say of a connection.
    fileprivate var members: [String: JSONValue] {
        [
            "client_id": .string(clientID), "bundle_id": .string(bundleID), "connection_id": .string(connectionID),
            "label": .string(label), "node_name": .string(nodeName),
        ]
    }
}

/// A medium that is final, and where it belongs.
package struct RecordedMedium: Hashable, Sendable {
    package var connection: RecordedConnection
    package var medium: ArchiveMedium
    /// The bytes of the file.
    package var bytes: UInt64
    /// The wall clock at its first frame, in nanoseconds since 1970.
    package var startNanoseconds: Int64
    /// Whether a crash ended it.
    package var isInterrupted: Bool

    package init(
        _ medium: ArchiveMedium,
        of connection: RecordedConnection,
        bytes: UInt64,
        startNanoseconds: Int64,
        isInterrupted: Bool = false
    ) {
        self.medium = medium
        self.connection = connection
        self.bytes = bytes
        self.startNanoseconds = startNanoseconds
        self.isInterrupted = isInterrupted
    }

    /// The wall clock at its end.
    package var stopNanoseconds: Int64 { startNanoseconds &+ medium.duration.nanoseconds }
}

/// A connection of which nothing could be recorded, or not all.
package struct FailedArchive: Hashable, Sendable {
    package var connection: RecordedConnection
    /// For programs, such as `E2EE` or `DISK-FULL`.
    package var reason: String

    package init(_ connection: RecordedConnection, reason: String) {
        self.connection = connection
        self.reason = reason
    }
}

/// One recording of a session, as its documents tell it. Each is the data of the webhook of its kind, too.
package struct RecordingDocuments: Sendable {
    private let layout: RecordingLayout
    private let request: RecordingRequest
    private let channelID: String
    private let sessionID: String
    /// The recording's folder.
    private let folder: String
    /// The wall clock at the recording's start, in nanoseconds since 1970.
    private let startNanoseconds: Int64

    package init(
        _ layout: RecordingLayout,
        request: RecordingRequest,
        channelID: String,
        sessionID: String,
        folder: String,
        startNanoseconds: Int64
    ) {
        self.layout = layout
        self.request = request
        self.channelID = channelID
        self.sessionID = sessionID
        self.folder = folder
        self.startNanoseconds = startNanoseconds
    }

    private static let second: Int64 = 1_000_000_000

    private func path(_ name: String) -> JSONValue { .string("\(folder)/\(name)") }

    /// Whole seconds since the recording's start.
    private func offset(_ nanoseconds: Int64) -> JSONValue {
        .integer(max((nanoseconds &- startNanoseconds) / Self.second, 0))
    }

    /// What all documents of the recording begin with.
    private var members: [String: JSONValue] {
        [
            "recording_id": .string(layout.recordingID), "channel_id": .string(channelID),
            "session_id": .string(sessionID),
        ]
    }

    /// The metadata of a medium: `archive.available`, and `split-archive.available` for a part.
    package func archive(_ one: RecordedMedium) -> JSONValue {
        let medium = one.medium
        let (start, stop) = (one.startNanoseconds, one.stopNanoseconds)
        var document = members.merging(one.connection.members) { $1 }
        let name = medium.names.medium(medium.format)
        document["format"] = .string(medium.format.rawValue)
        document["file_path"] = path(name)
        document["filename"] = .string(name)
        document["metadata_file_path"] = path(medium.names.metadata)
        document["metadata_filename"] = .string(medium.names.metadata)
        document["size"] = .integer(one.bytes)
        document["created_at"] = .integer(start / Self.second)
        document["start_time"] = .integer(start / Self.second)
        document["stop_time"] = .integer(stop / Self.second)
        document["start_time_offset"] = offset(start)
        document["stop_time_offset"] = offset(stop)
        document["start_timestamp"] = .string(Timestamp.text(unixNanoseconds: start))
        document["stop_timestamp"] = .string(Timestamp.text(unixNanoseconds: stop))
        document["start_offset_ms"] = .integer(max((start &- startNanoseconds) / 1_000_000, 0))
        if let index = medium.splitIndex { document["split_index"] = .string(RecordingLayout.splitIndex(index)) }
        document.merge(Self.tracks(medium)) { $1 }
        document["gaps"] = .array(medium.gaps.map(Self.gap))
        if let user = one.connection.userID { document["user_id"] = .string(user) }
        document["screen"] = .bool(one.connection.isScreen)
        document["interrupted"] = .bool(one.isInterrupted)
        return .object(document)
    }

    private static func tracks(_ medium: ArchiveMedium) -> [String: JSONValue] {
        let (audio, video) = (medium.tracks[.audio], medium.tracks[.video])
        var tracks: [String: JSONValue] = ["audio": .bool(audio != nil), "video": .bool(video != nil)]
        if let audio { tracks["audio_codec_type"] = .string(audio.codec.rawValue.uppercased()) }
        guard let video else { return tracks }
        tracks["video_codec_type"] = .string(video.codec.rawValue.uppercased())
        tracks["rotation"] = .integer(medium.rotation.rawValue)
        if let size = video.size {
            tracks["video_width"] = .integer(size.width)
            tracks["video_height"] = .integer(size.height)
        }
        return tracks
    }

    private static func gap(_ gap: ArchiveGap) -> JSONValue {
        .object([
            "kind": .string(gap.kind == .audio ? "audio" : "video"), "from_ms": .integer(gap.from.milliseconds),
            "to_ms": .integer(gap.to.milliseconds), "cause": .string(gap.cause.rawValue),
        ])
    }

    /// What is written when the last part of a connection is there: `split-archive.end`.
    /// - Parameter lastIndex: of its parts.
    package func splitEnd(_ connection: RecordedConnection, lastIndex: Int, media: [RecordedMedium]) -> JSONValue {
        var document = members.merging(connection.members) { $1 }
        let (start, stop) = Self.bounds(media) ?? (startNanoseconds, startNanoseconds)
        document["split_last_index"] = .string(RecordingLayout.splitIndex(lastIndex))
        document["start_time_offset"] = offset(start)
        document["stop_time_offset"] = offset(stop)
        document["start_timestamp"] = .string(Timestamp.text(unixNanoseconds: start))
        document["stop_timestamp"] = .string(Timestamp.text(unixNanoseconds: stop))
        return .object(document)
    }

    /// What became of a connection that could not be recorded: `archive.failed`.
    package func failed(_ failure: FailedArchive) -> JSONValue {
        .object(members.merging(failure.connection.members) { $1 }.merging(["reason": .string(failure.reason)]) { $1 })
    }

    /// The report of the whole: `recording.report`.
    /// - Parameters:
    ///   - media: of all connections, whole files and parts.
    ///   - failures: what is missing.
    ///   - stopNanoseconds: the wall clock at the recording's end.
    ///   - reason: why it ended, if it did not end as asked, such as `DISK-FULL`.
    package func report(
        _ media: [RecordedMedium],
        failures: [FailedArchive] = [],
        stopNanoseconds: Int64,
        reason: String? = nil
    ) -> JSONValue {
        var document = members
        document["split_only"] = .bool(request.splitOnly)
        document["created_at"] = .integer(startNanoseconds / Self.second)
        document["start_timestamp"] = .string(Timestamp.text(unixNanoseconds: startNanoseconds))
        document["stop_timestamp"] = .string(Timestamp.text(unixNanoseconds: stopNanoseconds))
        document["file_path"] = path(layout.reportName)
        document["filename"] = .string(layout.reportName)
        document["file_written"] = .bool(true)
        if let seconds = request.splitSeconds { document["split_duration"] = .integer(seconds) }
        if let seconds = request.expireSeconds {
            document["expire_time"] = .integer(seconds)
            document["expired_at"] = .integer(startNanoseconds / Self.second + Int64(seconds))
        }
        if let metadata = request.metadata {
            document["recording_metadata"] = metadata
            // What it was called before Sora 2023.1.
            document["metadata"] = metadata
        }
        if let reason { document["reason"] = .string(reason) }
        document["archives"] = .array(archives(media))
        document["failed_archives"] = .array(
            failures.map { .object($0.connection.members.merging(["reason": .string($0.reason)]) { $1 }) }
        )
        return .object(document)
    }

    /// One entry for each file of a whole connection, and one for all parts of a connection.
    private func archives(_ media: [RecordedMedium]) -> [JSONValue] {
        // Grouped once: a connection may have many thousand parts.
        let parts = Dictionary(grouping: media.filter { $0.medium.splitIndex != nil }) { $0.connection.connectionID }
        var entries: [JSONValue] = []
        var told: Set<String> = []
        for one in media {
            var entry = one.connection.members
            var bounds = (start: one.startNanoseconds, stop: one.stopNanoseconds)
            if one.medium.splitIndex == nil {
                entry["filename"] = .string(one.medium.names.medium(one.medium.format))
                entry["metadata_filename"] = .string(one.medium.names.metadata)
                entry["size"] = .integer(one.bytes)
            } else {
                guard told.insert(one.connection.connectionID).inserted else { continue }
                let all = parts[one.connection.connectionID] ?? []
                bounds = Self.bounds(all) ?? bounds
                let last = all.compactMap(\.medium.splitIndex).max() ?? 0
                entry["split_last_index"] = .string(RecordingLayout.splitIndex(last))
            }
            entry["start_time_offset"] = offset(bounds.start)
            entry["stop_time_offset"] = offset(bounds.stop)
            entries.append(.object(entry))
        }
        return entries
    }

    private static func bounds(_ media: [RecordedMedium]) -> (start: Int64, stop: Int64)? {
        guard let start = media.map(\.startNanoseconds).min(), let stop = media.map(\.stopNanoseconds).max() else {
            return nil
        }
        return (start, stop)
    }
}
