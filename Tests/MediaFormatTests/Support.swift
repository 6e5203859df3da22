import Base
import MediaFormat

/// The frames of an FLV file.
func demux(_ file: [UInt8], pieceBytes: Int = .max) throws -> [MediaFrame] {
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

/// A file in memory.
final class MemoryFile {
    var bytes: [UInt8]

    init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    func apply(_ writes: [FileWrite]) {
        for write in writes {
            guard let offset = write.offset else {
                bytes += write.bytes
                continue
            }
            bytes.replaceSubrange(Int(offset)..<(Int(offset) + write.bytes.count), with: write.bytes)
        }
    }
    func read(_ offset: UInt64, _ count: Int) -> [UInt8]? {
        guard offset < UInt64(bytes.count) else { return [] }
        return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
    }
    func append(_ more: [UInt8]) -> Bool {
        bytes += more
        return true
    }
    var length: UInt64 { UInt64(bytes.count) }
}
