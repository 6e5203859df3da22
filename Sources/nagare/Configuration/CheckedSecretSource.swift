import Access
import ToolCommands

/// A secret with a form of its own, which is checked when it is read.
protocol CheckedSecret: Sendable {
    /// What the setting holds, for errors: a noun without an article.
    static var noun: String { get }

    /// - Parameter name: of the secret, for errors.
    /// - Throws: when the text has another form.
    init(checking text: String, _ name: String) throws(CommandError)
}

/// Where a ``CheckedSecret`` comes from.
struct CheckedSecretSource<Secret: CheckedSecret>: Equatable, Sendable {
    let secret: SecretSource
    /// Where it was set, for error messages.
    let origin: String

    static func == (left: Self, right: Self) -> Bool { left.secret == right.secret }

    /// `@FILE`, or the secret itself, which is checked at once.
    init(_ value: String, origin: String) throws(CommandError) {
        guard let secret = SecretSource(value) else {
            throw .usage("\(origin) has to be a \(Secret.noun), or @ and the file that has it: write @FILE.")
        }
        self.secret = secret
        self.origin = origin
        if case .written = secret { _ = try read() }
    }

    /// Reads the file, if it is one.
    func read() throws(CommandError) -> Secret {
        let (text, name) = try secret.contents(origin: origin, trimsNewline: true)
        return try Secret(checking: text, name)
    }
}

/// The Bearer token of all clients.
struct ClientToken: CheckedSecret, Equatable {
    static let noun = "token"
    private static let bytesMax = 4_096

    let token: Token

    init(checking text: String, _ name: String) throws(CommandError) {
        guard text.utf8.count <= Self.bytesMax, isBearerToken(text) else {
            throw .usage("\(name) may hold letters, digits and -._~+/= only.")
        }
        token = Token(secret: text)
    }
}

/// A Bearer token of operators.
struct AdminToken: CheckedSecret, Equatable {
    static let noun = "token"
    /// Shorter tokens can be guessed.
    private static let bytesMin = 16
    private static let bytesMax = 4_096

    let token: Token

    init(checking text: String, _ name: String) throws(CommandError) {
        guard (Self.bytesMin...Self.bytesMax).contains(text.utf8.count), isBearerToken(text) else {
            throw .usage(
                "\(name) is not a valid admin token: it needs at least \(Self.bytesMin) characters, only letters, digits and "
                    + "-._~+/=, as openssl rand -hex 16 makes."
            )
        }
        token = Token(secret: text)
    }
}

extension WebhookSigner: CheckedSecret {
    static var noun: String { "secret" }

    init(checking text: String, _ name: String) throws(CommandError) {
        guard let signer = WebhookSigner(secret: text) else {
            throw .usage(
                "\(name) has \(text.utf8.count) bytes: a secret of webhooks needs at least "
                    + "\(WebhookSigner.secretBytesMin), as openssl rand -hex 32 makes."
            )
        }
        self = signer
    }
}

extension SettingReader {
    /// The secret of a setting; its file is not read.
    func secret<Secret: CheckedSecret>(_ setting: Setting) throws(CommandError) -> CheckedSecretSource<Secret>? {
        guard let entry = try entry(setting) else { return nil }
        return try CheckedSecretSource(entry.value, origin: entry.origin)
    }

    /// The token of operators who may only read.
    func adminReadToken() throws(CommandError) -> CheckedSecretSource<AdminToken>? {
        guard let source: CheckedSecretSource<AdminToken> = try secret(.adminReadToken) else { return nil }
        guard try entry(.adminToken) != nil else {
            throw .usage("--admin-read-token needs --admin-token: without it, everybody may make changes.")
        }
        return source
    }
}
