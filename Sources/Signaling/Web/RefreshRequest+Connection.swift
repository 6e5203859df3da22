package import Access
package import JSON
package import Room

extension RefreshRequest {
    /// The request of a connection.
    package init(_ connection: Connection, credential: Credential? = nil, metadata: JSONValue? = nil) {
        self.init(
            channel: connection.channel,
            role: connection.member.role,
            user: connection.user,
            kinds: Set(connection.publications.map(\.kind)),
            credential: credential,
            metadata: metadata
        )
        app = connection.app
    }
}
