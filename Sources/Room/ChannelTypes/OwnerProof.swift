/// A keyed hash that identifies the owner of a resource: the user that a token names, or the token itself. The node keeps
/// neither of them. The keys are random in every process.
package struct OwnerProof: Hashable, Sendable {
    // SipHash under two random keys, 128 bits together.
    private static let keys = (UInt64.random(in: 0...UInt64.max), UInt64.random(in: 0...UInt64.max))
    private let first: Int
    private let second: Int

    /// The owner is everyone who has the token.
    package init(token: String) { self.init(["token", token]) }

    /// The owner is the user, with any of its tokens.
    /// - Parameter app: the app of the user; `nil` for a user of no app.
    package init(user: String, app: String?) { self.init(["user", user] + (app.map { [$0] } ?? [])) }

    private init(_ texts: [String]) {
        func hash(_ key: UInt64) -> Int {
            var hasher = Hasher()
            hasher.combine(key)
            for text in texts {
                // The length keeps a user and an app apart from a user whose name ends in that of the app.
                hasher.combine(text.utf8.count)
                for byte in text.utf8 { hasher.combine(byte) }
            }
            return hasher.finalize()
        }
        first = hash(Self.keys.0)
        second = hash(Self.keys.1)
    }
}
