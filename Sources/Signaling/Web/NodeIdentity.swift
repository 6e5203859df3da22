/// A node's identity for webhooks, clients and the admin API.
public struct NodeIdentity: Hashable, Sendable {
    /// The machine's name, or the configured name.
    public var name: String
    /// Distinguishes this installation from others at a shared webhook.
    public var label: String
    /// The program's version.
    public var version: String

    public init(name: String = "nagare", label: String = "Nagare", version: String = "0") {
        self.name = name
        self.label = label
        self.version = version
    }
}
