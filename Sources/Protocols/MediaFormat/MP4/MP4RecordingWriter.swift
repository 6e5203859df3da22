package import Base
import Wire

/// Bytes for a file: at its end, or over bytes that are there.
package struct FileWrite: Hashable, Sendable {
    /// Where the bytes go; `nil` for the end of the file.
    package let offset: UInt64?
    /// The content of the write.
    package let bytes: [UInt8]

    /// Creates a write.
    package init(offset: UInt64? = nil, bytes: [UInt8]) {
        self.offset = offset
        self.bytes = bytes
    }
}

/// Writes a recording as fragmented MP4 that is readable at any time, and that ``MP4Finaliser`` completes.
///
/// The writes must reach the file in their order: a new sample description is in the header before a fragment refers to
/// it.
package struct MP4RecordingWriter: Sendable {
    /// The bytes of samples after which a fragment ends.
    package static let fragmentBytes = 1 << 20

    private struct Lane: Sendable {
        var track: MP4Track
        var queue: MP4SampleQueue
        var configuration: CodecConfiguration
        var description: UInt32 = 1
        /// Whether key frames have their parameter sets too.
        var repeatsParameterSets = false
    }

    private var lanes: [Lane]
    private var builder = MP4FragmentBuilder()
    private let fragmentDuration: Interval
    private let header: [UInt8]
    /// The time of the first sample of the fragment, in nanoseconds since the origin.
    private var fragmentStart: Interval?
    /// Where the file's `moov` begins.
    private let movieOffset: Int

    /// Creates a writer.
    /// - Parameters:
    ///   - tracks: one or more, whose identifiers differ.
    ///   - origin: the time that is 0 in the file.
    ///   - fragmentDuration: after which a fragment ends, at most: what a crash may cost.
    package init(
        tracks: [MP4Track],
        origin: Interval,
        fragmentDuration: Interval = .seconds(1)
    ) throws(FormatError) {
        guard !tracks.isEmpty, Set(tracks.map(\.id)).count == tracks.count else {
            throw .invalid("the tracks of a file")
        }
        guard let header = MP4Header.file(tracks) else { throw .limit("bytes of the sample descriptions") }
        self.header = header
        self.fragmentDuration = fragmentDuration
        let top = try BoxSpan.all(in: header, 0..<header.count)
        movieOffset = top.first { $0.type == "moov" }?.range.lowerBound ?? 0
        lanes = []
        for track in tracks {
            guard let configuration = track.configurations.first else { throw .invalid("the tracks of a file") }
            let queue = MP4SampleQueue(timescale: track.timescale, origin: origin)
            lanes.append(Lane(track: track, queue: queue, configuration: configuration))
        }
    }

    /// The first write.
    package var start: FileWrite { FileWrite(bytes: header) }

    /// The bytes that are held: samples of the fragment, and frames that wait for their successors.
    package var pendingBytes: Int { lanes.reduce(builder.byteCount) { $0 + $1.queue.waitingBytes } }

    /// Takes a frame.
    /// - Parameter index: the track's index in the tracks of the initialiser.
    /// - Returns: the writes that it causes, in order.
    package mutating func append(_ frame: MediaFrame, track index: Int) throws(FormatError) -> [FileWrite] {
        guard lanes.indices.contains(index) else { throw .invalid("the index of a track") }
        var frame = frame
        var writes: [FileWrite] = []
        if let configuration = frame.configuration {
            writes += try receive(configuration, lane: index)
        }
        if frame.isKey, lanes[index].repeatsParameterSets {
            frame.bytes = lanes[index].configuration.inBandParameterSets + frame.bytes
        }
        // After a change of the sample rate the ticks are still those of the first one.
        let isOwnClock = lanes[index].configuration.sampleRate == Int(lanes[index].track.timescale)
        let nominal = isOwnClock ? lanes[index].configuration.nominalDuration(of: frame) : nil
        let description = lanes[index].description
        guard let sample = lanes[index].queue.append(frame, description: description, nominalDuration: nominal) else {
            return writes
        }
        return writes + (try append(sample, lane: index))
    }

    /// The last fragment. Call it once, at the end; ``MP4Finaliser`` follows.
    package mutating func finish() throws(FormatError) -> [FileWrite] {
        var writes: [FileWrite] = []
        for index in lanes.indices {
            if let sample = lanes[index].queue.finish() { writes += try append(sample, lane: index) }
        }
        return writes + cut()
    }

    private mutating func append(_ sample: MP4Sample, lane index: Int) throws(FormatError) -> [FileWrite] {
        let track = lanes[index].track
        let time = MediaFrame.time(ticks: sample.decodeTime, per: Int(track.timescale))
        var writes: [FileWrite] = []
        let end = time + MediaFrame.time(ticks: Int64(sample.duration), per: Int(track.timescale))
        if !builder.isEmpty, let fragmentStart {
            let isLong = end - fragmentStart > fragmentDuration
            let isFull = builder.byteCount + sample.bytes.count > Self.fragmentBytes
            if isLong || isFull || !builder.accepts(sample, track: track.id) { writes += cut() }
        }
        try builder.append(sample, track: track.id)
        fragmentStart = fragmentStart.map { min($0, time) } ?? time
        return writes
    }

    private mutating func cut() -> [FileWrite] {
        fragmentStart = nil
        return builder.finish().map { [FileWrite(bytes: $0)] } ?? []
    }

    /// Adds a sample description to the header, if there is room.
    ///
    /// Deviation: from then on key frames have their parameter sets in-band too, which `avc1` and `hvc1` do not provide
    /// for. FFmpeg ignores the description of a fragment, and would decode by the first one.
    private mutating func receive(
        _ configuration: CodecConfiguration,
        lane index: Int
    ) throws(FormatError) -> [FileWrite] {
        guard configuration != lanes[index].configuration else { return [] }
        guard configuration.codec.kind == lanes[index].configuration.codec.kind else {
            throw .invalid("a track's codec")
        }
        lanes[index].repeatsParameterSets = true
        var track = lanes[index].track
        if let (description, isNew) = track.description(of: configuration) {
            var tracks = lanes.map(\.track)
            tracks[index] = track
            if !isNew || MP4Header.file(tracks) != nil {
                lanes[index].track = track
                lanes[index].description = description
                lanes[index].configuration = configuration
                guard isNew, let header = MP4Header.file(tracks) else { return [] }
                return [FileWrite(offset: UInt64(movieOffset), bytes: Array(header.dropFirst(movieOffset)))]
            }
        }
        guard configuration.codec == lanes[index].configuration.codec, configuration.codec.kind == .video else {
            throw .limit("sample descriptions")
        }
        lanes[index].configuration = configuration
        return []
    }
}
