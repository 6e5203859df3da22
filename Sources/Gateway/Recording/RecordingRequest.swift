package import JSON

/// The container that a recording is asked for in.
package enum RecordingFormat: String, Hashable, Sendable, CaseIterable {
    case mp4, webm

    /// The extension of its files, without the dot.
    package var fileExtension: String { rawValue }
}

/// What is asked for when a recording starts: the arguments of Sora's `StartRecording`, and those of operators.
package struct RecordingRequest: Hashable, Sendable {
    /// The seconds that a recording and each of its parts may have.
    package static let seconds = 1...86_400
    /// The bytes of ``metadata`` as text.
    package static let metadataBytesMax = 16_384

    /// The recording ends after this many seconds; `nil` for the end of the session.
    package var expireSeconds: Int?
    /// Each file has at most this many seconds, up to the next key frame; `nil` for one file.
    package var splitSeconds: Int?
    /// Whether only parts are written, and no whole file beside them.
    package var splitOnly = false
    package var format: RecordingFormat?
    /// What the application wants to find in the report.
    package var metadata: JSONValue?

    package init() {}

    /// Reads the members of an object; others are left to the caller.
    /// - Throws: what is wrong, as a sentence for the caller.
    package init(_ fields: JSONFields) throws(JSONShapeError) {
        expireSeconds = try fields.integer("expire_time", Self.seconds)
        splitSeconds = try fields.integer("split_duration", Self.seconds)
        splitOnly = try fields.bool("split_only") ?? false
        format = try fields.choice("format")
        if let found = fields.value("metadata"), !found.isNull { metadata = found }
        guard !splitOnly || splitSeconds != nil else {
            throw JSONShapeError("\"split_only\" needs \"split_duration\": the seconds of each part.")
        }
        if let metadata, metadata.text.utf8.count > Self.metadataBytesMax {
            throw JSONShapeError("\"metadata\" has to be at most \(Self.metadataBytesMax) bytes long.")
        }
    }
}

/// Why a recording does not start, or ended.
package enum RecordingFailure: Error, Hashable, Sendable {
    /// The channel has no session.
    case sessionMissing
    /// The session is recorded already.
    case exists
    /// The node has no folder for recordings.
    case disabled
    /// Too little of the disk is free.
    case diskFull
    /// The node records as many sessions as it may.
    case full

    /// The status of HTTP.
    package var status: Int {
        switch self {
        case .sessionMissing: 404
        case .exists, .disabled: 409
        case .diskFull: 507
        case .full: 503
        }
    }

    /// The reason for programs.
    package var reason: String {
        switch self {
        case .sessionMissing: "SESSION-NOT-FOUND"
        case .exists: "RECORDING-EXISTS"
        case .disabled: "RECORDING-DISABLED"
        case .diskFull: "DISK-FULL"
        case .full: "RECORDINGS-FULL"
        }
    }

    /// What is wrong and what to do.
    package var message: String {
        switch self {
        case .sessionMissing: "The channel has no session: a recording begins when somebody is there."
        case .exists: "The session is recorded already: stop that recording first."
        case .disabled: "This node does not record: start it with --recording-dir."
        case .diskFull: "Too little of the disk of recordings is free: remove some, or lower --recording-free-min."
        case .full: "The node records as many sessions as it may: stop one, or raise the limit \"recordings\"."
        }
    }
}
