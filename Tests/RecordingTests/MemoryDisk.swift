import Base
import MediaFormat

@testable import Recording

/// A file in memory that a test stops at any step.
final class MemoryDisk: MediumFile {
    struct Killed: Error {}

    private(set) var bytes: [UInt8]
    /// What a power cut leaves.
    private(set) var synchronised: [UInt8]
    /// Steps until the process is killed; `nil` for never.
    var stepsLeft: Int?
    /// Bytes that the disk has room for; `nil` for any number.
    var room: Int?
    private(set) var steps = 0

    init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
        synchronised = bytes
    }

    var length: UInt64 { get throws(MediumFailure) { UInt64(bytes.count) } }

    func read(at offset: UInt64, count: Int) throws(MediumFailure) -> [UInt8] {
        guard offset < UInt64(bytes.count) else { return [] }
        return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
    }

    func write(_ more: [UInt8], at offset: UInt64) throws(MediumFailure) {
        let end = Int(offset) + more.count
        // A kill in the middle of a write leaves a part of it. What fits into a sector is written whole.
        let isCut = try step()
        if let room, end > room { throw .system(28) }
        let written = isCut && more.count > 512 ? more.prefix(more.count / 2) : more[...]
        if bytes.count < Int(offset) + written.count {
            bytes += Array(repeating: 0, count: Int(offset) + written.count - bytes.count)
        }
        bytes.replaceSubrange(Int(offset)..<(Int(offset) + written.count), with: written)
        if isCut { throw .system(4) }
    }

    func truncate(to length: UInt64) throws(MediumFailure) {
        if try step() { throw .system(4) }
        bytes = Array(bytes.prefix(Int(length)))
    }

    func synchronise() throws(MediumFailure) {
        if try step() { throw .system(4) }
        synchronised = bytes
    }

    /// - Returns: whether the process is killed now.
    private func step() throws(MediumFailure) -> Bool {
        steps += 1
        guard let left = stepsLeft else { return false }
        guard left > 0 else { throw .system(4) }
        stepsLeft = left - 1
        return left == 1
    }

    func apply(_ writes: [MediumWrite]) throws {
        for write in writes { try self.write(write.bytes, at: write.offset) }
    }
}
