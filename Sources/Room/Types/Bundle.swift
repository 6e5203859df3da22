/// Which members' bundle identifiers mean the same bundle.
///
/// Identifiers are shown to everybody, so a client that chose one freely could hide from its holder. What a client
/// chooses therefore joins it with members of the same owner only.
public enum BundleScope: Hashable, Sendable, Codable {
    /// Who let the member in chose the identifier: all members that were given it are of one bundle.
    case granted
    /// Members that were let in as this client.
    case client(String)
    /// Members from this network.
    case network(ClientNetwork)
}

/// A bundle within a channel.
struct Bundle: Hashable, Sendable, Codable {
    let id: String
    let scope: BundleScope
}
