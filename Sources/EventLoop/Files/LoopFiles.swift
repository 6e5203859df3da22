internal import CUV
import Glibc

/// Files of an event loop. Every operation runs on libuv's thread pool and completes on the loop's thread, so a disk that
/// stalls never holds the loop up.
///
/// It is used on the loop's thread only. Operations on one file may run at the same time: a caller that needs an order waits for
/// the completion. What waits is not bounded here; ``pendingBytes`` lets the owner do it.
@safe
package final class LoopFiles {
    package typealias Completion<Value> = (Result<Value, FileFailure>) -> Void

    private unowned let loop: EventLoop
    /// Operations that have not completed.
    package private(set) var pendingCount = 0
    /// Bytes that wait to be written.
    package private(set) var pendingBytes = 0

    /// - Parameter loop: it outlives the object.
    package init(_ loop: EventLoop) { self.loop = loop }

    // MARK: - Open files

    /// Opens a file or folder. What is created is its owner's only (0600).
    package func open(_ path: String, _ opening: FileOpening, then complete: @escaping Completion<OpenFile>) {
        unsafe perform("open") {
            unsafe uv_fs_open($0, $1, path, opening.flags, 0o600, $2)
        } then: {
            complete($0.map { OpenFile(descriptor: Int32(truncatingIfNeeded: $0.value)) })
        }
    }

    /// Writes all bytes.
    /// - Parameter offset: from the file's start.
    package func write(
        _ bytes: [UInt8],
        to file: OpenFile,
        at offset: UInt64,
        then complete: @escaping Completion<Void>
    ) {
        guard !bytes.isEmpty else { return complete(.success(())) }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        unsafe memory.copyBytes(from: bytes)
        pendingBytes += bytes.count
        unsafe write(memory, from: 0, to: file, at: offset) { [self] result in
            pendingBytes -= bytes.count
            unsafe memory.deallocate()
            complete(result)
        }
    }

    /// The system may write less than it was given.
    @unsafe
    private func write(
        _ memory: UnsafeMutableRawBufferPointer,
        from start: Int,
        to file: OpenFile,
        at offset: UInt64,
        then complete: @escaping Completion<Void>
    ) {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start...])
        let position = Int64(clamping: offset &+ UInt64(start))
        unsafe perform("write") { loop, request, done in
            var buffer = unsafe uv_buf_t(
                base: rest.baseAddress?.assumingMemoryBound(to: CChar.self),
                len: rest.count
            )
            return unsafe uv_fs_write(loop, request, file.descriptor, &buffer, 1, position, done)
        } then: { [self] result in
            switch result {
            case .failure(let failure): complete(.failure(failure))
            case .success(let done):
                let end = start + done.value
                guard done.value > 0, end < memory.count else {
                    // Zero bytes without an error is a device that takes no more.
                    let isWhole = end >= memory.count
                    return complete(
                        isWhole ? .success(()) : .failure(FileFailure(number: ENOSPC, operation: "write"))
                    )
                }
                unsafe write(memory, from: end, to: file, at: offset, then: complete)
            }
        }
    }

    /// Reads up to `count` bytes; fewer only at the file's end.
    package func read(
        _ count: Int,
        from file: OpenFile,
        at offset: UInt64,
        then complete: @escaping Completion<[UInt8]>
    ) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 1)
        unsafe perform("read") { loop, request, done in
            var buffer = unsafe uv_buf_t(
                base: memory.baseAddress?.assumingMemoryBound(to: CChar.self),
                len: max(count, 0)
            )
            return unsafe uv_fs_read(loop, request, file.descriptor, &buffer, 1, Int64(clamping: offset), done)
        } then: { result in
            let bytes = result.map { unsafe [UInt8](memory[..<max($0.value, 0)]) }
            unsafe memory.deallocate()
            complete(bytes)
        }
    }

    /// Lets what was written survive a power cut, from the completion on.
    /// - Parameter isDataOnly: without times and the like, which costs less (`fdatasync`).
    package func synchronise(_ file: OpenFile, isDataOnly: Bool, then complete: @escaping Completion<Void>) {
        unsafe perform("sync") { loop, request, done in
            isDataOnly
                ? unsafe uv_fs_fdatasync(loop, request, file.descriptor, done)
                : unsafe uv_fs_fsync(loop, request, file.descriptor, done)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// Cuts the file to a length.
    package func truncate(_ file: OpenFile, to length: UInt64, then complete: @escaping Completion<Void>) {
        unsafe perform("truncate") {
            unsafe uv_fs_ftruncate($0, $1, file.descriptor, Int64(clamping: length), $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// The number of bytes of a file.
    package func length(of file: OpenFile, then complete: @escaping Completion<UInt64>) {
        unsafe perform("stat") {
            unsafe uv_fs_fstat($0, $1, file.descriptor, $2)
        } then: {
            complete($0.map(\.length))
        }
    }

    /// Closes the file, which is not used any more.
    package func close(_ file: OpenFile, then complete: @escaping Completion<Void> = { _ in }) {
        unsafe perform("close") {
            unsafe uv_fs_close($0, $1, file.descriptor, $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    // MARK: - Names

    /// Gives a file another name, in place of a file that has it.
    package func rename(_ path: String, to other: String, then complete: @escaping Completion<Void>) {
        unsafe perform("rename") {
            unsafe uv_fs_rename($0, $1, path, other, $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// Removes a file.
    package func remove(_ path: String, then complete: @escaping Completion<Void>) {
        unsafe perform("remove") {
            unsafe uv_fs_unlink($0, $1, path, $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// Makes a folder that only its owner may enter (0700).
    package func makeFolder(_ path: String, then complete: @escaping Completion<Void>) {
        unsafe perform("make folder") {
            unsafe uv_fs_mkdir($0, $1, path, 0o700, $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// Removes an empty folder.
    package func removeFolder(_ path: String, then complete: @escaping Completion<Void>) {
        unsafe perform("remove folder") {
            unsafe uv_fs_rmdir($0, $1, path, $2)
        } then: {
            complete($0.map { _ in })
        }
    }

    /// The names in a folder, in no order, and at most a number of them.
    package func list(_ path: String, most: Int, then complete: @escaping Completion<[FolderEntry]>) {
        unsafe perform("list") {
            unsafe uv_fs_scandir($0, $1, path, 0, $2)
        } then: {
            complete($0.map { $0.entries(most: most) })
        }
    }

    /// The space of the file system that a path is on.
    package func space(of path: String, then complete: @escaping Completion<DiskSpace>) {
        unsafe perform("statfs") {
            unsafe uv_fs_statfs($0, $1, path, $2)
        } then: {
            complete($0.map(\.space))
        }
    }

    // MARK: - Requests

    /// The loop while it runs.
    var openLoop: EventLoop? { loop.isOpen ? loop : nil }

    func began() {
        loop.executor.checkIsolated()
        pendingCount += 1
    }
    func ended() { pendingCount -= 1 }

    private func perform(
        _ operation: String,
        _ begin: (UnsafeMutablePointer<uv_loop_t>, UnsafeMutablePointer<uv_fs_t>, uv_fs_cb) -> Int32,
        then complete: @escaping Completion<FileRequest.Answer>
    ) {
        began()
        guard let loop = openLoop else {
            ended()
            return complete(.failure(FileFailure(number: ECANCELED, operation: operation)))
        }
        let request = FileRequest(operation, of: loop) { [self] result in
            ended()
            complete(result)
        }
        unsafe request.start(begin)
    }
}
