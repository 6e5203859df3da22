import Glibc
import ToolCommands

/// Reads a file that an operator named; errors carry the operating system's reason.
enum SmallFile {
    /// Configuration and certificates have kilobytes; the limit ends the reading of `/dev/zero`.
    static let bytesMax = 1 << 20

    /// The whole file.
    static func contents(_ path: String) throws(CommandError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw problem(path, errno) }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return contents }
            if count < 0 {
                if errno == EINTR { continue }
                throw problem(path, errno)
            }
            contents += chunk[..<count]
            guard contents.count <= bytesMax else {
                throw .system("\(path) cannot be read: it is larger than \(bytesMax) bytes.")
            }
        }
    }

    private static func problem(_ path: String, _ code: Int32) -> CommandError {
        .system("\(path) cannot be read: \(ErrorText.words(code)).")
    }
}
