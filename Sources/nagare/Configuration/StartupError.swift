/// Why the node cannot start, in one sentence for the one who started it.
struct StartupError: Error, Equatable, CustomStringConvertible {
    /// Who has to act, which is what the exit status tells.
    enum Kind: Sendable {
        /// What was asked for is wrong: a flag, a variable, a key or value of the file. `EX_USAGE` of sysexits.
        case usage
        /// The machine refuses it: a file that cannot be read, a port that is taken.
        case system
    }
    let kind: Kind
    let sentence: String

    static func usage(_ sentence: String) -> Self { Self(kind: .usage, sentence: sentence) }
    static func system(_ sentence: String) -> Self { Self(kind: .system, sentence: sentence) }

    var exitStatus: Int32 {
        switch kind {
        case .usage: 64
        case .system: 1
        }
    }
    var description: String { sentence }
}
