package import Wire

/// What operators decided about the users of a channel. It also holds for connections that a user makes later.
///
/// It lasts as long as the channel's session, or until an operator decides otherwise.
package struct OperatorOverrides: Hashable, Sendable, Codable {
    package struct Hold: Hashable, Sendable, Codable {
        /// Whether the user may not make itself host.
        package var isAudience = false
        /// The kinds that are not forwarded.
        package var muted: Set<MediaKind> = []

        package init() {}
    }

    /// The most users with a hold. Beyond it, users who are not in the channel lose theirs.
    package static let usersMax = 10_000

    private var holds: [String: Hold] = [:]

    package init() {}

    /// - Parameter user: a client identifier.
    package subscript(user: String) -> Hold { holds[user] ?? Hold() }

    /// - Parameter isPresent: whether a user is in the channel.
    package mutating func change(_ user: String, isPresent: (String) -> Bool, _ change: (inout Hold) -> Void) {
        var hold = self[user]
        change(&hold)
        guard hold != Hold() else {
            holds[user] = nil
            return
        }
        if holds[user] == nil, holds.count >= Self.usersMax { holds = holds.filter { isPresent($0.key) } }
        holds[user] = hold
    }

    /// Forgets a user who cannot come back under this name.
    package mutating func forget(_ user: String) { holds[user] = nil }
}
