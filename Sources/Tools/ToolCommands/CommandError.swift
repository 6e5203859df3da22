import Glibc

/// Why a command failed or the node cannot start, in one sentence for the operator.
package struct CommandError: Error, Equatable, CustomStringConvertible {
    /// The exit status tells them apart.
    package enum Kind: Sendable {
        /// A wrong flag, variable, or key or value of the file. The exit status is `EX_USAGE` of sysexits.
        case usage
        /// The machine refuses: a file is unreadable, a port is taken.
        case system
    }
    package let kind: Kind
    package let message: String

    package static func usage(_ message: String) -> Self { Self(kind: .usage, message: message) }
    package static func system(_ message: String) -> Self { Self(kind: .system, message: message) }

    package var exitStatus: Int32 {
        switch kind {
        case .usage: 64
        case .system: 1
        }
    }
    package var description: String { message }
}

/// The operating system's words for an error number, as the end of a sentence.
package enum ErrorText {
    package static func words(_ code: Int32) -> String {
        let text = unsafe String(cString: strerror(code))
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}
