import Base
package import MediaFormat

/// The frames of an FLV file.
package func demux(_ file: [UInt8], pieceBytes: Int = .max) throws -> [MediaFrame] {
    var reader = FLVFileReader()
    var tags: [FLVTag] = []
    var rest = file[...]
    while !rest.isEmpty {
        let piece = Array(rest.prefix(pieceBytes))
        rest = rest.dropFirst(piece.count)
        try reader.append(unsafe piece.span.bytes) { tags.append($0) }
    }
    var demuxer = FLVDemuxer()
    var frames: [MediaFrame] = []
    for tag in tags {
        if case .frame(let frame) = try demuxer.receive(tag) { frames.append(frame) }
    }
    return frames
}
