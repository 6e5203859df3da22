/// The user behind a participant, by which the user's connections in one channel belong together.
///
/// Names of different origins are different users: a client that chooses the name of an authorized user is not that
/// user.
package struct UserIdentity: Hashable, Sendable, Codable {
    package enum Origin: String, Hashable, Sendable, Codable {
        /// The client chose the name.
        case chosen
        /// Its token or the authentication webhook has the name.
        case authorized
        /// A signed URL permits to publish this stream. The name is the path of the URL.
        case stream
    }
    package let name: String
    package let origin: Origin

    package init(_ name: String, _ origin: Origin) {
        self.name = name
        self.origin = origin
    }

    /// The name, if authorization vouches for it.
    package var authorizedName: String? { origin == .authorized ? name : nil }

    /// Whether all clients with the identity are one user. Members see the names that others choose, and can choose the same.
    package var isProven: Bool { origin != .chosen }
}
