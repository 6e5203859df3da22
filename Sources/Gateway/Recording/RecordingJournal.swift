package import JSON
package import MediaFormat
package import Wire

/// What a recording has come to, as a file beside its media: all that is needed to end it after a crash.
///
/// It is written anew with each medium that begins or is complete. The order is that of ``RecordingSalvage``: complete, journal, name,
/// metadata.
package struct RecordingJournal: Hashable, Sendable {
    /// A medium that was begun.
    package struct Medium: Hashable, Sendable {
        package var connectionID: String
        /// Of a file of the whole, from 1.
        package var number: Int
        /// The part's number; `nil` for a file of the whole.
        package var splitIndex: Int?
        package var format: RecordingFormat
        /// The wall clock at its first frame, in nanoseconds since 1970.
        package var startNanoseconds: Int64
        package var tracks: [MediaKind: RecordedTrack]
        package var rotation: PictureRotation
        /// The bytes and the length once it is complete; `nil` before.
        package var completed: Completed?

        package init(
            connectionID: String,
            number: Int = 1,
            splitIndex: Int? = nil,
            format: RecordingFormat,
            startNanoseconds: Int64,
            tracks: [MediaKind: RecordedTrack],
            rotation: PictureRotation = .none
        ) {
            self.connectionID = connectionID
            self.number = number
            self.splitIndex = splitIndex
            self.format = format
            self.startNanoseconds = startNanoseconds
            self.tracks = tracks
            self.rotation = rotation
        }

        /// Its names; `nil` where the connection's cannot be part of one.
        package func names(_ layout: RecordingLayout) -> MediumNames? {
            splitIndex.map { layout.split(connectionID, index: $0) } ?? layout.archive(connectionID, number: number)
        }
    }
    package struct Completed: Hashable, Sendable {
        package var bytes: UInt64
        package var durationMS: UInt64
        /// Whether a crash ended it.
        package var isInterrupted: Bool

        package init(bytes: UInt64, durationMS: UInt64, isInterrupted: Bool = false) {
            self.bytes = bytes
            self.durationMS = durationMS
            self.isInterrupted = isInterrupted
        }
    }

    /// The bytes of a journal that is read. One of ``ArchiveLimits/mediaMax`` parts has some 30 MiB.
    package static let limits = JSONLimits(
        bytesMax: 64 << 20,
        depthMax: 12,
        containersMax: 1_000_000,
        valuesMax: 4_000_000
    )

    package var recordingID: String
    package var channelID: String
    package var sessionID: String
    package var startNanoseconds: Int64
    package var request: RecordingRequest
    package var connections: [RecordedConnection]
    package var media: [Medium]
    package var failures: [FailedArchive]

    package init(
        recordingID: String,
        channelID: String,
        sessionID: String,
        startNanoseconds: Int64,
        request: RecordingRequest
    ) {
        self.recordingID = recordingID
        self.channelID = channelID
        self.sessionID = sessionID
        self.startNanoseconds = startNanoseconds
        self.request = request
        connections = []
        media = []
        failures = []
    }
}

// MARK: - JSON

extension RecordingJournal {
    /// The journal as a document.
    package var document: JSONValue {
        .object([
            "version": 1, "recording_id": .string(recordingID), "channel_id": .string(channelID),
            "session_id": .string(sessionID), "start_nanoseconds": .integer(startNanoseconds),
            "request": request.document, "connections": .array(connections.map(\.document)),
            "media": .array(media.map(\.document)),
            "failures": .array(
                failures.map {
                    .object(["connection_id": .string($0.connection.connectionID), "reason": .string($0.reason)])
                }
            ),
        ])
    }

    /// Reads a journal.
    /// - Throws: what is wrong with it.
    package init(_ document: JSONValue) throws(JSONShapeError) {
        let fields = try JSONFields(document)
        guard try fields.integer("version", 1...1) == 1 else { throw JSONShapeError("\"version\" is missing.") }
        let recordingID = try fields.requiredString("recording_id")
        guard RecordingLayout.isIdentifier(recordingID) else {
            throw JSONShapeError("\"recording_id\" is no name of a folder.")
        }
        self.init(
            recordingID: recordingID,
            channelID: try fields.requiredString("channel_id", bytesMax: 1_024),
            sessionID: try fields.requiredString("session_id"),
            startNanoseconds: Int64(try fields.integer("start_nanoseconds", 0...Int.max) ?? 0),
            request: try RecordingRequest(JSONFields(try fields.object("request") ?? [:]))
        )
        let countMax = ArchiveLimits.mediaMax
        for members in try fields.objects("connections", countMax: countMax) ?? [] {
            connections.append(try RecordedConnection(JSONFields(members), channelID: channelID, sessionID: sessionID))
        }
        for members in try fields.objects("media", countMax: countMax) ?? [] {
            media.append(try Medium(JSONFields(members)))
        }
        let known = Dictionary(connections.map { ($0.connectionID, $0) }) { first, _ in first }
        for members in try fields.objects("failures", countMax: countMax) ?? [] {
            let failure = JSONFields(members)
            guard let connection = known[try failure.requiredString("connection_id")] else { continue }
            failures.append(FailedArchive(connection, reason: try failure.requiredString("reason")))
        }
    }
}

extension RecordingRequest {
    /// The request as it was sent.
    fileprivate var document: JSONValue {
        var members: [String: JSONValue] = ["split_only": .bool(splitOnly)]
        if let expireSeconds { members["expire_time"] = .integer(expireSeconds) }
        if let splitSeconds { members["split_duration"] = .integer(splitSeconds) }
        if let format { members["format"] = .string(format.rawValue) }
        if let metadata { members["metadata"] = metadata }
        return .object(members)
    }
}

extension RecordedConnection {
    fileprivate var document: JSONValue {
        var members: [String: JSONValue] = [
            "client_id": .string(clientID), "bundle_id": .string(bundleID), "connection_id": .string(connectionID),
            "label": .string(label), "node_name": .string(nodeName), "screen": .bool(isScreen),
        ]
        if let userID { members["user_id"] = .string(userID) }
        return .object(members)
    }

    fileprivate init(_ fields: JSONFields, channelID: String, sessionID: String) throws(JSONShapeError) {
        self.init(
            channelID: channelID,
            sessionID: sessionID,
            clientID: try fields.string("client_id", bytesMax: 1_024) ?? "",
            bundleID: try fields.string("bundle_id", bytesMax: 1_024) ?? "",
            connectionID: try fields.requiredString("connection_id"),
            label: try fields.string("label", bytesMax: 1_024) ?? "",
            nodeName: try fields.string("node_name", bytesMax: 1_024) ?? "",
            userID: try fields.string("user_id", bytesMax: 1_024),
            isScreen: try fields.bool("screen") ?? false
        )
    }
}

extension RecordingJournal.Medium {
    fileprivate var document: JSONValue {
        var members: [String: JSONValue] = [
            "connection_id": .string(connectionID), "number": .integer(number), "format": .string(format.rawValue),
            "start_nanoseconds": .integer(startNanoseconds), "rotation": .integer(rotation.rawValue),
        ]
        if let splitIndex { members["split_index"] = .integer(splitIndex) }
        for (kind, track) in tracks {
            var facts: [String: JSONValue] = ["codec": .string(track.codec.rawValue)]
            if let size = track.size {
                facts["width"] = .integer(size.width)
                facts["height"] = .integer(size.height)
            }
            members[kind == .audio ? "audio" : "video"] = .object(facts)
        }
        if let completed {
            members["size"] = .integer(completed.bytes)
            members["duration_ms"] = .integer(completed.durationMS)
            members["interrupted"] = .bool(completed.isInterrupted)
        }
        return .object(members)
    }

    fileprivate init(_ fields: JSONFields) throws(JSONShapeError) {
        guard let format: RecordingFormat = try fields.choice("format") else {
            throw JSONShapeError("\"format\" is missing.")
        }
        var tracks: [MediaKind: RecordedTrack] = [:]
        for (name, kind) in [("audio", MediaKind.audio), ("video", .video)] {
            guard let members = try fields.object(name) else { continue }
            let track = JSONFields(members)
            guard let codec: MediaCodec = try track.choice("codec"), codec.kind == kind else {
                throw JSONShapeError("\"\(name)\" has no codec of its kind.")
            }
            let range = 1...FormatLimits.pixelsMax
            let size = PictureSize(
                width: try track.integer("width", range) ?? 0,
                height: try track.integer("height", range) ?? 0
            )
            tracks[kind] = RecordedTrack(codec: codec, size: size)
        }
        let countRange = 1...ArchiveLimits.mediaMax
        self.init(
            connectionID: try fields.requiredString("connection_id"),
            number: try fields.integer("number", countRange) ?? 1,
            splitIndex: try fields.integer("split_index", countRange),
            format: format,
            startNanoseconds: Int64(try fields.integer("start_nanoseconds", 0...Int.max) ?? 0),
            tracks: tracks,
            rotation: PictureRotation(rawValue: try fields.integer("rotation", 0...270) ?? 0) ?? .none
        )
        if let bytes = try fields.integer("size", 0...Int.max) {
            completed = RecordingJournal.Completed(
                bytes: UInt64(clamping: bytes),
                durationMS: UInt64(clamping: try fields.integer("duration_ms", 0...Int(Int32.max)) ?? 0),
                isInterrupted: try fields.bool("interrupted") ?? false
            )
        }
    }
}
