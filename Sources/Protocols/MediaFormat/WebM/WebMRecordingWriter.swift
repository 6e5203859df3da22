package import Base
import Wire

/// Writes a recording as WebM in clusters of at most one second (RFC 9559), readable at any time, which
/// ``WebMFinaliser`` completes. Times are in milliseconds.
package struct WebMRecordingWriter: Sendable {
    /// The bytes after which a cluster ends.
    package static let clusterBytes = 1 << 20

    private let tracks: [WebMTrack]
    private let origin: Interval
    private let clusterMS: Int64
    private var blocks: [UInt8] = []
    private var clusterTime: Int64?

    /// Creates a writer.
    /// - Parameters:
    ///   - tracks: one or more, whose numbers differ.
    ///   - origin: the time that is 0 in the file; frames before it count as at it.
    ///   - clusterDuration: after which a cluster ends, at most 30 s: what a crash may cost.
    package init(
        tracks: [WebMTrack],
        origin: Interval,
        clusterDuration: Interval = .seconds(1)
    ) throws(FormatError) {
        guard !tracks.isEmpty, Set(tracks.map(\.number)).count == tracks.count else {
            throw .invalid("the tracks of a file")
        }
        self.tracks = tracks
        self.origin = origin
        clusterMS = Int64(min(max(clusterDuration.milliseconds, 1), 30_000))
    }

    /// The first write.
    package var start: FileWrite { FileWrite(bytes: WebMLayout.header(tracks)) }

    /// The bytes of the cluster so far.
    package var pendingBytes: Int { blocks.count }

    /// Takes a frame. New parameters of video are in its key frames already.
    /// - Parameter index: the track's index in the tracks of the initialiser.
    /// - Returns: the cluster before, when the frame begins another.
    package mutating func append(_ frame: MediaFrame, track index: Int) throws(FormatError) -> [FileWrite] {
        guard tracks.indices.contains(index) else { throw .invalid("the index of a track") }
        let track = tracks[index]
        guard frame.codec == track.configuration.codec else { throw .invalid("a track's codec") }
        if !track.isVideo, let configuration = frame.configuration,
            configuration.channels != track.configuration.channels
        {
            throw .limit("configurations of audio in WebM")
        }
        guard frame.bytes.count <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        let time = max(MediaFrame.ticks(frame.presentationTime - origin, per: 1_000), 0)
        var writes: [FileWrite] = []
        if let clusterTime {
            let isLate = time &- clusterTime >= clusterMS || time < clusterTime
            let isFull = blocks.count + frame.bytes.count > Self.clusterBytes
            // Cues point to clusters that begin with a key frame.
            if isLate || isFull || track.isVideo && frame.isKey { writes = finish() }
        }
        let start = clusterTime ?? time
        clusterTime = start
        var block: [UInt8] = [0x80 | track.number]
        block.append(bigEndian: UInt16(truncatingIfNeeded: time &- start))
        block.append((frame.isKey ? 0x80 : 0) | (frame.isDiscardable && track.isVideo ? 0x01 : 0))
        var writer = EBMLWriter()
        writer.append(.simpleBlock, block + frame.bytes)
        blocks += writer.bytes
        return writes
    }

    /// The cluster so far; nothing when it has no blocks. Call it once at the end; ``WebMFinaliser`` follows.
    package mutating func finish() -> [FileWrite] {
        guard let time = clusterTime else { return [] }
        clusterTime = nil
        var writer = EBMLWriter()
        writer.append(.cluster) { cluster in
            cluster.append(.timestamp, UInt64(clamping: time))
            cluster.append(blocks)
        }
        blocks = []
        return [FileWrite(bytes: writer.bytes)]
    }
}
