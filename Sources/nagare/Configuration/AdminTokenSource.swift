import Access

/// Where the operators' token comes from.
struct AdminTokenSource: Equatable, Sendable {
    let secret: SecretSource
    /// Where it was set, for error messages.
    let origin: String

    static func == (left: Self, right: Self) -> Bool { left.secret == right.secret }

    /// `@FILE`, or the token itself.
    init(_ value: String, origin: String) throws(StartupError) {
        guard let secret = SecretSource(value) else {
            throw .usage("\(origin) has to be a token, or @ and the file that has it: write @FILE.")
        }
        self.secret = secret
        self.origin = origin
        if case .written(let token) = secret { try Self.check(token.secret, origin) }
    }

    /// Reads the file, if it is one.
    func token() throws(StartupError) -> Token {
        let (text, name) = try secret.contents(origin: origin, trimsNewline: true)
        try Self.check(text, name)
        return Token(secret: text)
    }

    private static func check(_ text: String, _ name: String) throws(StartupError) {
        guard (tokenBytesMin...4_096).contains(text.utf8.count), isBearerToken(text) else {
            throw .usage(
                "\(name) is no token of operators: it needs at least \(tokenBytesMin) characters, only letters, digits and "
                    + "-._~+/=, as openssl rand -hex 16 makes."
            )
        }
    }

    /// Shorter tokens can be guessed.
    private static let tokenBytesMin = 16
}

extension SettingReader {
    /// The operators' token; its file is not read.
    func adminToken() throws(StartupError) -> AdminTokenSource? {
        guard let entry = try entry(.adminToken) else { return nil }
        return try AdminTokenSource(entry.value, origin: entry.origin)
    }
}
