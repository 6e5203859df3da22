package import Base
package import MediaFormat
package import Wire

/// A medium of a connection, once nothing is added to it any more.
package struct ArchiveMedium: Hashable, Sendable {
    package let names: MediumNames
    package let format: RecordingFormat
    /// The part's number, from 1; `nil` for a file of the whole.
    package let splitIndex: Int?
    /// The bytes before it is made final.
    package let length: UInt64
    /// The time of its first frame, on the clock of the frames.
    package let origin: Interval
    /// From its first frame to its last one.
    package let duration: Interval
    package let tracks: [MediaKind: RecordedTrack]
    package let rotation: PictureRotation
    /// The gaps of its frames.
    package let gaps: [ArchiveGap]
}

/// What a track of a medium began with.
package struct RecordedTrack: Hashable, Sendable {
    package let codec: MediaCodec
    /// Of video, where its parameters tell it.
    package let size: PictureSize?

    package init(codec: MediaCodec, size: PictureSize? = nil) {
        self.codec = codec
        self.size = size
    }
}

/// A time of which a medium has nothing.
package struct ArchiveGap: Hashable, Sendable {
    /// Why there is nothing.
    package enum Cause: String, Hashable, Sendable {
        /// Packets were lost, or the publisher sent none.
        case lost
        /// The connection was interrupted.
        case interrupted
        /// An operator muted the track.
        case muted
        /// The disk did not keep up.
        case overrun
    }

    package let kind: MediaKind
    /// From the medium's origin.
    package let from: Interval
    package let to: Interval
    package let cause: Cause
}

/// What is to be done for the archive of a connection, in order.
package enum ArchiveStep: Hashable, Sendable {
    /// A file is made, under the medium's temporary name.
    case create(MediumNames, RecordingFormat)
    case write(MediumNames, MediumWrite)
    /// The medium is whole: it is to be made final, named, and told.
    case complete(ArchiveMedium)
    /// The next part begins with a key frame: the publisher is to be asked for one.
    case keyFrameRequest
}

/// The limits of what an archive notes.
package enum ArchiveLimits {
    /// Gaps of a medium. Further ones make the last one longer.
    package static let gapsMax = 1_000
    /// Files of a connection. A connection that needs more is not recorded any more.
    package static let mediaMax = 100_000
}

/// Writes what one connection sends into files: a whole one, parts, or both.
package struct ConnectionArchive: Sendable {
    private struct Medium: Sendable {
        var names: MediumNames
        var splitIndex: Int?
        var writer: MediumWriter
        var isCreated = false
        var gaps: [ArchiveGap] = []

        mutating func note(_ kind: MediaKind, _ from: Interval, _ to: Interval, _ cause: ArchiveGap.Cause) {
            let origin = writer.origin ?? from
            if gaps.count >= ArchiveLimits.gapsMax, let last = gaps.popLast() {
                gaps.append(ArchiveGap(kind: last.kind, from: last.from, to: to - origin, cause: last.cause))
            } else {
                gaps.append(ArchiveGap(kind: kind, from: from - origin, to: to - origin, cause: cause))
            }
        }
    }

    private let layout: RecordingLayout
    private let connectionID: String
    private let format: RecordingFormat
    private let expected: Set<MediaKind>
    private let splitDuration: Interval?
    /// Whether there is a file of the whole.
    private let hasWhole: Bool
    private var whole: Medium?
    private var part: Medium?
    private var wholeCount = 0
    private var configurations: [MediaKind: CodecConfiguration] = [:]
    private var hasRequestedKeyFrame = false

    /// Parts so far, the present one included.
    package private(set) var splitCount = 0
    /// The steps that came of the newest call and were not taken.
    private var steps: [ArchiveStep] = []

    /// - Parameters:
    ///   - layout: of the recording.
    ///   - connectionID: the name of the connection.
    ///   - request: what was asked for.
    ///   - format: where the request names none.
    ///   - expected: the kinds that the connection sends.
    ///   - writesBoth: whether parts have a file of the whole beside them, as `split_only` says otherwise.
    /// - Returns: `nil` for a name that is no ``RecordingLayout/isIdentifier(_:)``.
    package init?(
        _ layout: RecordingLayout,
        connectionID: String,
        request: RecordingRequest,
        format: RecordingFormat,
        expecting expected: Set<MediaKind>,
        writesBoth: Bool = false
    ) {
        guard RecordingLayout.isIdentifier(connectionID) else { return nil }
        self.layout = layout
        self.connectionID = connectionID
        self.format = request.format ?? format
        self.expected = expected
        splitDuration = request.splitSeconds.map { .seconds($0) }
        hasWhole = request.splitSeconds == nil || writesBoth && !request.splitOnly
    }

    /// The bytes that are held in memory.
    package var pendingBytes: Int { [whole, part].reduce(0) { $0 + ($1?.writer.pendingBytes ?? 0) } }

    /// Takes a frame.
    /// - Throws: when a file cannot have it, or there are too many files: the connection is not recorded any more.
    package mutating func append(
        _ frame: MediaFrame,
        rotation: PictureRotation = .none,
        isDiscontinuity: Bool = false
    ) throws(FormatError) -> [ArchiveStep] {
        if let found = frame.configuration { configurations[frame.kind] = found }
        if hasWhole { try append(frame, rotation, isDiscontinuity, isPart: false) }
        if let splitDuration {
            try split(before: frame, after: splitDuration)
            try append(frame, rotation, isDiscontinuity, isPart: true)
        }
        return take()
    }

    /// Notes that nothing came of a kind between two times on the clock of the frames.
    package mutating func noteGap(of kind: MediaKind, from: Interval, to: Interval, cause: ArchiveGap.Cause) {
        whole?.note(kind, from, to, cause)
        part?.note(kind, from, to, cause)
    }

    /// Ends all files.
    package mutating func finish() throws(FormatError) -> [ArchiveStep] {
        try end(isPart: false)
        try end(isPart: true)
        return take()
    }

    private mutating func take() -> [ArchiveStep] {
        defer { steps = [] }
        return steps
    }

    // MARK: - Media

    private mutating func append(
        _ frame: MediaFrame,
        _ rotation: PictureRotation,
        _ isDiscontinuity: Bool,
        isPart: Bool
    ) throws(FormatError) {
        if let medium = isPart ? part : whole, !medium.writer.accepts(frame, rotation: rotation) {
            // A picture that goes on in another file begins there with a key frame.
            guard frame.isKey else { return requestKeyFrame() }
            try end(isPart: isPart)
        }
        var found = isPart ? part : whole
        if found == nil { found = isPart ? try makePart() : try makeWhole() }
        guard var medium = found else { return }
        var frame = frame
        let isFirst = medium.writer.configurations.isEmpty
        if isFirst, frame.isKey, frame.configuration == nil { frame.configuration = configurations[frame.kind] }
        let writes = try medium.writer.append(frame, rotation: rotation, isDiscontinuity: isDiscontinuity)
        write(writes, of: &medium)
        if isPart { part = medium } else { whole = medium }
    }

    private mutating func makeWhole() throws(FormatError) -> Medium? {
        wholeCount += 1
        return try make(layout.archive(connectionID, number: wholeCount), nil)
    }

    private mutating func makePart() throws(FormatError) -> Medium? {
        splitCount += 1
        hasRequestedKeyFrame = false
        return try make(layout.split(connectionID, index: splitCount), splitCount)
    }

    private func make(_ names: MediumNames?, _ splitIndex: Int?) throws(FormatError) -> Medium? {
        guard wholeCount + splitCount <= ArchiveLimits.mediaMax else { throw .limit("files of a connection") }
        // A file that follows another one waits for the kinds that were there.
        let kinds = configurations.isEmpty ? expected : Set(configurations.keys)
        return names.map {
            Medium(names: $0, splitIndex: splitIndex, writer: MediumWriter(wanted: format, expecting: kinds))
        }
    }

    private mutating func write(_ writes: [MediumWrite], of medium: inout Medium) {
        guard !writes.isEmpty, let format = medium.writer.format else { return }
        if !medium.isCreated {
            medium.isCreated = true
            steps.append(.create(medium.names, format))
        }
        for write in writes { steps.append(.write(medium.names, write)) }
    }

    private mutating func end(isPart: Bool) throws(FormatError) {
        guard var medium = isPart ? part : whole else { return }
        if isPart { part = nil } else { whole = nil }
        write(try medium.writer.finish(), of: &medium)
        guard let format = medium.writer.format, let origin = medium.writer.origin else {
            // No frame came: the next file has its name.
            if isPart { splitCount -= 1 } else { wholeCount -= 1 }
            return
        }
        steps.append(
            .complete(
                ArchiveMedium(
                    names: medium.names,
                    format: format,
                    splitIndex: medium.splitIndex,
                    length: medium.writer.length,
                    origin: origin,
                    duration: medium.writer.duration,
                    tracks: medium.writer.configurations.mapValues { RecordedTrack(codec: $0.codec, size: $0.size) },
                    rotation: medium.writer.rotation,
                    gaps: medium.gaps
                )
            )
        )
    }

    // MARK: - Parts

    /// Ends a part that is long enough, in front of a frame that the next one can begin with.
    private mutating func split(before frame: MediaFrame, after duration: Interval) throws(FormatError) {
        guard let origin = part?.writer.origin, frame.decodeTime - origin >= duration else { return }
        let hasVideo = part?.writer.configurations[.video] != nil
        guard !hasVideo || frame.kind == .video && frame.isKey else { return requestKeyFrame() }
        try end(isPart: true)
    }

    private mutating func requestKeyFrame() {
        guard !hasRequestedKeyFrame else { return }
        hasRequestedKeyFrame = true
        steps.append(.keyFrameRequest)
    }
}
