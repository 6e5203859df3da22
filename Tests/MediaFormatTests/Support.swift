import Base
import MediaFormat

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
