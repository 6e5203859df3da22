import Access
import Operators
import ToolCommands

/// Where a key for signed tokens comes from: the setting itself or a file.
struct JWTKeySource: Equatable, Sendable {
    let algorithm: JWTKey.Algorithm
    /// The key's id (`kid`); `nil` when it has none.
    let id: String?
    let text: SecretSource
    /// Where it was set, for error messages.
    let origin: String

    /// The maximum number of keys: the current one, and previous and next ones during rotation.
    static let keysMax = 16

    static func == (left: Self, right: Self) -> Bool {
        (left.algorithm, left.id, left.text) == (right.algorithm, right.id, right.text)
    }

    /// `ALGORITHM:TEXT`, `ALGORITHM:@FILE`, and with an id `ALGORITHM/ID:…`.
    init(_ value: String, origin: String) throws(CommandError) {
        let problem = CommandError.usage(
            "\(origin) has to be an algorithm, a colon and the key or @ and its file: write hs256:@FILE, rs256:@FILE, "
                + "es256:@FILE or eddsa:@FILE, with a key id as es256/ID:@FILE."
        )
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let text = SecretSource(parts[1]) else { throw problem }
        let head = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let algorithm = JWTKey.Algorithm.allCases.first { $0.rawValue.lowercased() == head[0].lowercased() }
        guard let algorithm, head.count == 1 || !head[1].isEmpty, head.count == 1 || head[1].utf8.count <= 255 else {
            throw problem
        }
        self.algorithm = algorithm
        id = head.count == 2 ? String(head[1]) : nil
        self.origin = origin
        self.text = text
    }

    /// Reads the file, if it is one, and makes the key.
    func key() throws(CommandError) -> JWTKey {
        let (text, source) = try text.contents(origin: origin, trimsNewline: algorithm == .hs256)
        do throws(JWTKey.Problem) {
            return try JWTKey(algorithm, id: id, text: text)
        } catch {
            switch error {
            case .secretTooShort(let bytes):
                throw .usage(
                    "\(source) is a secret of \(bytes) bytes: HS256 needs at least \(JWTKey.secretBytesMin), as "
                        + "openssl rand -base64 32 makes."
                )
            case .notPEM:
                throw .usage("\(source) is no private or public \(algorithm.rawValue) key in PEM.")
            case .rsaKeySize(let bits):
                let range = JWTKey.rsaBits
                throw .usage(
                    "\(source) is an RSA key of \(bits) bits: RS256 needs \(range.lowerBound) to \(range.upperBound), as "
                        + "openssl genrsa 2048 makes."
                )
            }
        }
    }
}

extension SettingReader {
    /// The configured keys; their files are not read.
    func jwtKeys() throws(CommandError) -> [JWTKeySource] {
        guard let entry = try entry(.jwtKey) else { return [] }
        guard entry.values.count <= JWTKeySource.keysMax else {
            throw .usage(
                "\(entry.origin) has \(entry.values.count) keys: at most \(JWTKeySource.keysMax) are possible."
            )
        }
        var keys: [JWTKeySource] = []
        for value in entry.values { keys.append(try JWTKeySource(value, origin: entry.origin)) }
        return keys
    }
}
