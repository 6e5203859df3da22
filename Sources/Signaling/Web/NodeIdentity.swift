/// A node's identity for webhooks, clients and the admin API.
package struct NodeIdentity: Hashable, Sendable {
    /// The machine's name, or the configured name.
    package var name: String
    /// Distinguishes this installation from others at a shared webhook.
    package var label: String
    /// The program's version.
    package var version: String

    package init(name: String = "nagare", label: String = "Nagare", version: String = "0") {
        self.name = name
        self.label = label
        self.version = version
    }
}
