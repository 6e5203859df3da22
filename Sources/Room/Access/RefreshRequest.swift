package import ChannelTypes
package import JSON
package import Wire

/// A participant's request to extend its permission with a new token or URL, for ``Authorizer/refresh(_:)``.
package struct RefreshRequest: Sendable {
    package var channel: ChannelName
    package var role: Role
    /// The user that the participant was admitted as.
    package var user: UserIdentity?
    /// The app whose token admitted the participant; `nil` without such a token.
    package var app: String?
    /// The kinds of media that it publishes, or may receive.
    package var kinds: Set<MediaKind>
    /// The new Bearer token, or the new signature of its URL.
    package var credential: Credential?
    /// Metadata with the new token in `access_token`, in any form that a newcomer's has.
    package var metadata: JSONValue?

    package init(
        channel: ChannelName,
        role: Role,
        user: UserIdentity?,
        kinds: Set<MediaKind>,
        credential: Credential? = nil,
        metadata: JSONValue? = nil
    ) {
        self.channel = channel
        self.role = role
        self.user = user
        self.kinds = kinds
        self.credential = credential
        self.metadata = metadata
    }
}
