/// Why the node cannot start, in one sentence for the operator.
struct StartupError: Error, Equatable, CustomStringConvertible {
    /// The exit status tells them apart.
    enum Kind: Sendable {
        /// A wrong flag, variable, or key or value of the file. The exit status is `EX_USAGE` of sysexits.
        case usage
        /// The machine refuses: a file is unreadable, a port is taken.
        case system
    }
    let kind: Kind
    let message: String

    static func usage(_ message: String) -> Self { Self(kind: .usage, message: message) }
    static func system(_ message: String) -> Self { Self(kind: .system, message: message) }

    var exitStatus: Int32 {
        switch kind {
        case .usage: 64
        case .system: 1
        }
    }
    var description: String { message }
}
