public import JSON
public import Room
public import Wire

/// A participant's request to extend its permission with a new token or URL, for ``Authorizer/refresh(_:)``.
public struct RefreshRequest: Sendable {
    public var channel: ChannelName
    public var role: Role
    /// The user that the participant was admitted as.
    public var user: UserIdentity?
    /// The app whose token admitted the participant; `nil` without such a token.
    public var app: String?
    /// The kinds of media that it publishes, or may receive.
    public var kinds: Set<MediaKind>
    /// The new Bearer token, or the new signature of its URL.
    public var credential: Credential?
    /// Metadata with the new token in `access_token`, in any form that a newcomer's has.
    public var metadata: JSONValue?

    public init(
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

    /// The request of a connection.
    public init(_ connection: Connection, credential: Credential? = nil, metadata: JSONValue? = nil) {
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
