import Glibc

/// A file whose calls wait for the disk: for work on a thread of the pool (``LoopFiles/work(_:then:)``).
package final class BlockingFile {
    private let descriptor: Int32

    /// Opens a file, or makes one that is its owner's only.
    package init(_ path: String, _ opening: FileOpening) throws(FileFailure) {
        descriptor = unsafe open(path, opening.flags, 0o600)
        guard descriptor >= 0 else { throw FileFailure(number: errno, operation: "open") }
    }

    deinit { close(descriptor) }

    /// The bytes of the file.
    package var length: UInt64 {
        get throws(FileFailure) {
            var found = stat()
            guard unsafe fstat(descriptor, &found) == 0 else { throw FileFailure(number: errno, operation: "stat") }
            return UInt64(clamping: found.st_size)
        }
    }

    /// Reads up to `count` bytes; fewer only at the file's end.
    package func read(at offset: UInt64, count: Int) throws(FileFailure) -> [UInt8] {
        var failure: FileFailure?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: max(count, 0)) { buffer, filled in
            while filled < count {
                let rest = unsafe UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...]
                )
                let position = off_t(clamping: offset &+ UInt64(filled))
                let done = unsafe pread(descriptor, rest.baseAddress, rest.count, position)
                if done < 0, errno == EINTR { continue }
                if done < 0 { failure = FileFailure(number: errno, operation: "read") }
                guard done > 0 else { return }
                filled += done
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Writes all bytes.
    package func write(_ bytes: [UInt8], at offset: UInt64) throws(FileFailure) {
        var start = 0
        while start < bytes.count {
            let position = off_t(clamping: offset &+ UInt64(start))
            let done = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[start...])
                return unsafe pwrite(descriptor, rest.baseAddress, rest.count, position)
            }
            if done < 0, errno == EINTR { continue }
            guard done > 0 else { throw FileFailure(number: done < 0 ? errno : ENOSPC, operation: "write") }
            start += done
        }
    }

    /// Cuts the file to a length.
    package func truncate(to length: UInt64) throws(FileFailure) {
        guard ftruncate(descriptor, off_t(clamping: length)) == 0 else {
            throw FileFailure(number: errno, operation: "truncate")
        }
    }

    /// Lets what was written survive a power cut.
    package func synchronise() throws(FileFailure) {
        guard fsync(descriptor) == 0 else { throw FileFailure(number: errno, operation: "sync") }
    }
}
