import ToolCommands

/// Where a secret comes from: the setting itself or a file.
enum SecretSource: Equatable, Sendable {
    case written(Token)
    case file(String)

    /// `@FILE`, or the secret itself; `nil` for an empty text or name.
    init?(_ text: some StringProtocol) {
        guard let first = text.first else { return nil }
        guard first == "@" else {
            self = .written(Token(secret: String(text)))
            return
        }
        guard text.count > 1 else { return nil }
        self = .file(String(text.dropFirst()))
    }

    /// Reads the secret.
    /// - Parameters:
    ///   - origin: where it was set.
    ///   - trimsNewline: whether newlines at the end of a file are left out. Editors end a file with one.
    /// - Returns: the secret, and its name for error messages.
    func contents(origin: String, trimsNewline: Bool) throws(CommandError) -> (text: String, name: String) {
        switch self {
        case .written(let token): return (token.secret, origin)
        case .file(let path):
            var contents = try SmallFile.contents(path)
            while trimsNewline, let last = contents.last, last == 0x0A || last == 0x0D { contents.removeLast() }
            let name = "\(path) (\(origin))"
            guard let decoded = String(validating: contents, as: UTF8.self) else {
                throw .usage("\(name) is no text: keys are text in UTF-8 or PEM.")
            }
            return (decoded, name)
        }
    }
}
