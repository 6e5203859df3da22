import Base
import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

/// A folder that goes with its owner.
private final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "LoopFilesTests-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.path()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func callAsFunction(_ name: String) -> String { path + "/" + name }
}

/// A loop with files.
private actor FileHost {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.executor.asUnownedSerialExecutor() }
    let files: LoopFiles

    init() throws {
        loop = EventLoop(name: "files")
        files = LoopFiles(loop)
        try loop.start()
    }

    private func value<Value: Sendable>(
        _ begin: (LoopFiles, @escaping LoopFiles.Completion<Value>) -> Void
    ) async throws -> Value {
        try await withCheckedContinuation { continuation in
            begin(files) { continuation.resume(returning: $0) }
        }.get()
    }

    func open(_ path: String, _ opening: FileOpening) async throws -> OpenFile {
        try await value { $0.open(path, opening, then: $1) }
    }
    func write(_ bytes: [UInt8], to file: OpenFile, at offset: UInt64 = 0) async throws {
        try await value { $0.write(bytes, to: file, at: offset, then: $1) }
    }
    func read(_ count: Int, from file: OpenFile, at offset: UInt64 = 0) async throws -> [UInt8] {
        try await value { $0.read(count, from: file, at: offset, then: $1) }
    }
    func synchronise(_ file: OpenFile, isDataOnly: Bool = true) async throws {
        try await value { $0.synchronise(file, isDataOnly: isDataOnly, then: $1) }
    }
    func truncate(_ file: OpenFile, to length: UInt64) async throws {
        try await value { $0.truncate(file, to: length, then: $1) }
    }
    func length(of file: OpenFile) async throws -> UInt64 { try await value { $0.length(of: file, then: $1) } }
    func close(_ file: OpenFile) async throws { try await value { $0.close(file, then: $1) } }
    func rename(_ path: String, to other: String) async throws {
        try await value { $0.rename(path, to: other, then: $1) }
    }
    func remove(_ path: String) async throws { try await value { $0.remove(path, then: $1) } }
    func makeFolder(_ path: String) async throws { try await value { $0.makeFolder(path, then: $1) } }
    func removeFolder(_ path: String) async throws { try await value { $0.removeFolder(path, then: $1) } }
    func list(_ path: String, most: Int = 100) async throws -> [FolderEntry] {
        try await value { $0.list(path, most: most, then: $1) }
    }
    func space(of path: String) async throws -> DiskSpace { try await value { $0.space(of: path, then: $1) } }

    func work<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            files.work(body) { continuation.resume(returning: $0) }
        }
    }

    /// Begins to open a file without waiting.
    func beginOpening(_ path: String, _ done: Mutex<Bool>.Shared) {
        files.open(path, .read) { result in
            if case .success(let file) = result { self.files.close(file) }
            done.value.withLock { $0 = true }
        }
    }
    var pending: (count: Int, bytes: Int) { (files.pendingCount, files.pendingBytes) }
}

extension Mutex where Value == Bool {
    fileprivate final class Shared: Sendable {
        let value = Mutex<Bool>(false)
    }
}

@Suite(.timeLimit(.minutes(2)))
struct LoopFilesTests {
    private func failure(_ act: () async throws -> Void) async -> FileFailure? {
        do {
            try await act()
            return nil
        } catch {
            return error as? FileFailure
        }
    }

    @Test func `a file is written, changed, cut, read and named`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        let path = folder("a.part")
        let file = try await host.open(path, .create)
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try await host.write(bytes, to: file)
        try await host.write([1, 2, 3], to: file, at: 100)
        try await host.write([], to: file, at: 5)
        try await host.synchronise(file)
        try await host.synchronise(file, isDataOnly: false)
        #expect(try await host.read(5, from: file, at: 99) == [bytes[99], 1, 2, 3, bytes[103]])
        #expect(try await host.read(100, from: file, at: 299_990) == Array(bytes[299_990...]))
        try await host.truncate(file, to: 1_000)
        #expect(try await host.length(of: file) == 1_000)
        try await host.close(file)
        try await host.rename(path, to: folder("a"))
        let directory = try await host.open(folder.path, .folder)
        try await host.synchronise(directory, isDataOnly: false)
        try await host.close(directory)
        #expect(try await host.list(folder.path) == [FolderEntry(name: "a", isFolder: false)])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder("a"))
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(await host.pending == (0, 0))
        await host.loop.stop()
    }

    @Test func `folders are made, listed and removed`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        try await host.makeFolder(folder("b"))
        try await host.close(try await host.open(folder("b/c"), .create))
        let entries = try await host.list(folder.path)
        #expect(entries == [FolderEntry(name: "b", isFolder: true)])
        #expect(try await host.list(folder.path, most: 0) == [])
        #expect(await failure { try await host.removeFolder(folder("b")) } != nil, "it is not empty")
        try await host.remove(folder("b/c"))
        try await host.removeFolder(folder("b"))
        let space = try await host.space(of: folder.path)
        #expect(space.freeBytes > 0 && space.totalBytes >= space.freeBytes)
        await host.loop.stop()
    }

    @Test func `failures say what failed`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        let missing = await failure { _ = try await host.open(folder("none"), .change) }
        #expect(missing?.isMissing == true && missing?.operation == "open")
        try await host.close(try await host.open(folder("a"), .create))
        #expect(await failure { _ = try await host.open(folder("a"), .create) }?.isTaken == true)
        let full = try await host.open("/dev/full", .change)
        let failed = await failure { try await host.write([1], to: full) }
        #expect(failed?.isDiskFull == true && failed?.message == "write: No space left on device")
        #expect(await host.pending == (0, 0))
        await host.loop.stop()
        #expect(await failure { _ = try await host.open(folder("a"), .read) }?.number == ECANCELED)
    }

    @Test func `work waits for the disk beside the loop`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        let path = folder("a")
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let result = await host.work { () -> Result<[UInt8], FileFailure> in
            Result { () throws(FileFailure) in
                let file = try BlockingFile(path, .create)
                try file.write(bytes, at: 0)
                try file.write([9, 9], at: 10)
                try file.synchronise()
                try file.truncate(to: 150_000)
                guard try file.length == 150_000 else { return [] }
                return try file.read(at: 8, count: 5) + file.read(at: 149_999, count: 100)
            }
        }
        #expect(result == .success([8, 9, 9, 9, 12, bytes[149_999]]))
        let failure = await host.work { () -> FileFailure? in
            do throws(FileFailure) {
                try BlockingFile("/dev/full", .change).write([1], at: 0)
                return nil
            } catch {
                return error
            }
        }
        #expect(failure??.isDiskFull == true)
        let taken = await host.work { (try? BlockingFile(path, .create)) == nil }
        #expect(taken == true)
        #expect(await host.pending.count == 0)
        await host.loop.stop()
        #expect(await host.work { 1 } == nil)
    }

    @Test func `a link in place of a file is not followed`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: "/dev/null")
        #expect(await failure { _ = try await host.open(folder("link"), .change) }?.number == ELOOP)
        #expect(await failure { _ = try await host.open(folder("link"), .create) }?.isTaken == true)
        await host.loop.stop()
    }

    @Test func `an operation that stalls does not hold the loop up`() async throws {
        let (host, folder) = (try FileHost(), try TemporaryFolder())
        let pipe = folder("pipe")
        #expect(unsafe mkfifo(pipe, 0o600) == 0)
        let done = Mutex<Bool>.Shared()
        // A pipe opens for reading when something opens it for writing.
        await host.beginOpening(pipe, done)
        for number in 0..<20 {
            let file = try await host.open(folder("\(number)"), .create)
            try await host.write([UInt8(number)], to: file)
            try await host.close(file)
        }
        #expect(await host.pending.count == 1 && !done.value.withLock { $0 })
        let writer = unsafe open(pipe, O_WRONLY)
        try await eventually("the pipe is open") { done.value.withLock { $0 } }
        close(writer)
        await host.loop.stop()
    }
}
