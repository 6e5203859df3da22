import Cluster
import Foundation
import Glibc
import Synchronization
import Testing

/// A Redis server in a folder of its own, without persistence, for one test.
final class RedisServer: Sendable {
    let port: Int
    var address: HostPort { HostPort(host: "127.0.0.1", port: port)! }
    private let folder: URL
    private let process: Mutex<Process>
    private let processID: Int32

    /// - Parameter arguments: settings besides those of every server. With `--tls-port`, `port` is that of TLS.
    init(_ arguments: [String] = [], isTLS: Bool = false, sentinelOf primary: RedisServer? = nil) async throws {
        port = try Self.freePort()
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let executable = try Self.executable(folder)
        let process = Process()
        process.executableURL = executable
        process.currentDirectoryURL = folder
        process.arguments = ["--bind", "127.0.0.1", "--port", isTLS ? "0" : "\(port)", "--save", ""]
        if isTLS { process.arguments?.append(contentsOf: ["--tls-port", "\(port)"]) }
        process.arguments?.append(contentsOf: arguments)
        if let primary {
            let file = folder.appendingPathComponent("sentinel.conf")
            let lines = "bind 127.0.0.1\nport \(port)\nsentinel monitor main 127.0.0.1 \(primary.port) 1\n"
            try lines.write(to: file, atomically: true, encoding: .utf8)
            process.arguments = [file.path, "--sentinel"]
        }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        let (ready, continuation) = AsyncStream.makeStream(of: Bool.self)
        let text = Mutex("")
        pipe.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            text.withLock { $0 += String(decoding: data, as: UTF8.self) }
            let isReady = text.withLock { $0.contains("Ready to accept connections") || $0.contains("+monitor") }
            if isReady || data.isEmpty {
                continuation.yield(isReady)
                continuation.finish()
            }
            if data.isEmpty { handle.readabilityHandler = nil }
        }
        try process.run()
        processID = process.processIdentifier
        self.process = Mutex(process)
        for await isReady in ready { try #require(isReady, "the server ended: \(text.withLock { $0 })") }
    }

    deinit {
        kill(processID, SIGKILL)
        process.withLock { $0.waitUntilExit() }
        try? FileManager.default.removeItem(at: folder)
    }

    func send(_ signal: Int32) { kill(processID, signal) }

    /// The server's program by its own name. On Debian it is installed as `redis-check-rdb` without a service.
    private static func executable(_ folder: URL) throws -> URL {
        let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        for name in ["redis-server", "redis-check-rdb"] {
            guard let path = paths.map({ $0 + "/" + name }).first(where: FileManager.default.isExecutableFile) else {
                continue
            }
            let link = folder.appendingPathComponent("redis-server")
            try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: path)
            return link
        }
        throw MissingProgram()
    }

    private struct MissingProgram: Error, CustomStringConvertible {
        let description = "redis-server is not on the PATH: install the package redis-tools."
    }

    /// A port that nothing listens on, and that no other test gets until this process ends. It lies below the ports that
    /// the system gives to connections, one of which could take it before its server does.
    static func freePort() throws -> Int {
        for _ in 0..<portsTried {
            let port = nextPort.withLock { next in
                next = next < ports.upperBound ? next + 1 : ports.lowerBound
                return next
            }
            guard Self.claim(port) else { continue }
            guard Self.isFree(port) else { continue }
            return port
        }
        throw NoFreePort()
    }

    /// Whether a listener could have the port. The socket that tries it is closed in processes that begin meanwhile, which would
    /// keep it open otherwise, and the port in use.
    private static func isFree(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// Claims a port by an abstract socket that has its number as name, as `harness/ports.py` does: the claim holds in all
    /// processes of the tests.
    private static func claim(_ port: Int) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array("\0nagare-test-port-\(port)".utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, length) == 0
            }
        }
        // One that is bound stays open until this process ends.
        if !isBound { close(descriptor) }
        return isBound
    }

    private static let ports = 10_000...19_999
    private static let portsTried = 100
    private static let nextPort = Mutex(Int.random(in: ports))

    private struct NoFreePort: Error, CustomStringConvertible {
        let description = "a hundred ports from 10000 to 19999 are in use: end what listens there."
    }
}
