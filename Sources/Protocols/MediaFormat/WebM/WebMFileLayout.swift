import Base

/// Where the parts of a WebM recording are.
struct WebMFileLayout {
    /// Whether the segment has its size, which is written last.
    let isComplete: Bool
    /// Where the first cluster begins.
    let firstCluster: UInt64
    /// The track that cues are of: the first of video, else the first.
    let cueTrack: UInt8

    init(length: UInt64, _ read: FileReader) throws(FormatError) {
        guard let start = read(0, WebMLayout.tracksStart + 12) else { throw .unreadable }
        guard start.starts(with: WebMLayout.beforeSegmentSize) else { throw .invalid("the start of the file") }
        guard start.count >= WebMLayout.tracksStart + 12 else { throw .truncated("the header of the file") }
        let all = unsafe start.span.bytes
        isComplete = all.bigEndianUInt64(at: WebMLayout.segmentStart - 8) != 0x01FF_FFFF_FFFF_FFFF
        let header = EBMLHeader(all.extracting(WebMLayout.tracksStart..<start.count))
        guard let header, header.identifier == EBMLElement.tracks.rawValue, let size = header.size,
            size <= UInt64(WebMLayout.tracksBytesMax)
        else { throw .invalid("the header of the file") }
        let body = UInt64(WebMLayout.tracksStart + header.headerBytes)
        guard body + size <= length else { throw .truncated("the header of the file") }
        guard let tracks = read(body, Int(size)) else { throw .unreadable }
        guard tracks.count == Int(size) else { throw .truncated("the header of the file") }
        firstCluster = body + size
        cueTrack = Self.cueTrack(in: tracks)
    }

    /// Walks over the track entries.
    private static func cueTrack(in bytes: [UInt8]) -> UInt8 {
        var first: UInt8?
        let all = unsafe bytes.span.bytes
        forEachElement(all) { identifier, entry in
            guard identifier == EBMLElement.trackEntry.rawValue else { return false }
            var number: UInt8 = 1
            var isVideo = false
            forEachElement(entry) { identifier, body in
                guard body.byteCount > 0 else { return false }
                if identifier == EBMLElement.trackNumber.rawValue { number = body.byte(at: 0) }
                if identifier == EBMLElement.trackType.rawValue { isVideo = body.byte(at: 0) == 1 }
                return false
            }
            if isVideo || first == nil { first = number }
            return isVideo
        }
        return first ?? 1
    }

    /// Passes each element to `body` until it returns `true`. Each has two bytes at least, so the walk ends.
    private static func forEachElement(_ bytes: RawSpan, _ body: (UInt32, RawSpan) -> Bool) {
        var offset = 0
        while offset < bytes.byteCount {
            guard let header = EBMLHeader(bytes.extracting(offset..<bytes.byteCount)), let size = header.size else {
                return
            }
            let start = offset + header.headerBytes
            guard size <= UInt64(bytes.byteCount - start) else { return }
            let end = start + Int(size)
            if body(header.identifier, bytes.extracting(start..<end)) { return }
            offset = end
        }
    }
}

/// A cluster of a file, of which the start was read.
struct WebMCluster {
    /// Where it begins.
    let offset: UInt64
    let end: UInt64
    /// Where its first block begins.
    let firstBlock: UInt64
    /// Timestamp in milliseconds.
    let time: UInt64
    let firstTrack: UInt8
    let startsWithKey: Bool

    /// The time of the latest block. Reads the header of each block.
    func endTime(_ read: FileReader) throws(FormatError) -> UInt64 {
        var latest = time
        var position = firstBlock
        while position < end {
            guard let bytes = read(position, 16) else { throw .unreadable }
            let all = unsafe bytes.span.bytes
            guard let header = EBMLHeader(all), let size = header.size, size <= end - position else { break }
            let start = header.headerBytes
            if header.identifier == EBMLElement.simpleBlock.rawValue, bytes.count >= start + 3 {
                latest = max(latest, time &+ UInt64(all.bigEndianUInt16(at: start + 1)))
            }
            position += UInt64(start) + size
        }
        return latest
    }
}

/// A walk over the clusters of a file. It stops in front of what is not a whole cluster.
struct WebMClusterWalk {
    private let length: UInt64
    private let read: FileReader
    /// Where the next cluster begins, or the file ends.
    private(set) var offset: UInt64

    init(_ layout: WebMFileLayout, length: UInt64, _ read: @escaping FileReader) {
        offset = layout.firstCluster
        self.length = length
        self.read = read
    }

    /// The next cluster; `nil` in front of anything else, or of a cluster that is cut.
    mutating func next() throws(FormatError) -> WebMCluster? {
        guard offset < length else { return nil }
        // Identifier and size of the cluster, its timestamp, and the start of its first block.
        guard let bytes = read(offset, Int(min(40, length - offset))) else { throw .unreadable }
        let all = unsafe bytes.span.bytes
        guard let header = EBMLHeader(all), header.identifier == EBMLElement.cluster.rawValue, let size = header.size,
            size <= length - offset - UInt64(min(header.headerBytes, bytes.count))
        else { return nil }
        let body = all.extracting(header.headerBytes..<bytes.count)
        guard let timeHeader = EBMLHeader(body), timeHeader.identifier == EBMLElement.timestamp.rawValue,
            let timeSize = timeHeader.size, timeSize <= 8
        else { return nil }
        let timeEnd = timeHeader.headerBytes + Int(timeSize)
        guard timeEnd < body.byteCount else { return nil }
        var time: UInt64 = 0
        for index in timeHeader.headerBytes..<timeEnd { time = time << 8 | UInt64(body.byte(at: index)) }
        let rest = body.extracting(timeEnd..<body.byteCount)
        guard time < 1 << 53, let block = EBMLHeader(rest), block.identifier == EBMLElement.simpleBlock.rawValue,
            rest.byteCount >= block.headerBytes + 4
        else { return nil }
        let end = offset + UInt64(header.headerBytes) + size
        let cluster = WebMCluster(
            offset: offset,
            end: end,
            firstBlock: offset + UInt64(header.headerBytes + timeEnd),
            time: time,
            firstTrack: rest.byte(at: block.headerBytes) & 0x7F,
            startsWithKey: rest.byte(at: block.headerBytes + 3) & 0x80 != 0
        )
        offset = end
        return cluster
    }
}
