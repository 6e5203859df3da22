package import Access
package import ChannelTypes
package import Room

extension ChannelDirectory {
    /// Extends the permission of a connection that presented a new token or URL, and of the other connections of its user in the
    /// channel, such as a shared screen.
    ///
    /// The application's server, which made the token, decides on them, so the change is the operator's. Another connection keeps its
    /// permission when it already ends later, or does what the new token does not permit.
    ///
    /// - Throws: ``RoomError/expiryNotLater`` when the permission of `connection` is not extended. Nothing has changed then.
    package func extendAccess(of connection: Connection, by permissions: Permissions) async throws(RoomError) {
        let id = connection.member.id
        let expiry = permissions.expiry
        try await perform(.extendAccess(of: id, until: expiry), by: id)
        guard let user = connection.user, user.origin == .authorized else { return }
        for other in await places(in: connection.channel)
        where other.user == user && other.member.id != id && other.isPermitted(by: permissions) {
            do throws(RoomError) {
                let command = ChannelCommand.extendAccess(of: other.member.id, until: expiry)
                _ = try await perform(command, in: connection.channel, by: .operator)
            } catch .expiryNotLater, .participantUnknown {
                continue
            }
        }
    }
}

extension Connection {
    fileprivate func isPermitted(by permissions: Permissions) -> Bool {
        permissions.permits(AccessRole(negotiatedRole)) && publications.allSatisfy { permissions.permits($0.kind) }
    }
}
