/// The scope in which equal bundle identifiers name the same bundle.
///
/// Identifiers are public, and members of a bundle do not see each other. A client could hide from a member by choosing
/// its identifier. An identifier that a client chooses is therefore valid among members of the same owner only.
package enum BundleScope: Hashable, Sendable, Codable {
    /// Authorization assigned the identifier: it names one bundle in the channel.
    case granted
    /// Members that were authorized as this client.
    case client(String)
    /// Members from this network.
    case network(ClientNetwork)
}

/// A bundle within a channel.
package struct Bundle: Hashable, Sendable, Codable {
    package let id: String
    package let scope: BundleScope

    package init(id: String, scope: BundleScope) {
        self.id = id
        self.scope = scope
    }
}
