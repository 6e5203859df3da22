import Foundation
import Glibc
import Synchronization
import Testing

/// The program as a process of its own, as its users run it.
final class RunningNode: Sendable {
    /// Port 0 everywhere, so that tests run side by side.
    static let anyPorts = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--media", "127.0.0.1:0", "--loops", "2"]

    private let process: Mutex<Process>
    private let processID: Int32
    let output: LineReader
    let errors: LineReader
    private let ended: AsyncStream<Int32>

    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = try Self.executable()
        process.arguments = arguments
        process.environment = environment
        let outputPipe = Pipe()
        let errorPipe = Pipe()
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            // As a shell reports it.
            let isSignal = process.terminationReason == .uncaughtSignal
            continuation.yield(process.terminationStatus + (isSignal ? 128 : 0))
            continuation.finish()
        }
        self.ended = ended
        output = LineReader(outputPipe.fileHandleForReading)
        errors = LineReader(errorPipe.fileHandleForReading)
        try process.run()
        processID = process.processIdentifier
        self.process = Mutex(process)
    }

    deinit { process.withLock { if $0.isRunning { kill(processID, SIGKILL) } } }

    /// The program, which is built into the same folder as the tests.
    private static func executable() throws -> URL {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("nagare")
    }

    func send(_ signal: Int32) { kill(processID, signal) }

    /// Sends the signal as soon as a line of the log contains the text. It does not wait for a thread of the tests.
    func send(_ signal: Int32, atLine text: String) {
        errors.react(to: text) { [processID] in kill(processID, signal) }
    }

    /// The exit status, once it ended.
    func exitStatus() async -> Int32? {
        for await status in ended { return status }
        return nil
    }

    /// The ports of the page and of the admin listener, once the node is ready.
    func ready() async throws -> (page: UInt16, admin: UInt16) {
        let line = try #require(await output.first { $0.contains("is ready: open ") })
        let page = try #require(line.firstMatch(of: /:(\d+)\/$/).flatMap { UInt16($0.1) })
        let admin = try #require(await errors.first { $0.contains(" nagare: admin ") })
        return (page, try #require(admin.firstMatch(of: /port=(\d+)/).flatMap { UInt16($0.1) }))
    }
}

/// The lines of a pipe, each handed out once and all of them kept.
final class LineReader: Sendable {
    private let lines: AsyncStream<String>
    private let kept = Mutex<[String]>([])
    private let reactions = Reactions()

    /// What is done at a line, on the thread that reads the pipe.
    private final class Reactions: Sendable {
        private let list = Mutex<[(text: String, action: @Sendable () -> Void)]>([])

        func add(_ text: String, _ action: @escaping @Sendable () -> Void) {
            list.withLock { $0.append((text, action)) }
        }

        func run(_ line: String) {
            for reaction in list.withLock({ $0 }) where line.contains(reaction.text) { reaction.action() }
        }
    }

    init(_ handle: FileHandle) {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        self.lines = lines
        let reactions = reactions
        let descriptor = dup(handle.fileDescriptor)
        let thread = Thread {
            guard let file = unsafe fdopen(descriptor, "r") else { return continuation.finish() }
            var line: UnsafeMutablePointer<CChar>?
            var capacity = 0
            while unsafe getline(&line, &capacity, file) > 0, let bytes = unsafe line {
                let text = unsafe String(cString: bytes).trimmingCharacters(in: .newlines)
                reactions.run(text)
                continuation.yield(text)
            }
            unsafe free(line)
            unsafe fclose(file)
            continuation.finish()
        }
        thread.start()
    }

    /// Calls the action at each later line that contains the text.
    func react(to text: String, _ action: @escaping @Sendable () -> Void) { reactions.add(text, action) }

    /// The next line that meets the condition; `nil` when the pipe ended before.
    func first(where condition: (String) -> Bool) async -> String? {
        for await line in lines {
            kept.withLock { $0.append(line) }
            if condition(line) { return line }
        }
        return nil
    }

    /// Every line, once the pipe has ended.
    func all() async -> [String] {
        _ = await first { _ in false }
        return kept.withLock { $0 }
    }
}

/// A TCP connection to this machine.
final class Connection: Sendable {
    private let descriptor: Int32

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = unsafe withUnsafeBytes(of: &name) { bytes in
            guard let base = bytes.baseAddress else { return Int32(-1) }
            return unsafe connect(descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard result == 0 else {
            close(descriptor)
            throw Refused()
        }
    }

    struct Refused: Error {}

    deinit { close(descriptor) }

    func write(_ text: String) {
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBytes {
            _ = unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }

    struct NeverRead: Error {}

    /// Waits until the process on the other side has taken everything that was written: its socket, as the kernel lists
    /// it, has nothing left to read. One that is not accepted yet has.
    ///
    /// It blocks its thread for a few milliseconds: among busy tests a suspended task could wait past the request's end.
    func waitUntilRead() throws {
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = unsafe withUnsafeMutableBytes(of: &name) { bytes in
            unsafe bytes.baseAddress.map {
                unsafe getsockname(descriptor, $0.assumingMemoryBound(to: sockaddr.self), &length)
            }
        }
        let port = String(UInt16(bigEndian: name.sin_port), radix: 16, uppercase: true)
        let remote = "0100007F:" + String(repeating: "0", count: 4 - port.count) + port
        for _ in 0..<2_000 {
            let isRead = Self.kernelSockets().split(separator: "\n").contains { line in
                let fields = line.split(separator: " ")
                return fields.count > 4 && fields[2] == remote && fields[3] == "01" && fields[4].hasSuffix(":00000000")
            }
            if isRead { return }
            _ = poll(nil, 0, 2)
        }
        throw NeverRead()
    }

    /// The kernel's list of TCP sockets. It is handed out in pieces, so it is read until nothing comes; where it has many
    /// lines, Foundation stops behind the first piece.
    private static func kernelSockets() -> String {
        let file = unsafe open("/proc/net/tcp", O_RDONLY)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += chunk[..<count]
        }
    }

    /// All that comes until the other side closes.
    func readAll() -> String {
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += chunk[..<count]
        }
    }

    /// The whole response to a GET, head and body.
    static func get(_ path: String, port: UInt16, token: String? = nil) throws -> String {
        let connection = try Connection(port: port)
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        connection.write("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(authorization)Connection: close\r\n\r\n")
        return connection.readAll()
    }
}
