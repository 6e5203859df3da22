internal import CUV
import Glibc

/// One operation of ``LoopFiles`` on libuv's thread pool. It lives until its completion.
@safe
final class FileRequest {
    /// What an operation that succeeded left in its request; to be read during the completion only.
    @safe
    struct Answer {
        fileprivate let request: UnsafeMutablePointer<uv_fs_t>

        /// The system's result, such as a descriptor or a number of bytes.
        var value: Int { unsafe request.pointee.result }
        /// Of a stat.
        var length: UInt64 { unsafe request.pointee.statbuf.st_size }

        /// Of a statfs.
        var space: DiskSpace {
            guard let found = unsafe request.pointee.ptr?.assumingMemoryBound(to: uv_statfs_t.self) else {
                return DiskSpace(totalBytes: 0, freeBytes: 0)
            }
            let block = unsafe found.pointee.f_bsize
            return DiskSpace(
                totalBytes: unsafe block.multipliedSaturating(by: found.pointee.f_blocks),
                freeBytes: unsafe block.multipliedSaturating(by: found.pointee.f_bavail)
            )
        }

        /// Of a scandir. The kind of an entry that the file system does not tell is a file's.
        func entries(most: Int) -> [FolderEntry] {
            var entries: [FolderEntry] = []
            var entry = unsafe uv_dirent_t()
            while entries.count < most, unsafe uv_fs_scandir_next(request, &entry) == 0 {
                guard let name = unsafe entry.name else { continue }
                entries.append(
                    FolderEntry(name: unsafe String(cString: name), isFolder: unsafe entry.type == UV_DIRENT_DIR)
                )
            }
            return entries
        }
    }

    private let operation: String
    private let loop: EventLoop
    private let complete: LoopFiles.Completion<Answer>
    private let request: UnsafeMutablePointer<uv_fs_t>

    init(_ operation: String, of loop: EventLoop, then complete: @escaping LoopFiles.Completion<Answer>) {
        self.operation = operation
        self.loop = loop
        self.complete = complete
        unsafe request = .allocate(capacity: 1)
        unsafe request.initialize(to: uv_fs_t())
    }

    deinit { unsafe request.deallocate() }

    func start(_ begin: (UnsafeMutablePointer<uv_loop_t>, UnsafeMutablePointer<uv_fs_t>, uv_fs_cb) -> Int32) {
        unsafe request.pointee.data = Unmanaged.passRetained(self).toOpaque()
        let result = unsafe begin(loop.uvLoop, request) { request in
            guard let data = unsafe request?.pointee.data else { return }
            unsafe Unmanaged<FileRequest>.fromOpaque(data).takeRetainedValue().completed()
        }
        guard result < 0 else { return }
        // The pool did not take it, for want of memory.
        unsafe Unmanaged.passUnretained(self).release()
        complete(.failure(FileFailure(number: -result, operation: operation)))
    }

    private func completed() {
        loop.beginTurn()
        let result = unsafe request.pointee.result
        complete(
            result < 0
                ? .failure(FileFailure(number: Int32(truncatingIfNeeded: -result), operation: operation))
                : .success(unsafe Answer(request: request))
        )
        unsafe uv_fs_req_cleanup(request)
    }
}

extension UInt64 {
    fileprivate func multipliedSaturating(by other: UInt64) -> UInt64 {
        let product = multipliedReportingOverflow(by: other)
        return product.overflow ? .max : product.partialValue
    }
}
