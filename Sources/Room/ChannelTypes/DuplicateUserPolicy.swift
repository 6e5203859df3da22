/// What happens when a user joins a channel with a connection for what another connection of it does already: to
/// publish, or to watch. A user has the name that its token or the authentication webhook gave, or the stream of a signed
/// URL. Clients that choose their names are all different users.
package enum DuplicateUserPolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// Both stay.
    case allow
    /// The new connection takes the place of the old one, which ends with ``EndReason/replaced``.
    case replace
    /// The new connection is refused with ``RoomError/userPresent``, or with ``RoomError/alreadyPublishing`` when
    /// it conflicts with others by what it publishes only.
    case refuse
}
