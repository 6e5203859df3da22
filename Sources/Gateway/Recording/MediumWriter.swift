package import Base
package import MediaFormat
package import Wire

/// Bytes for a medium that is written.
package struct MediumWrite: Hashable, Sendable {
    /// From the file's start.
    package let offset: UInt64
    package let bytes: [UInt8]
}

/// The limits of what a writer holds.
package enum MediumLimits {
    /// How long the tracks of a file are waited for, by the time of the frames.
    package static let trackPatience = Interval.seconds(2)
    /// Their bytes meanwhile.
    package static let heldBytesMax = 8 << 20
    /// What a crash may cost.
    package static let fragmentDuration = Interval.seconds(1)
}

/// Writes one medium: the audio and the video of a connection, from the first frames on.
///
/// Each write makes the file longer by a whole fragment, so that what is on the disk plays at any time. ``MediumCompletion`` makes an
/// ordinary file of it.
package struct MediumWriter: Sendable {
    private enum Container: Sendable {
        case mp4(MP4RecordingWriter)
        case webm(WebMRecordingWriter)
    }
    private struct Held: Sendable {
        var frame: MediaFrame
        var rotation: PictureRotation
    }

    private let wanted: RecordingFormat
    private var expected: Set<MediaKind>
    private var held: [Held] = []
    private var heldBytes = 0
    private var container: Container?
    /// The kinds of the tracks, in the file's order.
    private var kinds: [MediaKind] = []
    /// What is added to the times of frames, after they went back.
    private var shift = Interval.zero
    private var latest: Interval?

    /// The format of the file: the one that was asked for, if it can have the codecs. `nil` before the first write.
    package private(set) var format: RecordingFormat?
    /// The bytes of the file so far.
    package private(set) var length: UInt64 = 0
    /// The configurations that the file began with.
    package private(set) var configurations: [MediaKind: CodecConfiguration] = [:]
    /// How pictures are turned; the file has one rotation.
    package private(set) var rotation = PictureRotation.none
    /// The time of the first frame, on the clock of the frames; `nil` before the first write.
    package private(set) var origin: Interval?
    /// From the file's start to its last frame.
    package var duration: Interval { origin.flatMap { origin in latest.map { $0 - origin } } ?? .zero }

    /// - Parameters:
    ///   - wanted: H.264 and H.265 are written as MP4 in any case, and VP8 as WebM.
    ///   - expected: the kinds that the connection sends. A file waits a moment for each of them.
    package init(wanted: RecordingFormat, expecting expected: Set<MediaKind>) {
        self.wanted = wanted
        self.expected = expected
    }

    /// The bytes that are held in memory.
    package var pendingBytes: Int {
        switch container {
        case .mp4(let writer): writer.pendingBytes
        case .webm(let writer): writer.pendingBytes
        case nil: heldBytes
        }
    }

    /// Whether a frame fits into the file. Otherwise the file is to be finished, and another one begun: a track began late, its codec
    /// changed, or the picture was turned.
    package func accepts(_ frame: MediaFrame, rotation: PictureRotation = .none) -> Bool {
        guard container != nil else { return true }
        guard let begun = configurations[frame.kind], begun.codec == frame.codec else { return false }
        return frame.kind == .audio || rotation == self.rotation
    }

    /// Takes a frame.
    /// - Parameter isDiscontinuity: its time does not continue that of the frames before.
    /// - Throws: when it does not fit: see ``accepts(_:rotation:)``.
    package mutating func append(
        _ frame: MediaFrame,
        rotation: PictureRotation = .none,
        isDiscontinuity: Bool = false
    ) throws(FormatError) -> [MediumWrite] {
        var frame = frame
        if isDiscontinuity, let latest, frame.decodeTime + shift < latest { shift = latest - frame.decodeTime }
        frame.decodeTime = frame.decodeTime + shift
        frame.presentationTime = frame.presentationTime + shift
        guard container == nil else { return try write(frame) }
        // Nothing decodes before the first key frame of a track.
        let isBegun = held.contains { $0.frame.kind == frame.kind }
        guard isBegun || frame.isKey && frame.configuration != nil else { return [] }
        held.append(Held(frame: frame, rotation: rotation))
        heldBytes += frame.bytes.count
        guard isReady else { return [] }
        return try begin()
    }

    /// The last writes. Nothing is written when no frame came.
    package mutating func finish() throws(FormatError) -> [MediumWrite] {
        var writes = container == nil && !held.isEmpty ? try begin() : []
        switch container {
        case .mp4(var writer):
            writes += place(try writer.finish())
            container = .mp4(writer)
        case .webm(var writer):
            writes += place(writer.finish())
            container = .webm(writer)
        case nil: break
        }
        return writes
    }

    // MARK: - The start

    /// Whether each track that is expected has come, or was waited for long enough.
    private var isReady: Bool {
        guard let first = held.first?.frame, let last = held.last?.frame else { return false }
        if expected.isSubset(of: held.map(\.frame.kind)) { return true }
        return last.decodeTime - first.decodeTime >= MediumLimits.trackPatience
            || heldBytes >= MediumLimits.heldBytesMax
    }

    private mutating func begin() throws(FormatError) -> [MediumWrite] {
        var found: [(kind: MediaKind, configuration: CodecConfiguration, rotation: PictureRotation)] = []
        for one in held where !found.contains(where: { $0.kind == one.frame.kind }) {
            guard let configuration = one.frame.configuration else { continue }
            found.append((one.frame.kind, configuration, one.rotation))
        }
        // Players take the first track of video for the picture.
        found.sort { $0.kind == .video && $1.kind == .audio }
        let chosen = format(of: found.map(\.configuration.codec))
        let start = held.map(\.frame.presentationTime).min() ?? .zero
        let first = min(start, held.first?.frame.decodeTime ?? start)
        let writes = try open(chosen, found, origin: first)
        kinds = found.map(\.kind)
        configurations = Dictionary(uniqueKeysWithValues: found.map { ($0.kind, $0.configuration) })
        rotation = found.first { $0.kind == .video }?.rotation ?? .none
        (format, origin) = (chosen, first)
        let frames = held
        (held, heldBytes) = ([], 0)
        var all = place(writes)
        for one in frames { all += try write(one.frame) }
        return all
    }

    private mutating func open(
        _ format: RecordingFormat,
        _ tracks: [(kind: MediaKind, configuration: CodecConfiguration, rotation: PictureRotation)],
        origin: Interval
    ) throws(FormatError) -> [FileWrite] {
        switch format {
        case .mp4:
            var made: [MP4Track] = []
            for (index, track) in tracks.enumerated() {
                made.append(
                    try MP4Track(
                        id: UInt32(index + 1),
                        configuration: track.configuration,
                        rotation: track.rotation
                    )
                )
            }
            let writer = try MP4RecordingWriter(
                tracks: made,
                origin: origin,
                fragmentDuration: MediumLimits.fragmentDuration
            )
            container = .mp4(writer)
            return [writer.start]
        case .webm:
            var made: [WebMTrack] = []
            for (index, track) in tracks.enumerated() {
                made.append(
                    try WebMTrack(
                        number: index + 1,
                        configuration: track.configuration,
                        rotation: track.rotation
                    )
                )
            }
            let writer = try WebMRecordingWriter(
                tracks: made,
                origin: origin,
                clusterDuration: MediumLimits.fragmentDuration
            )
            container = .webm(writer)
            return [writer.start]
        }
    }

    private func format(of codecs: [MediaCodec]) -> RecordingFormat {
        let fitsMP4 = codecs.allSatisfy(MP4Track.isSupported)
        let fitsWebM = codecs.allSatisfy(WebMTrack.isSupported)
        switch wanted {
        case .mp4: return fitsMP4 || !fitsWebM ? .mp4 : .webm
        case .webm: return fitsWebM || !fitsMP4 ? .webm : .mp4
        }
    }

    // MARK: - Frames

    private mutating func write(_ frame: MediaFrame) throws(FormatError) -> [MediumWrite] {
        guard let track = kinds.firstIndex(of: frame.kind) else { throw .invalid("the kind of a frame") }
        latest = max(latest ?? frame.decodeTime, frame.decodeTime)
        switch container {
        case .mp4(var writer):
            container = nil
            defer { container = .mp4(writer) }
            return place(try writer.append(frame, track: track))
        case .webm(var writer):
            container = nil
            defer { container = .webm(writer) }
            return place(try writer.append(frame, track: track))
        case nil: return []
        }
    }

    /// Where writes go.
    private mutating func place(_ writes: [FileWrite]) -> [MediumWrite] {
        var placed: [MediumWrite] = []
        for write in writes {
            let offset = write.offset ?? length
            length = max(length, offset &+ UInt64(write.bytes.count))
            placed.append(MediumWrite(offset: offset, bytes: write.bytes))
        }
        return placed
    }
}
